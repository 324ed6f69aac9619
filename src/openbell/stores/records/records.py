"""A transaction is a function of a view, run wholly or not at all, the same on SQLite and PostgreSQL.

`read` gives it one consistent view, of what had been written by the desk's clock. `write` gives it a journal: writers come
one at a time, so that the ledger is one chain;
with a lease, nothing is written unless it is still held; and when `write` returns, what was written is durable and the
ledger's head is noted outside the database. That head covers the end: it is announced before the commit and stands after
it, so an entry beyond it is none of ours, and a ledger in SQLite that has one is not written to. In PostgreSQL it may be
another machine's, which has a head of its own.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Hashable
from enum import Enum
from typing import Protocol, TypeVar, cast

from sqlalchemy import AdaptedConnection, Connection
from sqlalchemy.exc import SQLAlchemyError

from openbell.market.clock import Clock, iso
from openbell.market.errors import Refused, StoreError
from openbell.stores.port import Lease
from openbell.stores.records import failures, leases, past, schema
from openbell.stores.records.head import HeadFile
from openbell.stores.records.journal import Journal, LedgerBroken, has, head_of
from openbell.stores.records.nothing import Nothing
from openbell.stores.records.view import View
from openbell.trading.ledger import Head, goes_beyond

T = TypeVar("T")

_migrating = threading.Lock()
"""Alembic's scripts speak to one database of a process at a time."""

log = logging.getLogger(__name__)


class Access(Enum):
    """What a desk's clock lets it do with some records."""

    PRESENT = "present"
    """The clock is the machine's: everything is seen, and written at its time."""
    SCENARIO = "scenario"
    """The records of one scenario: written in the order of their clocks' times, seen as far as this clock has come."""
    PAST = "past"
    """The present's records from another clock: seen as far as it has come, never written."""


class Database(Protocol):
    """How a function becomes a transaction."""

    source: str
    """What results name as theirs: `sqlite` or `postgresql`."""
    where: str
    """Where it is, in words without a secret."""

    async def run(
        self, work: Callable[[Connection], T], *, writing: bool, then: Callable[[T], None] | None = None
    ) -> T:
        """Run it; `then` may block, and is called with the result once it is durable."""

    def version(self) -> Hashable:
        """Returns a value that differs after every commit, by this or another process; cheap to call."""

    def announce(self, connection: Connection) -> None:
        """Let `version` of every process differ once this transaction has committed."""

    async def exists(self) -> bool:
        """Returns True if there are tables; creates nothing."""

    async def close(self) -> None:
        """Let go of connections."""


