"""Migrations: an empty database gets the tables once, even if several processes open it at the same moment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, inspect, text

from openbell.market.errors import StoreError
from openbell.stores.access.tables import ACCESS
from openbell.stores.records import schema
from openbell.stores.records.schema import Tables, scripts, upgrade
from openbell.stores.records.snapshot import View
from openbell.stores.records.tables import RECORDS, metadata
from tests.stores.records import partner
from tests.stores.records.partner import Partner
from tests.stores.records.places import Place


def version(connection: Connection | View) -> str:
    return str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one())


def prepared(place: Place) -> None:
    """Open the records once, which migrates them."""

    async def main() -> None:
        async with place.opened() as records:
            assert await records.read(version) == RECORDS.newest

    asyncio.run(main())


@pytest.mark.parametrize("tables", [RECORDS, ACCESS], ids=["records", "access"])
def test_the_newest_version_is_that_of_the_last_migration(tables: Tables) -> None:
    assert scripts(tables.migrations).get_heads() == [tables.newest]


def test_versions_are_in_the_order_of_their_names() -> None:
    names = [script.revision for script in scripts(RECORDS.migrations).walk_revisions()]
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
    with Partner(partner.load, place) as other:
        other.go()
        assert other.hear() is False


CATALOGUE = {
    "sqlite": ("SELECT name, tbl_name, sql FROM sqlite_master",),
    "postgresql": (
        (
            "SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns "
            "WHERE table_schema = current_schema()"
        ),
        "SELECT tablename, replace(indexdef, current_schema(), '') FROM pg_indexes WHERE schemaname = current_schema()",
        (
            "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint "
            "WHERE connamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())"
        ),
    ),
}
"""Queries for everything that a database has."""


@pytest.mark.parametrize("tables", [RECORDS, ACCESS], ids=["records", "access"])
def test_an_empty_database_gets_the_tables_of_the_migrations(place: Place, tables: Tables) -> None:
    def catalogue(connection: Connection) -> list[list[tuple[Any, ...]]]:
        queries = (*CATALOGUE[connection.dialect.name], "SELECT version_num FROM alembic_version")
        found = [[tuple(row) for row in connection.exec_driver_sql(each)] for each in queries]
        return [sorted((_plain(row) for row in rows), key=str) for rows in found]

    async def made_by(create: Callable[[Connection], None], number: int) -> list[list[tuple[Any, ...]]]:
        def work(connection: Connection) -> list[list[tuple[Any, ...]]]:
            create(connection)
            return catalogue(connection)

        return await replace(place, folder=place.folder / str(number), schema=f"{place.schema} {number}").past(work)

    created = asyncio.run(made_by(lambda connection: schema.prepare(connection, tables), 1))
    assert len(created[0]) > 10
    assert asyncio.run(made_by(lambda connection: upgrade(connection, tables.migrations), 2)) == created


def _plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row whose statements have no white space: compilers set it differently."""
    return tuple("".join(each.split()) if isinstance(each, str) else each for each in row)


def test_tables_without_a_version_are_not_taken_for_an_empty_database(place: Place) -> None:
    asyncio.run(place.tamper("CREATE TABLE accounts (name TEXT)"))

    async def main() -> None:
        async with place.opened() as records:
            with pytest.raises(StoreError, match=r'accounts"? already exists'):
                await records.read(version)

    asyncio.run(main())


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
    def fail(connection: Connection, _tables: Tables) -> None:
        connection.execute(text("CREATE TABLE half (a TEXT)"))
        connection.execute(text("SELECT 1 FROM nowhere"))

    async def main() -> None:
        async with place.opened() as records:
            with monkeypatch.context() as patch:
                patch.setattr(schema, "prepare", fail)
                with pytest.raises(StoreError, match="nowhere"):
                    await records.read(version)
            assert await records.read(version) == RECORDS.newest
            assert not await records.read(lambda connection: inspect(connection.connection).has_table("half"))

    asyncio.run(main())
