"""Bringing a database to its newest form, and the one line in which writers queue."""

from __future__ import annotations

from sqlalchemy import Connection, inspect, text
from sqlalchemy.schema import CreateSchema, DropSchema

from openbell.market.errors import StoreError

NEWEST = "0002"
"""The last of `migrations/versions`; a test compares."""
_QUEUE = 701_287
"""Any number: PostgreSQL's advisory lock of the ledger, within one schema."""


def is_newest(connection: Connection) -> bool:
    """Whether there is nothing to do: asked first, since many may ask at once and only one can write."""
    return _version(connection) == NEWEST


def prepare(connection: Connection) -> None:
    """Migrate if need be. Alembic is loaded only then."""
    queue_up(connection)
    found = _version(connection)
    if found is not None and found > NEWEST:
        raise StoreError(
            f"the records are of version {found}, and this Openbell knows versions up to {NEWEST}: use a newer Openbell"
        )
    if found != NEWEST:
        from openbell.stores.records.migrate import upgrade

        upgrade(connection)


def create(connection: Connection, name: str) -> None:
    """Make a PostgreSQL schema if there is none. Asked first: who may only use it has no right to make one."""
    there = text("SELECT 1 FROM pg_namespace WHERE nspname = :name")
    if connection.execute(there, {"name": name}).scalar() is None:
        # Two that make it at once collide, whatever IF NOT EXISTS says.
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_QUEUE}, hashtext(:name))"), {"name": name})
        connection.execute(CreateSchema(name, if_not_exists=True))


def names(connection: Connection, prefix: str) -> list[str]:
    """The PostgreSQL schemas whose names begin with something."""
    every = connection.execute(text("SELECT nspname FROM pg_namespace")).scalars()
    return [name for name in every if name.startswith(prefix)]


def drop(connection: Connection, name: str) -> None:
    """Remove a PostgreSQL schema with all that is in it."""
    connection.execute(DropSchema(name, cascade=True, if_exists=True))


def queue_up(connection: Connection) -> None:
    """Wait for the writers before; they are done when their transaction is. SQLite's write lock does the same."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_QUEUE}, hashtext(current_schema()))"))


def _version(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)
