"""`--read-only`: bars are answered, and the home stays as it is, to the byte."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.client import OPENBELL, Client, call, run

AS_OF = "2026-01-07T15:00:30Z"
MINUTES = {"symbol": "AAPL", "timeframe": "1min"}
ASKED: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("chart-signals", "get_signals", MINUTES),
    ("chart-signals", "get_watchlist", {}),
    ("market-data", "get_candles", {"symbol": "AAPL", "timeframe": "1d"}),
    ("market-data", "get_current_price", {"symbol": "BTC/USD"}),
    ("chartgen", "generate_chart", {"symbol": "BTC/USD"}),
    ("chart-signals", "get_storage_info", {}),  # the last: the others store bars
)


def fingerprint(home: Path) -> dict[str, tuple[str, int]]:
    return {
        str(path): (hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "", path.stat().st_mtime_ns)
        for path in (home, *home.rglob("*"))
    }


def ask(home: Path, server: str, tool: str, given: dict[str, Any], *flags: str, **settings: str) -> Any:
    done = run(home, "call", server, tool, json.dumps(given), *flags, TIMEOUT="60", **settings)
    return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr


def plain(answer: Any) -> Any:
    """An answer without what every call has of its own."""
    code, payload = answer
    return code, {name: value for name, value in payload.items() if name not in {"_metadata", "total_size_mb"}}


@pytest.mark.parametrize(("server", "tool", "given"), ASKED)
def test_an_empty_home_is_answered_from_the_feed_and_stays_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str, tool: str, given: dict[str, Any]
) -> None:
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    for folder in (home, temporary):
        folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    before = fingerprint(home)
    code, payload = ask(home, server, tool, given, "--read-only", AS_OF=AS_OF)
    assert code == 0, payload
    assert fingerprint(home) == before
    assert list(temporary.iterdir()) == [], "its own folder is removed"


def test_a_home_that_does_not_exist_is_not_made(tmp_path: Path) -> None:
    code, payload = ask(tmp_path / "none", "chart-signals", "get_signals", MINUTES, "--read-only", AS_OF=AS_OF)
    assert code == 0, payload
    assert not (tmp_path / "none").exists()


def test_a_home_is_read_as_its_owner_reads_it_and_stays_as_it_is(tmp_path: Path) -> None:
    """One month is damaged: it is fetched again, and the file stays where it is."""
    owners = {tool: ask(tmp_path, server, tool, given, AS_OF=AS_OF) for server, tool, given in ASKED}
    (damaged,) = tmp_path.glob("simulated/data/stocks/1min/AAPL_2026-01.parquet")
    damaged.write_bytes(damaged.read_bytes()[:-9])
    before = fingerprint(tmp_path)
    for server, tool, given in ASKED:
        answer = ask(tmp_path, server, tool, given, "--read-only", AS_OF=AS_OF)
        assert plain(answer) == plain(owners[tool]), tool
    assert fingerprint(tmp_path) == before


def test_bars_that_another_process_stores_meanwhile_are_seen(tmp_path: Path) -> None:
    file = tmp_path / "bars.csv"
    home = tmp_path / "home"
    start = int(time.time() // 60 * 60) - 60 * 200

    def load(count: int) -> None:
        rows = [f"{start + 60 * n},{100 + n % 7},{101 + n % 7},{99 + n % 7},{100 + n % 7},{n}" for n in range(count)]
        file.write_text("timestamp,open,high,low,close,volume\n" + "\n".join(rows) + "\n")
        done = run(home, "import", str(file), "--symbol", "BTC/USD")
        assert done.returncode == 0, done.stderr

    def newest() -> Any:
        given = {"symbol": "BTC/USD", "timeframe": "1m", "limit": 1, "force_refresh": True}
        return json.loads(client.call("get_candles", given)["result"]["content"][0]["text"])

    with Client(home, command=[*OPENBELL, "mcp", "market-data", "--read-only"], FEED="none") as client:
        client.initialize()
        assert newest()["error"]["code"] == "NO_DATA"
        assert not home.exists()
        for count in (50, 120):
            load(count)
            found = newest()["data"]
            assert found["pagination"]["total"] == count
            assert found["items"][0]["volume"] == count - 1
        before = fingerprint(home)
        newest()
        client.end_input()
    assert fingerprint(home) == before
    assert call(home, "get_signals", {"symbol": "BTC/USD", "timeframe": "1min"}, FEED="none")["ready"] is True


def test_the_log_of_a_killed_writer_stays_where_it_is(tmp_path: Path) -> None:
    words = (
        "call",
        "chartgen",
        "place_order",
        '{"symbol": "BTC/USD", "side": "buy", "type": "market", "quantity": "0.01"}',
    )
    assert run(tmp_path, *words, "--trade").returncode == 0
    records = tmp_path / "simulated" / "records.sqlite"
    with closing(sqlite3.connect(records)) as writer:
        writer.execute("UPDATE marks SET until = until")
        writer.commit()
        log = records.with_name("records.sqlite-wal")
        copies = {path: path.read_bytes() for path in (records, log)}
    for path, data in copies.items():
        path.write_bytes(data)
    before = {path: path.read_bytes() for path in (records, log)}
    for command in (("call", "portfolio", "get_balance"), ("verify",), ("doctor",), ("account", "list")):
        assert run(tmp_path, *command, READ_ONLY="1").returncode == 0
        assert {path: path.read_bytes() for path in (records, log)} == before, command
