"""Writes the scripts that create the tables of a new desk: `make tables`, after each new migration."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import MetaData
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable

from openbell.stores.access import tables as access_tables
from openbell.stores.access.store import MIGRATIONS
from openbell.stores.records import tables as records_tables
from openbell.stores.records.migrate import scripts, upgrade
from openbell.stores.records.schema import FOLDER
from openbell.stores.records.sqlite import engine_for
from openbell.stores.records.table_script import dump, joined, script_of

_VERSION_TABLE = """CREATE TABLE alembic_version (
\tversion_num VARCHAR(32) NOT NULL,
\tCONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
)"""


def write(folder: Path, metadata: MetaData) -> None:
    """Write the script of the tables that the migrations of a folder create on SQLite, and that of PostgreSQL."""
    engine = engine_for(":memory:")
    with engine.begin() as connection:
        upgrade(connection, folder)
        text = dump(connection)
    engine.dispose()
    for old in folder.glob("*.sql"):
        old.unlink()
    (newest,) = scripts(folder).get_heads()
    script_of(folder, newest, "sqlite").write_text(text, "utf-8")
    script_of(folder, newest, "postgresql").write_text(postgresql_script(metadata, newest), "utf-8")


def postgresql_script(metadata: MetaData, version: str) -> str:
    """Returns the script that creates tables in the current schema of PostgreSQL."""
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    found = [_VERSION_TABLE]
    for table in metadata.sorted_tables:
        found.append(str(CreateTable(table).compile(dialect=dialect)).strip())
        indexes = sorted(table.indexes, key=lambda index: str(index.name))
        found += [str(CreateIndex(index).compile(dialect=dialect)) for index in indexes]
    return joined(found, version)


if __name__ == "__main__":
    write(FOLDER, records_tables.metadata)
    write(MIGRATIONS, access_tables.metadata)
