"""SQL files that create all tables of an empty SQLite database at once, in a tenth of the time of the migrations.

Each folder of migrations has one, named by its newest version. `make tables` writes them; a test compares them with the
tables that the migrations create.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from sqlalchemy import Connection

_BETWEEN = ";\n\n"
_TRAILING = re.compile(r" +$", re.MULTILINE)


def script_of(folder: Path, version: str) -> Path:
    """The script of a folder of migrations; a missing file means that the migrations must run."""
    return folder / f"{version}.sql"


def is_empty(connection: Connection) -> bool:
    """Returns True if an SQLite database has no tables."""
    return connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar() == 0


def run_script(connection: Connection, script: Path) -> None:
    """Create the tables in the current transaction."""
    for statement in _statements(script):
        connection.exec_driver_sql(statement)


@cache
def _statements(script: Path) -> tuple[str, ...]:
    return tuple(script.read_text("utf-8").removesuffix(_BETWEEN).split(_BETWEEN))


def dump(connection: Connection) -> str:
    """Returns the script that creates the tables of an SQLite database, with its version but without other rows."""
    every = (
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid"
    )
    found = [_TRAILING.sub("", sql) for sql in connection.exec_driver_sql(every).scalars()]
    (version,) = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalars()
    found.append(f"INSERT INTO alembic_version (version_num) VALUES ('{version}')")
    return "".join(statement + _BETWEEN for statement in found)
