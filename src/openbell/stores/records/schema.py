"""What all tables share: types of columns, version and migrations, PostgreSQL schemas, and the lock of writers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Float,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    inspect,
    select,
    text,
)
from sqlalchemy.dialects.sqlite import INTEGER
from sqlalchemy.schema import CreateIndex, CreateSchema, CreateTable, DropSchema

from openbell.market.errors import StoreError

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory
    from sqlalchemy.connectors.asyncio import AsyncAdapt_dbapi_connection

NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
"""How indexes and constraints are named."""
Number = BigInteger().with_variant(INTEGER, "sqlite")
Time = Float(53)

HOME = "openbell_home"
"""The option of a connection that names the folder in which processes prove that they run (`stores.leases`)."""
_WRITE_LOCK = 701_287
"""The number of PostgreSQL's advisory lock for writers of one schema; any number would do."""
_LOCK = text(f"SELECT pg_advisory_xact_lock({_WRITE_LOCK}, hashtext(:name))")
_versions = Table(
    # As Alembic creates it.
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
_VERSION = select(_versions.c.version_num)
_migrating = threading.Lock()
_statements: dict[tuple[Tables, str], list[str]] = {}
"""The statements that create tables, by the name of the dialect. Compiling them takes longer than running them."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of a database, their version, and the migrations that lead older tables to it."""

    metadata: MetaData
    newest: str
    """The last revision in `versions` of the migrations; a test compares."""
    migrations: Path


class OtherVersion(StoreError):
    """The tables have another version than they had when this process opened them."""


@asynccontextmanager
async def migrating() -> AsyncIterator[None]:
    """Wait for other migrations in this process: Alembic's scripts can run on one database at a time."""
    while not _migrating.acquire(blocking=False):
        await asyncio.sleep(0.01)
    try:
        yield
    finally:
        _migrating.release()


def is_newest(connection: Connection, tables: Tables) -> bool:
    """Returns True if no migration is needed. Checked before `prepare`, because many can read but only one can write."""
    return _version(connection) == tables.newest


def prepare(connection: Connection, tables: Tables) -> None:
    """Create or migrate the tables if needed. Alembic is imported only for migrations.

    Raises `StoreError` if the tables are of a newer version.
    """
    wait_for_writers(connection)
    found = _version(connection)
    if found is not None and found > tables.newest:
        raise StoreError(
            f"the records have version {found}, and this Openbell supports versions up to {tables.newest}: use a newer "
            "Openbell"
        )
    if found == tables.newest:
        return
    if found is None and not inspect(connection).get_table_names(schema=schema_of(connection)):
        create_tables(connection, tables)
        return

    upgrade(connection, tables.migrations)


def create_tables(connection: Connection, tables: Tables) -> None:
    """Create all tables of an empty database as the migrations would, in a sixth of their time."""
    key = tables, connection.dialect.name
    statements = _statements.get(key) or _statements.setdefault(key, _compiled(connection, tables))
    if connection.dialect.is_async:
        driver = cast("AsyncAdapt_dbapi_connection", connection.connection.dbapi_connection)
        driver.run_async(lambda raw: raw.execute(";".join(statements)))
        return
    for statement in statements:
        connection.exec_driver_sql(statement)


def _compiled(connection: Connection, tables: Tables) -> list[str]:
    every = [_versions, *tables.metadata.sorted_tables]
    made = [CreateTable(table) for table in every], [CreateIndex(each) for table in every for each in table.indexes]
    stamp = f"INSERT INTO {_versions.name} VALUES ('{tables.newest}')"
    return [*(str(each.compile(dialect=connection.dialect)) for some in made for each in some), stamp]


def create(connection: Connection, name: str) -> None:
    """Create a PostgreSQL schema if it does not exist. Checked first: the user may lack the right to create one."""
    exists = text("SELECT 1 FROM pg_namespace WHERE nspname = :name")
    if connection.execute(exists, {"name": name}).scalar() is None:
        # CREATE SCHEMA IF NOT EXISTS fails if two connections run it at once.
        connection.execute(_LOCK, {"name": name})
        connection.execute(CreateSchema(name, if_not_exists=True))


def names(connection: Connection, prefix: str) -> list[str]:
    """The PostgreSQL schemas whose names start with `prefix`."""
    every = connection.execute(text("SELECT nspname FROM pg_namespace")).scalars()
    return [name for name in every if name.startswith(prefix)]


def drop(connection: Connection, name: str) -> None:
    """Drop a PostgreSQL schema and everything in it."""
    connection.execute(DropSchema(name, cascade=True, if_exists=True))


def wait_for_writers(connection: Connection) -> None:
    """Wait until earlier write transactions have ended, then hold the lock. On SQLite BEGIN IMMEDIATE has done this."""
    if connection.dialect.name == "postgresql":
        connection.execute(_LOCK, {"name": schema_of(connection)})


def check_version(connection: Connection, tables: Tables) -> None:
    """Raise `OtherVersion` unless the tables have this Openbell's version. To be called with the lock of writers."""
    found = connection.execute(_VERSION).scalar()
    if found != tables.newest:
        raise OtherVersion(
            f"the tables have version {found} since another Openbell has changed them, and this Openbell writes version "
            f"{tables.newest}: nothing was written. Start the same version of Openbell everywhere"
        )


def schema_of(connection: Connection) -> str | None:
    """The PostgreSQL schema of a connection; None on SQLite."""
    names: dict[str | None, str] = connection.get_execution_options().get("schema_translate_map") or {}
    return names.get(None)


def _version(connection: Connection) -> str | None:
    if not inspect(connection).has_table(_versions.name, schema=schema_of(connection)):
        return None
    found = connection.execute(_VERSION).scalar()
    return None if found is None else str(found)


def scripts(folder: Path) -> ScriptDirectory:
    """The migration scripts of a folder."""
    from alembic.script import ScriptDirectory

    return ScriptDirectory(str(folder))


def upgrade(connection: Connection, folder: Path) -> None:
    """Run the migrations of a folder that the database lacks, in its current transaction. Raises `StoreError`."""
    from alembic.migration import MigrationContext
    from alembic.operations import Operations
    from alembic.util import CommandError

    directory = scripts(folder)

    def steps(revision: object, _context: object) -> list[object]:
        return list(directory._upgrade_revs("head", revision))  # type: ignore[arg-type]  # noqa: SLF001 - as Alembic's own commands do

    context = MigrationContext.configure(connection, opts={"fn": steps, "transactional_ddl": True})
    try:
        with Operations.context(context):
            context.run_migrations()
    except CommandError as error:
        raise StoreError(f"the records cannot be migrated: {error}") from error
