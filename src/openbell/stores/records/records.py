"""A transaction is a function of a connection, run wholly or not at all, the same on SQLite and PostgreSQL.

`read` gives it one consistent view. `write` gives it a journal: writers come one at a time, so that the ledger is one chain;
with a lease, nothing is written unless it is still held; and when `write` returns, what was written is durable and the
ledger's head is noted outside the database.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from sqlalchemy import Connection, select
from sqlalchemy.exc import SQLAlchemyError

from openbell.market.clock import Clock
from openbell.market.errors import StoreError, StoreTimeout
from openbell.stores.port import Lease
from openbell.stores.records import leases, schema
from openbell.stores.records.head import HeadFile
from openbell.stores.records.journal import Journal, LedgerBroken, head_of
from openbell.stores.records.tables import ledger
from openbell.trading.ledger import Head

T = TypeVar("T")


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

    async def close(self) -> None:
        """Let go of connections."""


class Records:
    """The records of one desk."""

    def __init__(self, database: Database, head: HeadFile, clock: Clock) -> None:
        self.database = database
        self.head = head
        self.clock = clock
        self._prepared: asyncio.Task[None] | None = None
        self._noted: Head | None = None
        self._trusted = False
        self._writing: set[asyncio.Task[object]] = set()

    @property
    def source(self) -> str:
        """`sqlite` or `postgresql`."""
        return self.database.source

    async def read(self, work: Callable[[Connection], T]) -> T:
        """What a function finds, in one view of the database."""
        await self._prepare()
        return await _said(self.database.run(work, writing=False))

    async def write(self, work: Callable[[Journal], T], lease: Lease | None = None) -> T:
        """Run a function that writes. It ends even if its caller goes away: what it does is never half known.

        Raises `LeaseLost` if the lease has passed to another, `LedgerBroken` if the ledger was cut.
        """
        await self._prepare()
        task = asyncio.ensure_future(self._write(work, lease))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)
        return await asyncio.shield(task)

    async def _write(self, work: Callable[[Journal], T], lease: Lease | None) -> T:
        await self._trust()

        def transaction(connection: Connection) -> tuple[T, Head | None]:
            schema.queue_up(connection)
            if lease is not None:
                leases.check(connection, lease)
            journal = Journal(connection, round(self.clock.epoch(), 3), self._noted)
            result = work(journal)
            return result, journal.finish()

        def anchor(done: tuple[T, Head | None]) -> None:
            if done[1] is not None:
                self.head.note(done[1])

        result, head = await _said(self.database.run(transaction, writing=True, then=anchor))
        if head and (self._noted is None or head.seq > self._noted.seq):
            self._noted = head
        return result

    async def adopt(self) -> Head:
        """Take the ledger as it stands and note its head anew: an operator's decision."""
        await self._prepare()
        head = await _said(self.database.run(head_of, writing=False))
        await asyncio.to_thread(self.head.reset, head)
        self._noted, self._trusted = head, True
        return head

    async def close(self) -> None:
        """End what was begun, then let go."""
        if self._writing:
            await asyncio.gather(*self._writing, return_exceptions=True)
        await self.database.close()
        self.head.close()

    async def _prepare(self) -> None:
        """Bring the tables to their newest form, once."""
        if self._prepared is None or (self._prepared.done() and self._prepared.exception()):
            self._prepared = asyncio.ensure_future(_said(self.database.run(schema.prepare, writing=True)))
        await asyncio.shield(self._prepared)

    async def _trust(self) -> None:
        """Before the first write: the ledger must hold the head that was noted."""
        if self._trusted:
            return
        noted = await asyncio.to_thread(self.head.read)

        def compare(connection: Connection) -> str | None:
            newest = head_of(connection)
            if noted is None:
                return f"it has {newest.seq} entries, and this home has noted no head of it" if newest.seq else None
            if not noted.seq:
                return None
            found = connection.execute(select(ledger.c.hash).where(ledger.c.seq == noted.seq)).scalar()
            return None if found == noted.hash else f"its entry {noted.seq} is not the one that was noted"

        if objection := await _said(self.database.run(compare, writing=False)):
            raise LedgerBroken(
                f"the ledger cannot be trusted: {objection}; nothing is written to it. Look with openbell verify; if it is "
                "as it should be, take it as it stands with openbell verify --adopt"
            )
        self._noted, self._trusted = noted, True


async def _said(work: Awaitable[T]) -> T:
    """What the work gives; a database's failure as one of ours, without its statement and values."""
    try:
        return await work
    except TimeoutError:
        raise StoreTimeout("the records database did not answer in time") from None
    except SQLAlchemyError as error:
        cause = getattr(error, "orig", None) or error
        kind = StoreTimeout if isinstance(cause.__cause__, TimeoutError) else StoreError
        raise kind(f"the records database failed: {_first_line(cause)}") from error
    except OSError as error:
        raise StoreError(f"the records database cannot be reached: {error.strerror or error}") from error


def _first_line(error: BaseException) -> str:
    """An error's own words: drivers put their class before them and the statement behind."""
    lines = str(error).splitlines()
    return (lines[0] if lines else type(error).__name__).rpartition(">: ")[2][:300]
