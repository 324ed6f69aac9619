"""Migrations: an empty database gets the tables once, even if several processes open it at the same moment."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, inspect, text

from openbell.market.errors import StoreError
from openbell.stores.access.store import MIGRATIONS
from openbell.stores.records import schema
from openbell.stores.records.migrate import scripts, upgrade
from openbell.stores.records.pool import Pool
from openbell.stores.records.postgres import PostgresDatabase
from openbell.stores.records.sqlite import engine_for
from openbell.stores.records.table_script import dump, run_script, script_of
from openbell.stores.records.tables import metadata
from openbell.stores.records.view import View
from tests.stores.records import partner
from tests.stores.records.partner import Partner
from tests.stores.records.places import Place


def version(connection: Connection | View) -> str:
    return str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one())


def prepared(place: Place) -> None:
    """Open the records once, which migrates them."""

    async def main() -> None:
        async with place.opened() as records:
            assert await records.read(version) == schema.NEWEST

    asyncio.run(main())


def test_the_newest_version_is_that_of_the_last_script() -> None:
    assert scripts().get_heads() == [schema.NEWEST]


def test_versions_are_in_the_order_of_their_names() -> None:
    names = [script.revision for script in scripts().walk_revisions()]
    assert names == sorted(names, reverse=True)


def test_an_empty_database_is_migrated_to_the_tables(place: Place) -> None:
    prepared(place)

    def differences(connection: Connection) -> Any:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        return compare_metadata(context, metadata)

    assert asyncio.run(place.past(differences)) == []


def test_the_comparison_finds_a_difference(place: Place) -> None:
    prepared(place)
    asyncio.run(place.tamper("DROP INDEX ix_orders_parent", "ALTER TABLE marks ADD COLUMN more TEXT"))

    def differences(connection: Connection) -> list[str]:
        return sorted(each[0] for each in compare_metadata(MigrationContext.configure(connection), metadata))

    assert asyncio.run(place.past(differences)) == ["add_index", "remove_column"]


def test_processes_that_open_an_empty_database_at_once_do_not_collide(place: Place) -> None:
    with ExitStack() as stack:
        partners = [stack.enter_context(Partner(partner.load, place)) for _ in range(5)]
        for each in partners:
            each.go()
        assert [each.hear() for each in partners] == [False] * 5, "only migrations load Alembic"
    prepared(place)


FOLDERS = pytest.mark.parametrize("folder", [schema.FOLDER, MIGRATIONS], ids=lambda folder: folder.parent.name)


@FOLDERS
def test_the_script_for_an_empty_database_creates_the_tables_of_the_migrations(folder: Path) -> None:
    (newest,) = scripts(folder).get_heads()
    script = script_of(folder, str(newest), "sqlite")
    assert {each.name for each in folder.glob("*.sql")} == {f"{newest}.sqlite.sql", f"{newest}.postgresql.sql"}
    dumps = []
    for create, given in ((upgrade, folder), (run_script, script)):
        engine = engine_for(":memory:")
        with engine.begin() as connection:
            create(connection, given)
            dumps.append(dump(connection))
        engine.dispose()
    assert dumps[0] == dumps[1], "make tables writes it anew"


CATALOGUE = (
    (
        "SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns "
        "WHERE table_schema = current_schema()"
    ),
    "SELECT tablename, replace(indexdef, current_schema(), '') FROM pg_indexes WHERE schemaname = current_schema()",
    (
        "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE connamespace = current_schema()::regnamespace"
    ),
    "SELECT version_num FROM alembic_version",
)


@FOLDERS
def test_the_script_for_postgresql_creates_the_tables_of_the_migrations(database: str, folder: Path) -> None:
    (newest,) = scripts(folder).get_heads()
    script = script_of(folder, str(newest), "postgresql")

    async def catalogue(name: str, create: Any, given: Path) -> list[list[Any]]:
        def work(connection: Connection) -> list[list[Any]]:
            create(connection, given)
            return [sorted(map(tuple, connection.exec_driver_sql(each))) for each in CATALOGUE]

        made = PostgresDatabase(database, name, Pool())
        try:
            return await made.run(work, writing=True)
        finally:
            await made.close()

    migrated = asyncio.run(catalogue("migrated", upgrade, folder))
    assert len(migrated[0]) > 10
    assert asyncio.run(catalogue("scripted", run_script, script)) == migrated, "make tables writes it anew"


def test_tables_without_a_version_are_not_taken_for_an_empty_database(place: Place) -> None:
    asyncio.run(place.tamper("CREATE TABLE accounts (name TEXT)"))

    async def main() -> None:
        async with place.opened() as records:
            with pytest.raises(StoreError, match=r'accounts"? already exists'):
                await records.read(version)

    asyncio.run(main())


UNDONE = (
    "UPDATE alembic_version SET version_num = '0004'",
    "DROP TABLE crossing_subscriptions",
    "ALTER TABLE pushes DROP COLUMN method",
    "ALTER TABLE cursors DROP COLUMN signals",
)
"""Back from version 0005 to the one before."""


def test_alembic_is_loaded_only_for_migrations(place: Place) -> None:
    for needed in (False, False, True):
        if needed:
            asyncio.run(place.tamper(*UNDONE))
        with Partner(partner.load, place) as other:
            other.go()
            assert other.hear() is needed


def test_a_database_of_a_newer_version_is_refused(place: Place) -> None:
    prepared(place)
    asyncio.run(place.tamper("UPDATE alembic_version SET version_num = '9999'"))

    async def main() -> None:
        async with place.opened() as records:
            for _ in range(2):
                with pytest.raises(StoreError, match=r"version 9999.*use a newer Openbell"):
                    await records.read(version)
            with pytest.raises(StoreError, match="9999"):
                await records.write(lambda journal: journal.note("k", "x", 1))

    asyncio.run(main())


def test_an_unknown_version_is_refused(place: Place) -> None:
    prepared(place)
    asyncio.run(place.tamper("UPDATE alembic_version SET version_num = '0000'"))

    async def main() -> None:
        async with place.opened() as records:
            with pytest.raises(StoreError, match="the records cannot be migrated"):
                await records.read(version)

    asyncio.run(main())


def test_a_migration_that_fails_leaves_nothing_and_is_tried_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(connection: Connection | View) -> None:
        connection.execute(text("CREATE TABLE half (a TEXT)"))
        connection.execute(text("SELECT 1 FROM nowhere"))

    async def main() -> None:
        async with place.opened() as records:
            with monkeypatch.context() as patch:
                patch.setattr(schema, "prepare", fail)
                with pytest.raises(StoreError, match="nowhere"):
                    await records.read(version)
            assert await records.read(version) == schema.NEWEST
            assert not await records.read(lambda connection: inspect(connection.connection).has_table("half"))

    asyncio.run(main())
