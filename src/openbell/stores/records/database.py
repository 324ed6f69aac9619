"""The port to a database, which SQLite and PostgreSQL implement, and a trial whether one accepts writes."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar

from sqlalchemy import Connection, MetaData, delete, false, insert, select, update

from openbell.market.errors import StoreError, StoreUnreachable
from openbell.stores.records import failures

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
