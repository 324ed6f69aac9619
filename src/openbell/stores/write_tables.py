"""Writes the scripts that create the tables of a new desk: `make tables`, after each new migration."""

from __future__ import annotations

from pathlib import Path

from openbell.stores.access.store import MIGRATIONS
from openbell.stores.records.migrate import scripts, upgrade
from openbell.stores.records.schema import FOLDER
from openbell.stores.records.sqlite import engine_for
from openbell.stores.records.table_script import dump, script_of


def write(folder: Path) -> None:
    """Run the migrations of a folder on an empty database and write its script."""
    engine = engine_for(":memory:")
    with engine.begin() as connection:
        upgrade(connection, folder)
        text = dump(connection)
    engine.dispose()
    for old in folder.glob("*.sql"):
        old.unlink()
    (newest,) = scripts(folder).get_heads()
    script_of(folder, newest).write_text(text, "utf-8")


if __name__ == "__main__":
    for each in (MIGRATIONS, FOLDER):
        write(each)
