"""Transactions on the records, the same on SQLite and PostgreSQL.

A transaction is a function. `Records.read` calls it with a consistent view of what had been written by the desk's clock.
`Records.write` calls it with a journal: there is one writer at a time, so that the ledger is one chain; if a lease is given,
nothing is written unless it is current; and when `write` returns, the commit is durable and the ledger's head is noted
outside the database (`ledger_guard`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable
from enum import Enum
from typing import TypeVar, TypeVarTuple, cast

from sqlalchemy import AdaptedConnection, Connection

from openbell.market.clock import Clock, iso
from openbell.market.errors import LeaseHeld, Refused, StoreError
from openbell.stores.port import Lease
from openbell.stores.records import leases, snapshot
from openbell.stores.records.database import Database, MigratedDatabase
from openbell.stores.records.journal import Journal, LedgerBroken, contains, head_of
from openbell.stores.records.ledger_guard import HeadGuard, compare
from openbell.stores.records.ledger_head_file import HeadFile
from openbell.stores.records.snapshot import View
from openbell.stores.records.tables import RECORDS
from openbell.trading.ledger import Head

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

log = logging.getLogger(__name__)


class RecordAccess(Enum):
    """How a desk may use some records, which depends on its clock."""

    PRESENT = "present"
    """The clock is the machine's: reads see everything, writes have the current time."""
    SCENARIO = "scenario"
    """The records of one scenario: reads see entries up to the clock, writes must not be earlier than the last entry."""
    PAST = "past"
    """The present's records with an earlier clock: reads see entries up to the clock, writes are refused."""


