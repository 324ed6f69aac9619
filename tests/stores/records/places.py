"""Where records are stored, so that the same tests run on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, select

from openbell.market.clock import Clock, FixedClock
from openbell.stores.records.database import Database
from openbell.stores.records.ledger_head_file import HeadFile
from openbell.stores.records.postgres import PoolLimits, PostgresDatabase
from openbell.stores.records.records import Records
from openbell.stores.records.sqlite import SqliteDatabase
from openbell.stores.records.tables import ledger
from openbell.trading.ledger import LedgerEntry, LedgerFault, check

T = TypeVar("T")
NOON = 1_760_000_000.123


@dataclass(frozen=True)
class Place:
    """A folder, and a PostgreSQL schema if the records are stored there."""

    folder: Path
    url: str = ""
    schema: str = ""

    @property
    def path(self) -> Path:
        """The SQLite file."""
        return self.folder / "records.sqlite"

    @property
    def head(self) -> HeadFile:
        """A new object for the head file."""
        return HeadFile(self.folder / "head")

    def database(self, pool: PoolLimits = PoolLimits()) -> Database:  # noqa: B008 - immutable
        """A new database object."""
        return (
            PostgresDatabase(self.url, self.schema, pool, home=self.folder) if self.url else SqliteDatabase(self.path)
        )

    def open(self, clock: Clock | None = None, pool: PoolLimits = PoolLimits()) -> Records:  # noqa: B008 - immutable
        """Records as a process opens them."""
        return Records(self.database(pool), self.head, clock or FixedClock(NOON))

    @asynccontextmanager
    async def opened(self, clock: Clock | None = None, pool: PoolLimits = PoolLimits()) -> AsyncIterator[Records]:  # noqa: B008
        """The same, closed when the block ends."""
        records = self.open(clock, pool)
        try:
            yield records
        finally:
            await records.close()

    async def past(self, work: Callable[[Connection], T]) -> T:
        """Run a function on the database without a journal."""
        database = self.database()
        try:
            return await database.run(work, writing=True)
        finally:
            await database.close()

    async def tamper(self, *statements: str) -> None:
        """The same in SQL."""

        def work(connection: Connection) -> None:
            for statement in statements:
                connection.exec_driver_sql(statement)

        await self.past(work)

    async def entries(self) -> list[LedgerEntry]:
        """The entries of the ledger."""
        return await self.past(entries)

    async def faults(self) -> list[LedgerFault]:
        """The faults of the ledger, compared with the heads at which it may end."""
        return list(check(await self.entries(), ends=self.head.ends()))


def entries(connection: Connection) -> list[LedgerEntry]:
    """All entries of the ledger, in order."""
    return [LedgerEntry(**row._asdict()) for row in connection.execute(select(ledger).order_by(ledger.c.seq))]


def decision(name: str, **values: Any) -> dict[str, Any]:
    """A row with a column of every type."""
    return {
        "id": name,
        "principal": "me",
        "symbol": "AAPL",
        "action": "buy",
        "confidence": 0.5,
        "opportunity_score": None,
        "reasoning": "",
        "tool_calls": None,
        "created_at": NOON,
        **values,
    }
