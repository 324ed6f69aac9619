"""Opens the database of users and tokens, which belongs to the desk and not to a market or a scenario."""

from __future__ import annotations

from openbell.desk.settings import Settings
from openbell.stores.access.store import A_TABLE, AccessStore
from openbell.stores.records.database import Database

SCHEMA = "openbell_access"
"""The schema in PostgreSQL. Desks that share a database share their users."""
FILE = "access.sqlite"


def make_access(settings: Settings) -> AccessStore:
    """Returns the store of users and tokens. Must be called in a running event loop; close it there."""
    database: Database
    creates = not settings.read_only
    if settings.database_url:
        from openbell.desk.settings.open_records import postgres_pool
        from openbell.stores.records.postgres import PostgresDatabase

        pool = postgres_pool(settings)
        database = PostgresDatabase(settings.database_url, SCHEMA, pool, creates=creates, table=A_TABLE)
    else:
        from openbell.stores.records.sqlite import SqliteDatabase

        database = SqliteDatabase(settings.home / FILE, read_only=settings.read_only, table=A_TABLE)
    return AccessStore(database, read_only=settings.read_only)
