"""Runs the migrations inside a transaction that has already begun."""

from __future__ import annotations

from pathlib import Path

from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection

from openbell.market.errors import StoreError


def scripts(folder: Path) -> ScriptDirectory:
    """The migration scripts of a folder."""
    return ScriptDirectory(str(folder))


def upgrade(connection: Connection, folder: Path) -> None:
    """Run the migrations of a folder that the database lacks, in its current transaction. Raises `StoreError`."""
    directory = scripts(folder)

    def steps(revision: object, _context: object) -> list[object]:
        return list(directory._upgrade_revs("head", revision))  # type: ignore[arg-type]  # noqa: SLF001 - as Alembic's own commands do

    context = MigrationContext.configure(connection, opts={"fn": steps, "transactional_ddl": True})
    try:
        with Operations.context(context):
            context.run_migrations()
    except CommandError as error:
        raise StoreError(f"the records cannot be migrated: {error}") from error
