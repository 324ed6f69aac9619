"""Bringing a database to its newest form, and the one line in which writers queue."""

from __future__ import annotations

from sqlalchemy import Connection, inspect, text

from openbell.market.errors import StoreError

NEWEST = "0001"
"""The last of `migrations/versions`; a test compares."""
_QUEUE = 701_287
"""Any number: PostgreSQL's advisory lock of the ledger, within one schema."""


def prepare(connection: Connection) -> None:
    """Migrate if need be. Alembic is loaded only then."""
    if _version(connection) == NEWEST:
        return
    queue_up(connection)
    found = _version(connection)
    if found is not None and found > NEWEST:
        raise StoreError(f"the records are of version {found}, and this Openbell knows {NEWEST}: use a newer one")
    if found != NEWEST:
        from openbell.stores.records.migrate import upgrade

        upgrade(connection)


def queue_up(connection: Connection) -> None:
    """Wait for the writers before; they are done when their transaction is. SQLite's write lock does the same."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_QUEUE}, hashtext(current_schema()))"))


def _version(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)
