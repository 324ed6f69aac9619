"""Records behind a real PgBouncer that drops `search_path` and gives each transaction any of its sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from openbell.market.errors import LeaseHeld
from openbell.stores.access.store import A_TABLE, AccessStore
from openbell.stores.records import leases
from openbell.stores.records.postgres import PoolLimits, PostgresDatabase
from tests.stores.records.contract import put, rows, run
from tests.stores.records.pgbouncer import PgBouncer
from tests.stores.records.places import Place
from tests.stores.records.postgres_server import NotHere, PostgresServer

TABLES = (
    "SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
)


@pytest.fixture(params=[("transaction", 1), ("transaction", 4), ("session", 40)], ids=str)
def proxy(server: PostgresServer, request: pytest.FixtureRequest) -> Iterator[PgBouncer]:
    try:
        proxy = PgBouncer(server, *request.param)
    except NotHere as error:
        pytest.skip(f"NOT TESTED: {error}")
    yield proxy
    proxy.close()


def test_records_work_behind_a_proxy_and_every_table_is_in_its_schema(
    server: PostgresServer, proxy: PgBouncer, on_postgres: Place, tmp_path: Path
) -> None:
    # The server's own default is another schema, where nothing must appear.
    server.ask("CREATE SCHEMA IF NOT EXISTS elsewhere")
    server.ask("ALTER ROLE openbell IN DATABASE postgres SET search_path = elsewhere")
    try:
        run(lambda: _work(replace(on_postgres, url=proxy.url), tmp_path))
    finally:
        server.ask("ALTER ROLE openbell IN DATABASE postgres RESET search_path")
    found = {str(each) for each in server.ask(TABLES)}
    assert {f"{on_postgres.schema}.ledger", f"{on_postgres.schema}.alembic_version"} <= found
    assert f"{on_postgres.schema} access.users" in found
    assert not [each for each in found if each.startswith(("public.", "elsewhere."))]


async def _work(place: Place, folder: Path) -> None:
    pool = PoolLimits(least=1, most=4)
    async with place.opened(pool=pool) as one, place.opened(pool=pool) as other:
        await asyncio.gather(*(records.write(put(f"{n}")) for n, records in enumerate([one, other] * 10)))
        found = await asyncio.gather(*(records.read(rows) for records in [one, other] * 5))
        assert [len(each) for each in found] == [20] * 10
        await one.write(lambda journal: leases.acquire(journal.view, "engine", "one", 60))
        with pytest.raises(LeaseHeld):
            await other.write(lambda journal: leases.acquire(journal.view, "engine", "two", 60))
        settings = "SELECT current_setting('synchronous_commit') || current_setting('transaction_read_only')"
        assert await one.read(lambda view: view.execute(text(settings)).scalar()) == "onon"
        # Names carry their schema, whatever the search path is.
        nowhere = text("SELECT set_config('search_path', '', true)")
        assert await one.read(lambda view: (view.execute(nowhere), len(rows(view)))[1]) == 20
        # Commits of others are noticed, although a proxy loses notifications.
        before = other.version()
        await one.write(put("more"))
        async with asyncio.timeout(10):
            while other.version() == before:
                await asyncio.sleep(0.05)
    access = AccessStore(PostgresDatabase(place.url, f"{place.schema} access", pool, table=A_TABLE))
    assert len(await access.key()) == 32
    await access.close()
    assert await place.faults() == []