class Records:
    """The records of one desk."""

    def __init__(
        self,
        database: Database,
        head: HeadFile,
        clock: Clock,
        access: RecordAccess = RecordAccess.PRESENT,
        *,
        name: str = "",
        read_only: bool = False,
    ) -> None:
        """`name` is the scenario's, for messages. With `read_only` or `RecordAccess.PAST` nothing is created or written."""
        self.database = database
        self.head = head
        self.clock = clock
        self.access = access
        self.name = name
        self.read_only = read_only
        what = f"the scenario {name} was" if access is RecordAccess.SCENARIO else "the records were"
        self._guard = HeadGuard(head, database.where, what, one_home=self.one_home)
        self._tables = MigratedDatabase(
            database, RECORDS, "the records", reads_create=access is RecordAccess.PRESENT, read_only=read_only
        )
        self._closed = False
        self._writing: set[asyncio.Task[object]] = set()
        self.on_commit: Callable[[], None] = lambda: None
        """Called after each write."""
        self.on_replaced: list[Callable[[], None]] = []
        """Called after an operator has accepted another ledger: what was computed from the earlier one is void."""
        self.replaced = 0
        """How often that has happened in this process."""

    def version(self) -> Hashable:
        """Returns a value that differs after every commit, by this or another process; cheap to call."""
        return self.database.version()

    @property
    def source(self) -> str:
        """`sqlite` or `postgresql`."""
        return self.database.source

    @property
    def one_home(self) -> bool:
        """True if every writer uses this head file, so that the ledger must end at one of its heads."""
        return self.database.source == "sqlite"

    async def is_created(self) -> bool:
        """Returns False for a scenario that has no records yet; reading it creates nothing."""
        return self.access is not RecordAccess.SCENARIO or await self._tables.exists()

    # Reading

    async def read(self, work: Callable[[View, *Ts], T], *given: *Ts, check_head: bool = True) -> T:
        """Call a function with a consistent view of what had been written by the clock, and return its result.

        It also gets what is `given`. It runs in a thread, or as a task of the database.

        Raises `LedgerBroken` if the ledger does not contain the head that was noted, or is not the one that was read
        before; `check_head=False` leaves out both checks.
        """
        await self._prepare()
        if not check_head:
            return await self._read(work, given, None)
        try:
            found = await self._read_checked(work, given)
        except LedgerBroken:
            if not await self._begin_anew():
                raise
            found = await self._read_checked(work, given)
        if self.access is RecordAccess.PRESENT and not self.read_only:
            await self._guard.follow()
        return found

    async def _read_checked(self, work: Callable[[View, *Ts], T], given: tuple[*Ts]) -> T:
        await self._guard.check_before_reading(self._compare)
        return await self._read(work, given, self._guard.last_read)

    async def _read(self, work: Callable[[View, *Ts], T], given: tuple[*Ts], last_read: Head | None) -> T:
        def transaction(connection: Connection) -> T:
            self._guard.check_same_ledger(connection, last_read)
            return work(self._view(connection), *given)

        return await self._tables.run(transaction, writing=False)

    def _view(self, connection: Connection) -> View:
        """A view of everything or, if the ledger has later entries, of what had been written by the clock."""
        view, moment = View(connection), self._moment()
        behind = self.access is not RecordAccess.PRESENT and snapshot.is_behind(view, moment)
        return View(connection, moment, by_event=self.access is RecordAccess.SCENARIO) if behind else view

    def _moment(self) -> float:
        return round(self.clock.epoch(), 3)

    async def _compare(self, noted: Head | None) -> tuple[Head, bool]:
        return await self._tables.run(lambda connection: compare(connection, noted), writing=False)

    # Writing

    async def write(
        self, work: Callable[[Journal, *Ts], T], *given: *Ts, lease: Lease | None = None, ignore_clock: bool = False
    ) -> T:
        """Call a function that writes, also with what is `given`, and return its result.

        The write finishes even if the caller is cancelled.

        With `ignore_clock`, a scenario whose last entry is later than this clock may be written to: only to release a lease.

        Raises `LeaseLost` if the lease is no longer current, `LedgerBroken` if the ledger was cut off or replaced,
        `Refused` if this desk may not write here.
        """
        if self.read_only:
            raise Refused("this desk was started with --read-only: it writes nothing")
        if self.access is RecordAccess.PAST:
            raise Refused(
                f"this desk's clock shows {iso(self._moment())}: it reads the present's records as they were then and "
                "writes nothing to them. Add --trade or --scenario NAME to act in a scenario"
            )
        await self._prepare(creates=True)
        task = asyncio.ensure_future(self._write(work, given, lease, ignore_clock=ignore_clock))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_log_failure)
            raise

    async def _write(
        self, work: Callable[[Journal, *Ts], T], given: tuple[*Ts], lease: Lease | None, *, ignore_clock: bool
    ) -> T:
        try:
            return await self._write_checked(work, given, lease, ignore_clock=ignore_clock)
        except LedgerBroken:
            if not await self._begin_anew():
                raise
            # Not repeated: it may follow from what its caller has read of the earlier ledger.
            raise StoreError(
                "nothing was written: another ledger was accepted while this was computed; try again"
            ) from None

    async def _begin_anew(self) -> bool:
        """Forget the earlier ledger if an operator has accepted another one. Returns True then."""
        if not await self._guard.begin_anew():
            return False
        self._forget()
        log.warning("the ledger in %s was accepted as it is: going on with it", self.database.where)
        return True

    def _forget(self) -> None:
        self.replaced += 1
        for forget in self.on_replaced:
            forget()

    async def _write_checked(
        self, work: Callable[[Journal, *Ts], T], given: tuple[*Ts], lease: Lease | None, *, ignore_clock: bool
    ) -> T:
        await self._guard.check_before_writing(self._compare)

        def transaction(connection: Connection) -> tuple[T, Head]:
            self._tables.begin_write(connection)
            moment = self._moment()
            if self.access is RecordAccess.SCENARIO and not ignore_clock:
                self._refuse_earlier(View(connection), moment)
            if lease is not None:
                leases.check(View(connection), lease)
            journal = Journal(connection, moment, self._guard.noted, by_event=self.access is RecordAccess.SCENARIO)
            self._guard.check_end(journal.found)
            result = work(journal, *given)
            head = journal.finish()
            if head != journal.found:
                self.database.announce(connection)
                _in_thread(connection, lambda: self._guard.announce(journal.found, head))
            return result, head

        def note(done: tuple[T, Head]) -> None:
            # Also if nothing was written: the head found here may be that of a process killed before it could note it.
            self._guard.note(done[1])

        result, head = await self._tables.run(transaction, writing=True, then=note)
        self._guard.remember(head)
        self.on_commit()
        return result

    def _refuse_earlier(self, view: View, moment: float) -> None:
        """Raise `Refused` if the scenario has an entry later than this clock: its time never goes back."""
        if snapshot.is_behind(view, moment):
            raise Refused(
                f"the scenario {self.name} has gone on to {iso(snapshot.last_moment(view))}, and this clock shows "
                f"{iso(moment)}: use a later --as-of, another --scenario NAME, or openbell scenario reset {self.name}"
            )

    async def adopt(self, expected: Head | None = None) -> Head:
        """Accept the ledger as it is and note its head: an operator's decision. Returns that head.

        Raises `LedgerBroken` if the ledger does not contain `expected`.
        """
        await self._prepare(creates=True)

        def take(connection: Connection) -> Head:
            self._tables.begin_write(connection)
            # No write may come between reading the head and noting it
            head = head_of(connection)
            if expected is not None and not (expected.seq and contains(connection, head, expected)):
                raise LedgerBroken(
                    f"the ledger does not contain the head {expected.seq}:{expected.hash}: nothing was accepted"
                )
            _in_thread(connection, lambda: self.head.reset(head))
            return head

        head = await self._tables.run(take, writing=True)
        self._guard.adopt(head)
        self._forget()
        return head

    async def write_refusal(self) -> str | None:
        """Why a write would be refused now because of the ledger's head; None if it would not be."""
        await self._prepare()
        return await self._guard.refusal(self._compare)

    async def close(self) -> None:
        """Wait for writes that have begun, then close all files and connections."""
        self._closed = True
        if self._writing:
            await asyncio.gather(*self._writing, return_exceptions=True)
        if self.access is RecordAccess.PRESENT and not self.read_only:
            await self._guard.follow(at_once=True)
        await self._tables.close()
        self.head.close()

    async def _prepare(self, *, creates: bool = False) -> None:
        if self._closed:
            raise StoreError("the records were closed")
        await self._tables.prepare(creates=creates)


def _in_thread(connection: Connection, work: Callable[[], None]) -> None:
    """Call a blocking function inside a transaction: in a thread, if the transaction runs on the event loop."""
    if not connection.dialect.is_async:
        work()
        return
    driver = cast("AdaptedConnection", connection.connection.dbapi_connection)
    driver.run_async(lambda _connection: asyncio.to_thread(work))


def _log_failure(task: asyncio.Task[object]) -> None:
    """Log the failure of a write whose caller was cancelled and does not receive it."""
    if task.cancelled() or not (error := task.exception()):
        return
    # A refusal, such as of a lease that another process holds, has changed nothing.
    level = logging.DEBUG if isinstance(error, Refused | LeaseHeld) else logging.ERROR
    log.log(level, "a write failed after its caller was cancelled: %s", error)
