"""SQL files that create all tables of an empty database at once, in a tenth of the time of the migrations.

Each folder of migrations has one for each kind of database, named by its newest version. `make tables` writes them; tests
compare them with the tables that the migrations create.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from sqlalchemy import Connection, inspect

if TYPE_CHECKING:
    from sqlalchemy.connectors.asyncio import AsyncAdapt_dbapi_connection

_BETWEEN = ";\n\n"
_TRAILING = re.compile(r" +$", re.MULTILINE)


def script_of(folder: Path, version: str, dialect: str) -> Path:
    """The script of a folder of migrations; a missing file means that the migrations must run."""
    return folder / f"{version}.{dialect}.sql"


def is_empty(connection: Connection) -> bool:
    """Returns True if a database, or the connection's schema of PostgreSQL, has no tables."""
    names = connection.get_execution_options().get("schema_translate_map") or {}
    return not inspect(connection).get_table_names(schema=names.get(None))


def run_script(connection: Connection, script: Path) -> None:
    """Create the tables in the current transaction."""
    if connection.dialect.is_async:
        driver = cast("AsyncAdapt_dbapi_connection", connection.connection.dbapi_connection)
        driver.run_async(lambda raw: raw.execute(_text(script)))
        return
    for statement in _text(script).removesuffix(_BETWEEN).split(_BETWEEN):
        connection.exec_driver_sql(statement)


@cache
def _text(script: Path) -> str:
    return script.read_text("utf-8")


def dump(connection: Connection) -> str:
    """Returns the script that creates the tables of an SQLite database, with its version but without other rows."""
    every = (
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid"
    )
    found = [str(sql) for sql in connection.exec_driver_sql(every).scalars()]
    (version,) = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalars()
    return joined(found, version)


def joined(statements: list[str], version: str) -> str:
    """Returns a script of statements that ends with the version."""
    stamp = f"INSERT INTO alembic_version (version_num) VALUES ('{version}')"
    return "".join(_TRAILING.sub("", statement) + _BETWEEN for statement in (*statements, stamp))
