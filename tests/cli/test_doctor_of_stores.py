"""`openbell doctor` on stores that lost bars or refuse writes: files, SQLite, a real PostgreSQL and a real InfluxDB."""

from __future__ import annotations

import json
import os
import resource
import shutil
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from openbell.desk.desk import Desk
from openbell.desk.settings import load
from openbell.market.provenance import Origin, Source
from openbell.stores.parquet import bar_files
from openbell.stores.port import BarStore, Span
from tests.client import OPENBELL, Client, environment, run
from tests.feeds.alpaca_server import AlpacaServer
from tests.gateway.streamable.gateways import add_tokens
from tests.prefork import Process
from tests.stores.influx_server import InfluxServer, own_server
from tests.stores.records.postgres_server import PostgresServer
from tests.stores.samples import DAY, EVER, FILE, LIVE, MINUTE, SEPTEMBER, minutes_of
from tests.stores.samples import run as minutes
from tests.waiting import wait_for

BTC = minutes_of("BTC/USD")
DAYS = Span(SEPTEMBER, SEPTEMBER + 5 * DAY)
ORDER = {"symbol": "BTC/USD", "side": "buy", "type": "market", "quantity": "0.001"}


@pytest.fixture(params=["parquet", "influxdb"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    if request.param == "parquet":
        return {}
    server = request.getfixturevalue("influx")
    return {"INFLUX_URL": server.url, "INFLUX_DATABASE": f"d{abs(hash(str(tmp_path)))}"}


def store_of(home: Path, settings: dict[str, str]) -> BarStore:
    given = {f"OPENBELL_{name}": value for name, value in {"HOME": str(home), **settings}.items()}
    return Desk(load(given)).store


def lose(home: Path, settings: dict[str, str], request: pytest.FixtureRequest, keeps: Span | None = None) -> None:
    """Lose all minutes of BTC/USD but those of a span, as an older copy would."""
    with closing(store_of(home, settings)) as store:
        kept = store.read(BTC, keeps.start, keeps.end) if keeps else None
    if "INFLUX_URL" in settings:
        server: InfluxServer = request.getfixturevalue("influx")
        name = settings["INFLUX_DATABASE"] + ("" if settings.get("FEED") else "_simulated_7")
        if keeps is None:
            server.query(f'DROP DATABASE "{name}"')
        else:
            for bounds in (f"time < {keeps.start}s", f"time >= {keeps.end}s"):
                server.query(f"DELETE FROM candles WHERE currency_pair = 'BTC/USD' AND {bounds}", name)
        return
    for path in home.rglob("1min/BTC_USD_*.parquet"):
        if kept is None:
            path.unlink()
        else:
            file = bar_files.bar_file(path.parents[2], BTC, path.stem.rpartition("_")[2])
            source = bar_files.source_of(file)
            assert source
            bar_files.write(file, kept, source)


def candles(home: Path, timeframe: str, **settings: str) -> list[dict[str, Any]]:
    asked = json.dumps({"symbol": "BTC/USD", "timeframe": timeframe, "limit": 500})
    done = run(home, "call", "market-data", "get_candles", asked, **settings)
    answer = json.loads(done.stdout)
    if "data" not in answer:
        return []
    found: list[dict[str, Any]] = answer["data"]["items"]
    return found


def test_lost_imports_are_named_until_they_are_there_again(
    tmp_path: Path, settings: dict[str, str], request: pytest.FixtureRequest
) -> None:
    """No larger bar is made of the minutes that are left of a lost day."""
    settings = {**settings, "FEED": "none"}
    with closing(store_of(tmp_path, settings)) as store:
        store.write([minutes("BTC/USD", SEPTEMBER, 5 * 1440)], FILE, covers=DAYS)
    whole = {timeframe: candles(tmp_path, timeframe, **settings) for timeframe in ("1h", "1d")}
    assert [len(each) for each in whole.values()] == [120, 5]
    lose(tmp_path, settings, request, Span(SEPTEMBER, SEPTEMBER + 2 * DAY + 630 * MINUTE))

    found = run(tmp_path, "doctor", **settings)
    mended = run(tmp_path, "doctor", "--mend", **settings)
    after = run(tmp_path, "doctor", **settings)

    assert (found.returncode, after.returncode) == (1, 1)
    sentence = "has lost 3690 of 7200 bars of BTC/USD 2025-09 (2025-09-03 to 2025-09-05); THEY WERE IMPORTED"
    assert f"{sentence} AND NO FEED HAS THEM" in found.stdout
    assert sentence in mended.stdout
    assert sentence in after.stdout
    assert candles(tmp_path, "1h", **settings) == whole["1h"][:48]
    assert candles(tmp_path, "1d", **settings) == whole["1d"][:2]
    with closing(store_of(tmp_path, settings)) as store:
        store.write([minutes("BTC/USD", SEPTEMBER, 5 * 1440)], FILE, covers=DAYS)
    assert run(tmp_path, "doctor", **settings).returncode == 0
    assert {timeframe: candles(tmp_path, timeframe, **settings) for timeframe in whole} == whole


def test_a_collector_fetches_lost_minutes_again(
    tmp_path: Path, settings: dict[str, str], request: pytest.FixtureRequest
) -> None:
    (tmp_path / "watchlist.txt").write_text("BTC/USD\n")
    run(tmp_path, "backfill", "BTC/USD", "-t", "1m", "--from", "2026-11", **settings)
    expected = candles(tmp_path, "5m", **settings)
    assert len(expected) > 300
    with closing(store_of(tmp_path, settings)) as store:
        before = store.read(BTC, 0, EVER)
    assert len(before) > 3000
    lose(tmp_path, settings, request)

    found = run(tmp_path, "doctor", **settings)
    assert found.returncode == 1
    assert "is gone with all " in found.stdout, found.stdout
    assert "they will be fetched again" in found.stdout
    process = Process(
        [*OPENBELL, "collect"], env=environment(tmp_path, **settings), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    with process, closing(store_of(tmp_path, settings)) as store:
        latest = int(before.time[-1])
        wait_for(lambda: len(store.read(BTC, latest - 2900 * MINUTE, latest)) == 2900, "the lost minutes")
        process.kill()
    assert run(tmp_path, "doctor", **settings).returncode == 0
    again = {each["timestamp"]: each for each in candles(tmp_path, "5m", **settings)}
    assert [again[each["timestamp"]] for each in expected[3:]] == expected[3:]  # a few minutes may have passed


# Nothing is changed


def content(home: Path) -> dict[str, tuple[int, bytes]]:
    """Every file with its time, without the shared memory of SQLite, which is no data."""
    files = (path for path in home.rglob("*") if path.is_file() and not path.name.endswith("-shm"))
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def everything(server: PostgresServer, database: str) -> dict[str, list[Any]]:
    """Every row of every table of a database."""
    import asyncio

    import asyncpg  # type: ignore[import-untyped]

    async def read() -> dict[str, list[Any]]:
        connection = await asyncpg.connect(database)
        try:
            tables = await connection.fetch(
                "SELECT schemaname, tablename FROM pg_tables WHERE schemaname LIKE 'openbell%'"
            )
            names = sorted(f'"{schema}"."{table}"' for schema, table in tables)
            return {name: sorted(map(str, await connection.fetch(f"SELECT * FROM {name}"))) for name in names}
        finally:
            await connection.close()

    return asyncio.run(read())


@pytest.mark.parametrize("killed", [False, True])
def test_it_changes_nothing_in_a_home(tmp_path: Path, killed: bool) -> None:
    """Also the logs of a killed process stay where they are; month files that are missing or damaged are left alone."""
    add_tokens(tmp_path)
    with Client(tmp_path, command=[*OPENBELL, "mcp", "chartgen", "--trade"]) as client:
        client.initialize()
        assert not client.call("place_order", ORDER)["result"]["isError"]
        if not killed:
            client.end_input()
            client.process.wait()
    with closing(store_of(tmp_path, {})) as store:
        source = store.sources.of(BTC, Span(0, EVER)).pop()
        store.write(
            [minutes("ETH/USD", SEPTEMBER, 5 * 1440), minutes("SOL/USD", SEPTEMBER, 5 * 1440)], source, covers=DAYS
        )
    (tmp_path / "simulated/data/crypto/1min/ETH_USD_2025-09.parquet").unlink()
    damaged = tmp_path / "simulated/data/crypto/1min/SOL_USD_2025-09.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-9])
    before = content(tmp_path)
    assert not killed or any(name.endswith("records.sqlite-wal") for name in before)
    found = run(tmp_path, "doctor")
    assert "is gone with all 7200 bars of ETH/USD" in found.stdout
    assert found.returncode == 1
    assert content(tmp_path) == before


def test_it_changes_nothing_in_the_databases(
    tmp_path: Path, postgres: PostgresServer, database: str, influx: InfluxServer
) -> None:
    settings = {"DATABASE_URL": database, "INFLUX_URL": influx.url, "INFLUX_DATABASE": "unchanged"}
    add_tokens(tmp_path, database=database)
    placed = run(tmp_path, "call", "chartgen", "place_order", json.dumps(ORDER), "--trade", **settings)
    assert placed.returncode == 0, placed.stdout

    def state() -> Any:
        bars = influx.query("SELECT * FROM /.*/", "unchanged_simulated_7")
        return (
            content(tmp_path),
            everything(postgres, database),
            bars,
            influx.query("SHOW SERIES", "unchanged_simulated_7"),
        )

    before = state()
    assert len(before[1]) > 10
    done = run(tmp_path, "doctor", **settings)
    assert done.returncode == 0, done.stdout
    assert state() == before


# Writes that are refused


def test_a_full_disk_is_bad(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(home)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"NOT TESTED: a small disk cannot be mounted here ({mounted.stderr.strip()})")
    try:
        assert run(home, "watch", "add", "BTC/USD").returncode == 0
        little = run(home, "doctor")
        free = shutil.disk_usage(home).free
        (home / "filling").write_bytes(bytes(free - 4096))
        full = run(home, "doctor")
    finally:
        subprocess.run(["umount", str(home)], check=True)
    assert (little.returncode, full.returncode) == (1, 1)
    assert "MB are free in " in little.stdout
    assert f"bad   {home} cannot be written: No space left on device" in full.stdout


def test_a_limit_on_files_is_bad(tmp_path: Path) -> None:
    def little() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    done = subprocess.run(
        [*OPENBELL, "doctor"],
        # Byte code would be cut off at the limit, for every later process.
        env=environment(tmp_path) | {"PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=little,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stdout
    assert f"bad   {tmp_path} cannot be written: File too large" in done.stdout
    assert os.listdir(tmp_path) == []


def test_a_database_file_that_cannot_be_written_is_bad(tmp_path: Path) -> None:
    assert run(tmp_path, "call", "chartgen", "place_order", json.dumps(ORDER), "--trade").returncode == 0
    records = tmp_path / "simulated" / "records.sqlite"
    with closing(sqlite3.connect(records, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")  # another program holds the lock, for longer than the desk can wait
        done = run(tmp_path, "doctor")
        writer.execute("ROLLBACK")
    assert done.returncode == 1
    assert f"bad   {records} cannot be written: database is locked" in done.stdout
    assert run(tmp_path, "doctor").returncode == 0


def test_a_role_that_may_only_read_is_bad(tmp_path: Path, postgres: PostgresServer, database: str) -> None:
    placed = run(tmp_path, "call", "chartgen", "place_order", json.dumps(ORDER), "--trade", DATABASE_URL=database)
    assert placed.returncode == 0, placed.stdout
    name = f"reader_{database.rpartition('/')[2]}"
    statements = [
        f"CREATE ROLE {name} LOGIN PASSWORD 'reads'",
        f"GRANT USAGE ON SCHEMA openbell_simulated_7 TO {name}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA openbell_simulated_7 TO {name}",
    ]
    _execute(database, statements)
    reader = f"postgresql://{name}:reads@127.0.0.1:{postgres.port}/{database.rpartition('/')[2]}"
    refused = run(tmp_path, "doctor", DATABASE_URL=reader)
    assert refused.returncode == 1
    assert "nothing can be written: " in refused.stdout
    assert "permission denied for table" in refused.stdout
    assert "→ grant SELECT, INSERT, UPDATE and DELETE" in refused.stdout
    assert "reads@" not in refused.stdout
    _execute(database, [f"GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA openbell_simulated_7 TO {name}"])
    assert run(tmp_path, "doctor", DATABASE_URL=reader).returncode == 0
    _execute(database, [f"ALTER ROLE {name} SET default_transaction_read_only = on"])
    refused = run(tmp_path, "doctor", DATABASE_URL=reader)
    assert refused.returncode == 1
    assert "nothing can be written: " in refused.stdout


def _execute(database: str, statements: list[str]) -> None:
    import asyncio

    import asyncpg

    async def work() -> None:
        connection = await asyncpg.connect(database)
        try:
            for statement in statements:
                await connection.execute(statement)
        finally:
            await connection.close()

    asyncio.run(work())


def test_an_influxdb_user_that_may_only_read_is_bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFLUXDB_HTTP_AUTH_ENABLED", "true")
    with own_server() as server:
        server.query("CREATE USER boss WITH PASSWORD 'boss' WITH ALL PRIVILEGES")
        settings = {"INFLUX_URL": server.url, "INFLUX_DATABASE": "guarded", "FEED": "none"}
        with closing(store_of(tmp_path, {**settings, "INFLUX_TOKEN": "boss:boss"})) as store:
            store.write([minutes("BTC/USD", SEPTEMBER, 5 * 1440)], LIVE, covers=DAYS)
            http: Any = store
            for statement in ("CREATE USER r WITH PASSWORD 'r'", 'GRANT READ ON "guarded" TO r'):
                http._http._query(statement, {}, "POST")
            refused = run(tmp_path, "doctor", INFLUX_TOKEN="r:r", **settings)
            http._http._query('GRANT ALL ON "guarded" TO r', {}, "POST")
            accepted = run(tmp_path, "doctor", INFLUX_TOKEN="r:r", **settings)
    assert refused.returncode == 1
    assert "bad   bars cannot be written to InfluxDB: " in refused.stdout, refused.stdout
    assert accepted.returncode == 0, accepted.stdout


def test_no_larger_bar_is_made_of_what_is_left_while_the_vendor_cannot_be_reached(
    tmp_path: Path, alpaca: AlpacaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    until = int(time.time()) // DAY * DAY
    span = Span(until - 5 * DAY, until)
    source = Source(Origin.LIVE, "alpaca:iex")
    with closing(store_of(tmp_path, {"FEED": "none"})) as store:
        store.write([minutes("BTC/USD", span.start, 5 * 1440)], source, covers=span)
    kept = span.start + 2 * DAY + 630 * MINUTE
    for name in ("MINUTES", "STREAM", *alpaca.urls):
        monkeypatch.setenv(f"ALPACA_{name.upper()}", "http://127.0.0.1:1")
    whole = candles(tmp_path, "15m", FEED="alpaca")
    assert len(whole) == 480
    for path in tmp_path.rglob("1min/BTC_USD_*.parquet"):
        file = bar_files.bar_file(path.parents[2], BTC, path.stem.rpartition("_")[2])
        left = bar_files.read(file, 0, kept)
        if len(left):
            bar_files.write(file, left, source)
        else:
            path.unlink()
    assert candles(tmp_path, "15m", FEED="alpaca") == whole[: 2 * 96]