class Records:
    """The records of one desk."""

    def __init__(
        self,
        database: Database,
        head: HeadFile,
        clock: Clock,
        access: Access = Access.PRESENT,
        *,
        name: str = "",
        read_only: bool = False,
    ) -> None:
        """`name` is the scenario's, for messages. With `read_only`, and of the past, nothing is created or written."""
        self.database = database
        self.head = head
        self.clock = clock
        self.access = access
        self.name = name
        self._read_only = read_only
        self._prepared: asyncio.Task[None] | None = None
        self._noted: Head | None = None
        self._seen: Head | None = None
        """Where the ledger ended when it was last read."""
        self._trusted = False
        self._believed = False
        self._closed = False
        self._nothing: Nothing | None = None
        """What is read while there are no records and this desk may not create them."""
        self._writing: set[asyncio.Task[object]] = set()
        self.on_commit: Callable[[], None] = lambda: None
        """Called after each write."""

    def version(self) -> Hashable:
        """Returns a value that differs after every commit, by this or another process; cheap to call."""
        return self.database.version()

    @property
    def source(self) -> str:
        """`sqlite` or `postgresql`."""
        return self.database.source

    async def read(self, work: Callable[[View], T], *, check_head: bool = True) -> T:
        """What a function finds, in one view of the database: of what had been written by the clock.

        Raises `LedgerBroken` if the ledger is not the one whose head was noted, or not the one that was read before;
        `check_head=False` reads it all the same.
        """
        await self._prepare()
        if check_head and not self._believed:
            await self._believe()
        seen = self._seen if check_head else None

        def looked(connection: Connection) -> T:
            self._check_same(connection, seen)
            return work(self._view(connection))

        return await self._run(looked, writing=False)

    def _check_same(self, connection: Connection, seen: Head | None) -> None:
        """Raise `LedgerBroken` if the ledger was replaced since `seen`: what this process remembers is of another one.

        `seen` must have been taken before the transaction began, which may be older than what others have read meanwhile.
        """
        newest = head_of(connection)
        if seen is not None and not has(connection, newest, seen):
            what = f"the scenario {self.name} was" if self.access is Access.SCENARIO else "the records were"
            raise LedgerBroken(
                f"{what} emptied or replaced while this process used it: start this process again to go on with what "
                f"stands in {self.database.where} now"
            )
        if self._seen is None or newest.seq > self._seen.seq:
            self._seen = newest

    async def begun(self) -> bool:
        """Returns False for a scenario to which nothing was written yet: reading it creates nothing."""
        return self.access is not Access.SCENARIO or await self._exists()

    def _view(self, connection: Connection) -> View:
        """All of it, unless something was written after the time that this clock shows."""
        view, moment = View(connection), self._moment()
        behind = self.access is not Access.PRESENT and past.is_behind(view, moment)
        return View(connection, moment, by_event=self.access is Access.SCENARIO) if behind else view

    def _moment(self) -> float:
        return round(self.clock.epoch(), 3)

    async def _believe(self) -> None:
        """Before the first read: records that were cut, or taken away and begun anew, would tell less than is true."""
        try:
            noted = await asyncio.to_thread(self.head.read)
        except StoreError as damage:
            log.warning("%s", damage)
            noted = None
        if noted is not None:
            newest, found = await self._run(lambda connection: _compare(connection, noted), writing=False)
            if not found:
                raise LedgerBroken(
                    f"the records in {self.database.where} are not those that were written: {_objection(newest, noted)}. "
                    f"Look with {self.head.verify}; {self.head.verify} --adopt takes them as they stand"
                )
        self._believed = True

    async def write(self, work: Callable[[Journal], T], lease: Lease | None = None, *, any_time: bool = False) -> T:
        """Run a function that writes. It ends even if its caller goes away: what it does is never half known.

        With `any_time`, a scenario that has gone on further than this clock is written to: only to release a lease.

        Raises `LeaseLost` if the lease has passed to another, `LedgerBroken` if the ledger was cut, `Refused` if this
        desk may not write here.
        """
        if self._read_only:
            raise Refused("this desk was started with --read-only: it writes nothing")
        if self.access is Access.PAST:
            raise Refused(
                f"this desk's clock shows {iso(self._moment())}: it reads the present's records as they were then and "
                "writes nothing to them. Add --trade or --scenario NAME to act in a scenario"
            )
        await self._prepare(creates=True)
        task = asyncio.ensure_future(self._write(work, lease, any_time=any_time))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_tell)
            raise

    async def _write(self, work: Callable[[Journal], T], lease: Lease | None, *, any_time: bool) -> T:
        await self._trust()

        def transaction(connection: Connection) -> tuple[T, Head]:
            schema.queue_up(connection)
            moment = self._moment()
            if self.access is Access.SCENARIO and not any_time:
                self._refuse_the_past(View(connection), moment)
            if lease is not None:
                leases.check(View(connection), lease)
            journal = Journal(connection, moment, self._noted, by_event=self.access is Access.SCENARIO)
            self._check_end(journal.found)
            result = work(journal)
            head = journal.finish()
            if head != journal.found:
                self.database.announce(connection)
                _in_thread(connection, lambda: self._announce(journal.found, head))
            return result, head

        def anchor(done: tuple[T, Head]) -> None:
            # Also when this wrote nothing: what it found may be another's, who died before noting it.
            if self._noted is not None and done[1].seq <= self._noted.seq:
                return
            try:
                self.head.note(done[1])
            except StoreError as error:
                raise StoreError(f"this was written, but the ledger's head was not noted: {error}") from error

        result, head = await self._run(transaction, writing=True, then=anchor)
        if self._noted is None or head.seq > self._noted.seq:
            self._noted = head
        self.on_commit()
        return result

    def _refuse_the_past(self, view: View, moment: float) -> None:
        """A scenario's time only goes on."""
        if past.is_behind(view, moment):
            raise Refused(
                f"the scenario {self.name} has gone on to {iso(past.last_moment(view))}, and this clock shows "
                f"{iso(moment)}: use a later --as-of, another --scenario NAME, or openbell scenario reset {self.name}"
            )

    @property
    def one_home(self) -> bool:
        """Whether every writer shares the one head file, so that the ledger must end where that says."""
        return self.database.source == "sqlite"

    def _check_end(self, found: Head) -> None:
        """Raise `LedgerBroken` if the ledger goes on after its head: the next head would cover what was put there.

        To be called with the write lock: whoever wrote last announced its end before it gave the lock back.
        """
        if not self.one_home or found == self._noted:
            return
        ends = self.head.ends()
        if found in ends:
            return
        if ends and goes_beyond(found, ends):
            raise LedgerBroken(self._refusal(_surplus(found, ends[0])))
        raise LedgerBroken(self._refusal(_objection(found, ends[0] if ends else None)))

    def _refusal(self, objection: str) -> str:
        verify = self.head.verify
        return (
            f"the ledger cannot be trusted: {objection}; nothing is written to it. Look with {verify}; if it is as it "
            f"should be, take it as it stands with {verify} --adopt"
        )

    def _announce(self, found: Head, wanted: Head) -> None:
        try:
            self.head.intend(found, wanted)
        except StoreError as error:
            raise StoreError(f"nothing was written, because the ledger's head cannot be: {error}") from error

    async def adopt(self) -> Head:
        """Take the ledger as it stands and note its head anew: an operator's decision."""
        await self._prepare(creates=True)

        def take(connection: Connection) -> Head:
            schema.queue_up(connection)  # nobody may write between the look and the note
            head = head_of(connection)
            _in_thread(connection, lambda: self.head.reset(head))
            return head

        head = await self._run(take, writing=True)
        self._noted, self._trusted, self._believed = head, True, True
        return head

    async def objection(self) -> str | None:
        """Why nothing would be written now; None if the ledger is the one whose head was noted."""
        await self._prepare()
        noted = await asyncio.to_thread(self.head.read)
        newest, found = await self._run(lambda connection: _compare(connection, noted), writing=False)
        if not found and (noted or newest.seq):
            return _objection(newest, noted)
        # Looked at after the ledger: an entry that is there was announced before.
        ends = await asyncio.to_thread(self.head.ends)
        return _surplus(newest, ends[0]) if self.one_home and ends and goes_beyond(newest, ends) else None

    async def close(self) -> None:
        """End what was begun, then let go."""
        self._closed = True
        if self._writing:
            await asyncio.gather(*self._writing, return_exceptions=True)
        await self.database.close()
        if self._nothing is not None:
            self._nothing.close()
        self.head.close()

    async def _prepare(self, *, creates: bool = False) -> None:
        """Bring the tables to their newest form, once."""
        if self._closed:
            raise StoreError("the records were closed")
        failed = self._prepared and self._prepared.done() and (self._prepared.cancelled() or self._prepared.exception())
        if self._nothing is not None and (creates or await self._exists()):
            failed = True  # they are to be created now, or somebody has created them since
        if self._prepared is None or failed:
            self._prepared = asyncio.ensure_future(self._migrate(creates=creates or self.access is Access.PRESENT))
        await asyncio.shield(self._prepared)

    async def _migrate(self, *, creates: bool) -> None:
        creates = creates and not self._read_only
        if not creates and not await self._exists():
            self._nothing = self._nothing or Nothing()
            return
        self._nothing = None
        if await self._run(schema.is_newest, writing=False):
            return
        if self._read_only:
            raise StoreError(
                f"the records in {self.database.where} are of another version of Openbell, and --read-only changes "
                "nothing: start Openbell once without --read-only"
            )
        while not _migrating.acquire(blocking=False):
            await asyncio.sleep(0.01)
        try:
            await self._run(schema.prepare, writing=True)
        finally:
            _migrating.release()

    async def _exists(self) -> bool:
        try:
            return await self.database.exists()
        except (SQLAlchemyError, OSError) as error:
            raise failures.said(self.database.where, error) from None

    async def _trust(self) -> None:
        """Before the first write: the ledger must hold the head that was noted.

        An empty ledger's head is noted before its first entry, so that an entry without any head is never one of ours.
        """
        while not self._trusted:
            noted = await asyncio.to_thread(self.head.read)
            newest, found = await self._run(lambda connection: _compare(connection, noted), writing=False)  # noqa: B023
            if noted is None and newest.seq == 0:
                noted, found = newest, True
                await asyncio.to_thread(self.head.note, newest)
            if not found and noted is None and await asyncio.to_thread(self.head.read) is not None:
                continue  # somebody has just begun it
            if not found:
                raise LedgerBroken(self._refusal(_objection(newest, noted)))
            self._noted, self._trusted = noted, True

    async def _run(
        self, work: Callable[[Connection], T], *, writing: bool, then: Callable[[T], None] | None = None
    ) -> T:
        """What the work gives; a database's failure as one of ours, without its statement and values."""
        if self._nothing is not None:
            return self._nothing.read(work)
        try:
            return await self.database.run(work, writing=writing, then=then)
        except (SQLAlchemyError, OSError) as error:
            raise failures.said(self.database.where, error) from None


def _compare(connection: Connection, noted: Head | None) -> tuple[Head, bool]:
    """The newest entry, and whether the ledger has the head that was noted."""
    newest = head_of(connection)
    return newest, noted is not None and has(connection, newest, noted)


def _objection(newest: Head, noted: Head | None) -> str:
    if noted is None:
        return f"it has {newest.seq} entries, and this home has noted no head of it"
    return f"its entry {noted.seq} is not the one that was noted"


def _surplus(newest: Head, noted: Head) -> str:
    return f"it ends at entry {newest.seq}, and its head was noted at {noted.seq}: this home did not write what comes after"


def _in_thread(connection: Connection, work: Callable[[], None]) -> None:
    """Run what blocks in the middle of a transaction: beside the event loop, if that is where the transaction runs."""
    if not connection.dialect.is_async:
        work()
        return
    driver = cast("AdaptedConnection", connection.connection.dbapi_connection)
    driver.run_async(lambda _connection: asyncio.to_thread(work))


def _tell(task: asyncio.Task[object]) -> None:
    """Nobody else hears of a failure whose caller has gone away."""
    if not task.cancelled() and (error := task.exception()):
        log.error("a write failed after its caller had gone away: %s", error)
