"""The port to a database, which SQLite and PostgreSQL implement; its migration before first use, and a trial of writing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar

from sqlalchemy import Connection, MetaData, delete, false, insert, select, update

from openbell.market.errors import StoreError, StoreUnreachable
from openbell.stores.records import failures, schema
from openbell.stores.records.schema import Tables
from openbell.stores.records.sqlite import EmptyDatabase

T = TypeVar("T")


class Database(Protocol):
    """Runs functions as transactions."""

    source: str
    """The name that results show as their source: `sqlite` or `postgresql`."""
    where: str
    """A description of the place, without secrets."""

    async def run(
        self, work: Callable[[Connection], T], *, writing: bool, then: Callable[[T], None] | None = None
    ) -> T:
        """Run `work` in a transaction and return its result. `then` is called with it after the commit and may block."""

    def version(self) -> Hashable:
        """Returns a value that differs after every commit, by this or another process; cheap to call."""

    def announce(self, connection: Connection) -> None:
        """Let `version` of every process differ once this transaction has committed."""

    async def exists(self) -> bool:
        """Returns True if there are tables. Creates nothing."""

    def open_connections(self) -> None:
        """Open the least number of connections that it keeps, in the background, and keep as many from now on."""

    async def close(self) -> None:
        """Close all connections."""


class MigratedDatabase:
    """A database whose tables are created or migrated once, before its first transaction.

    While it does not exist and must not be created, reads see an empty one instead.
    """

    def __init__(
        self, database: Database, tables: Tables, content: str, *, reads_create: bool = True, read_only: bool = False
    ) -> None:
        """`content` names what the tables hold, for messages. `reads_create`: reads create them too, unless `read_only`."""
        self._database = database
        self._tables = tables
        self._content = content
        self._reads_create = reads_create
        self._read_only = read_only
        self._prepared: asyncio.Task[None] | None = None
        self._empty: EmptyDatabase | None = None
        """Read instead of the database while that does not exist and this process must not create it."""

    @property
    def is_absent(self) -> bool:
        """True while reads see an empty database."""
        return self._empty is not None

    async def prepare(self, *, creates: bool = False) -> None:
        """Create or migrate the tables once. Raises `StoreError`."""
        # While the database is absent: the tables must be created now, or another process has created them.
        needs_tables = creates or (self._empty is not None and await self.exists())
        while self._prepared is not None and not self._prepared.done():
            await asyncio.shield(self._prepared)
        failed = self._prepared is None or self._prepared.cancelled() or self._prepared.exception()
        if failed or (self._empty is not None and needs_tables):
            self._prepared = asyncio.ensure_future(self._migrate(creates=creates or self._reads_create))
            await asyncio.shield(self._prepared)

    async def _migrate(self, *, creates: bool) -> None:
        if (self._read_only or not creates) and not await self.exists():
            self._empty = self._empty or EmptyDatabase(self._tables)
            return
        if not await self._run(lambda connection: schema.is_newest(connection, self._tables), writing=False):
            await self._upgrade()
        # Not before: reads that have begun use the empty database until there are tables.
        self._empty = None

    async def _upgrade(self) -> None:
        if self._read_only:
            raise StoreError(
                f"{self._content} in {self._database.where} are of another version of Openbell, and --read-only changes "
                "nothing: start Openbell once without --read-only"
            )
        async with schema.migrating():
            await self._run(lambda connection: schema.prepare(connection, self._tables), writing=True)

    async def exists(self) -> bool:
        """Returns True if there are tables. Raises `StoreError`."""
        with failures.translated(self._database.where):
            return await self._database.exists()

    def begin_write(self, connection: Connection) -> None:
        """Wait for other writers, inside a transaction.

        Raises `OtherVersion`; the next `prepare` migrates older tables, and refuses newer ones.
        """
        schema.wait_for_writers(connection)
        try:
            schema.check_version(connection, self._tables)
        except schema.OtherVersion:
            self._prepared = None
            raise

    async def run(
        self, work: Callable[[Connection], T], *, writing: bool, then: Callable[[T], None] | None = None
    ) -> T:
        """Run `work` in a transaction; see `Database`. Raises `StoreError` without statements or values."""
        if self._empty is not None and not writing:
            return self._empty.read(work)
        return await self._run(work, writing=writing, then=then)

    async def _run(
        self, work: Callable[[Connection], T], *, writing: bool, then: Callable[[T], None] | None = None
    ) -> T:
        with failures.translated(self._database.where):
            return await self._database.run(work, writing=writing, then=then)

    async def close(self) -> None:
        """Close all connections."""
        await self._database.close()
        if self._empty is not None:
            self._empty.close()


class _Accepted(Exception):
    """Raised at the end of the trial, so that the transaction is rolled back."""


async def write_refusal(database: Database, tables: MetaData) -> str:
    """Why a database refuses to insert, change or delete rows of a table; empty if it accepts all of it.

    Raises `StoreUnreachable`.

    The statements touch no row: a role that may only read, and a standby that only replicates, refuse them all the same.
    """
    try:
        with failures.translated(database.where):
            await database.run(lambda connection: _try(connection, tables), writing=True)
    except _Accepted:
        return ""
    except StoreUnreachable:
        raise
    except StoreError as error:
        return error.message
    return ""


def _try(connection: Connection, tables: MetaData) -> None:
    for table in tables.sorted_tables:
        names = [column.name for column in table.columns]
        connection.execute(insert(table).from_select(names, select(table).where(false())))
        connection.execute(update(table).values({names[0]: table.c[names[0]]}).where(false()))
        connection.execute(delete(table).where(false()))
    raise _Accepted
