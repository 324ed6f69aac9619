"""A home of the version before native series is used as it is: nothing is lost, and there is no step by hand."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from openbell.stores.buffer_schema import VERSION
from openbell.stores.parquet import ParquetStore
from openbell.stores.port import Span
from tests.client import OPENBELL, PATIENCE, environment, run
from tests.prefork import Process
from tests.stores.child import Child
from tests.stores.model import assert_same
from tests.stores.old_home import COVERED, STORED, make_old_bars
from tests.stores.samples import DAY, EVER, LIVE, MINUTE

DECISION = {"symbol": "BTC/USD", "action": "HOLD", "confidence": 0.5, "reasoning": "as before"}
QUESTIONS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("market-data", "get_candles", {"symbol": "BTC/USD", "timeframe": "1m", "limit": 300}),
    ("market-data", "get_candles", {"symbol": "BTC/USD", "timeframe": "4h", "limit": 20}),
    ("market-data", "get_candles", {"symbol": "AAPL", "timeframe": "1h", "limit": 20}),
    ("chart-signals", "get_signals", {"symbol": "AAPL", "timeframe": "5min"}),
    ("decisions", "get_recent_decisions", {}),
)


@pytest.fixture(scope="module")
def old_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of the records are those of today: no migration came since."""
    home = tmp_path_factory.mktemp("old") / "home"
    saved = run(home, "call", "decisions", "save_decision", json.dumps(DECISION), FEED="none")
    assert saved.returncode == 0, saved.stdout
    shutil.rmtree(home / "data", ignore_errors=True)
    make_old_bars(home / "data")
    assert version_of(home) == 2
    return home


@pytest.fixture
def home(old_home: Path, tmp_path: Path) -> Path:
    return shutil.copytree(old_home, tmp_path / "home")


def version_of(home: Path) -> int:
    with closing(sqlite3.connect(f"file:{home}/data/buffer.sqlite?mode=ro", uri=True)) as db:
        return int(db.execute("PRAGMA user_version").fetchone()[0])


def fingerprint(home: Path) -> dict[str, tuple[bytes, int]]:
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in home.rglob("*") if path.is_file()}


def answers(home: Path, *flags: str) -> list[Any]:
    found = []
    for server, tool, given in QUESTIONS:
        done = run(home, "call", server, tool, json.dumps(given), *flags, FEED="none")
        assert done.returncode == 0, done.stdout + done.stderr
        payload = json.loads(done.stdout)
        payload.get("data", payload).pop("as_of", None)
        found.append({name: value for name, value in payload.items() if name != "_metadata"})
    return found


def assert_complete(home: Path) -> None:
    """Every bar, its source, coverage and lease are there, and the store can be written to."""
    with closing(ParquetStore(home / "data")) as store:
        for series, bars in STORED.items():
            assert_same(store.read(series, 0, EVER), bars)
            assert store.gaps(series, Span(COVERED.start, COVERED.end + DAY)) == [Span(COVERED.end, COVERED.end + DAY)]
        assert (store.problems(), store.premature()) == ([], [])
        assert store.lease_holder("collector") is None
        assert store.acquire("collector", "me", 60).token == 2
        for series, bars in STORED.items():
            assert store.conflicts(bars, LIVE) == ([] if "/" in series.name else ["2025-09 (imported/csv/raw)"])
    assert version_of(home) == VERSION


def test_read_only_it_is_read_and_no_byte_is_changed(home: Path) -> None:
    before = fingerprint(home)
    read = answers(home, "--read-only")
    assert run(home, "doctor", FEED="none", READ_ONLY="1").returncode == 0
    assert fingerprint(home) == before
    assert version_of(home) == 2
    assert answers(home) == read
    assert [len(read[0]["data"]["items"]), read[0]["data"]["pagination"]["total"]] == [300, 2690]
    assert read[-1]["data"]["items"][0]["reasoning"] == "as before"
    assert_complete(home)
    assert run(home, "verify", FEED="none").returncode == 0


def test_processes_that_start_at_the_same_moment_upgrade_it_once(home: Path) -> None:
    words = [*OPENBELL, "call", "market-data", "get_candles", json.dumps(QUESTIONS[0][2])]
    pipe = subprocess.PIPE
    env = environment(home, FEED="none")
    started = [Process(words, env=env, text=True, stdout=pipe, stderr=pipe) for _ in range(4)]
    ended = [(*process.communicate(timeout=PATIENCE), process.wait()) for process in started]
    assert [code for *_, code in ended] == [0] * 4, ended
    assert len({json.dumps(json.loads(out)["data"]["items"]) for out, *_ in ended}) == 1  # `as_of` may differ
    assert_complete(home)


def test_an_upgrade_that_is_killed_at_any_statement_is_done_by_the_next_start(home: Path, tmp_path: Path) -> None:
    for number in count():
        copy = shutil.copytree(home, tmp_path / str(number))
        with Child("tests.stores.old_home", copy / "data", number) as process:
            process.wait()
            opened = process.kill() == ["opened"]
        assert_complete(copy)
        if opened:
            break
    assert number > 5


def test_native_bars_are_stored_beside_what_it_has(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "BTC-USD.csv"
    days = [f"2025-08-{day:02}T00:00:00Z,1,3,1,2,{day}" for day in range(1, 20)]
    file.write_text("\n".join(["timestamp,open,high,low,close,volume", *days, ""]))
    assert run(home, "import", str(file), "--by-name", FEED="none").returncode == 0
    with closing(ParquetStore(home / "data")) as store:
        assert len(store.stored()) == 3
    candles = {"symbol": "BTC/USD", "timeframe": "1d", "limit": 100}
    done = run(home, "call", "market-data", "get_candles", json.dumps(candles), FEED="none")
    assert [item["timestamp"][:10] for item in json.loads(done.stdout)["data"]["items"]][:19] == [
        row[:10] for row in days
    ]
    assert_complete_minutes(home)


def assert_complete_minutes(home: Path) -> None:
    with closing(ParquetStore(home / "data")) as store:
        for series, bars in STORED.items():
            assert_same(store.read(series, int(bars.time[0]), int(bars.time[-1]) + MINUTE), bars)
