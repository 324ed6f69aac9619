"""Tries whether a database accepts writes, and leaves nothing behind."""

from __future__ import annotations

from sqlalchemy import Connection, MetaData, delete, false, insert, select, update

from openbell.market.errors import StoreError, StoreUnreachable
from openbell.stores.records import failures
from openbell.stores.records.database import Database
from openbell.stores.records.tables import metadata


class _Accepted(Exception):
    """Raised at the end of the trial, so that the transaction is rolled back."""


async def write_refusal(database: Database, tables: MetaData = metadata) -> str:
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
