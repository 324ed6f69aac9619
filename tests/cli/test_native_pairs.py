"""Native series of files and of a feed used together, through the real command line."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from openbell.market.clock import iso, parse_time
from openbell.market.instruments import parse
from openbell.market.series import Series
from openbell.market.series_plan import buckets
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet.store import ParquetStore
from tests.client import run
from tests.feeds.alpaca_server import AlpacaServer
from tests.stores.child import Child
from tests.stores.model import assert_same
from tests.stores.samples import DAY, EVER, MINUTE

AAPL, BTC = parse("AAPL"), parse("BTC/USD")
AFTER_THE_CLOSE = "2026-01-06T22:00:00Z"
"""The vendor publishes the day's bar later."""


def candles(home: Path, *flags: str, symbol: str = "AAPL", timeframe: str = "1d", **settings: str) -> dict[str, Any]:
    asked = json.dumps({"symbol": symbol, "timeframe": timeframe, "limit": 50})
    done = run(home, "call", "market-data", "get_candles", asked, "--meta", *flags, **{"FEED": "alpaca", **settings})
    assert done.returncode == 0, done.stdout + done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def files(home: Path) -> Mapping[Path, bytes]:
    return {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}


def yahoo_file(path: Path) -> Path:
    """Half a year of days with adjusted closes of half the price."""
    start = int(parse_time("2025-07-01"))
    days = (iso(at)[:10] for at in buckets(AAPL, Timeframe.D1, start, start + 180 * DAY)[0].tolist())
    rows = [f"{day},100,110,90,{100 + number % 7},{(100 + number % 7) / 2},1000" for number, day in enumerate(days)]
    path.write_text("\n".join(["Date,Open,High,Low,Close,Adj Close,Volume", *rows, ""]))
    return path


def test_a_backfill_of_prices_that_are_adjusted_otherwise_fails_with_what_to_do(
    tmp_path: Path, alpaca: AlpacaServer
) -> None:
    home = tmp_path / "home"
    file = yahoo_file(tmp_path / "AAPL.csv")
    assert run(home, "import", str(file), "--by-name", "--adjusted", FEED="none").returncode == 0
    done = run(home, "backfill", "AAPL", "MSFT", "-t", "1d", "--from", "2024", "--to", "2026", FEED="alpaca")
    assert done.returncode == 1
    assert "AAPL 1d all holds bars of imported/import/all" in done.stderr
    assert "delete the stored files" in done.stderr
    assert "run the same command again" not in done.stderr
    assert "MSFT 1d: " in done.stdout
    assert alpaca.counts["1Day"] == 3, "AAPL lacks two spans, MSFT one"
    (stored,) = (home / "data" / "stocks" / "1d").glob("AAPL_*")
    stored.unlink()
    again = run(home, "backfill", "AAPL", "-t", "1d", "--from", "2024", "--to", "2026", FEED="alpaca")
    assert (again.returncode, again.stdout[:8]) == (0, "AAPL 1d:"), again.stderr


@pytest.mark.usefixtures("alpaca")
def test_a_file_of_yahoo_joins_a_feed_that_adjusts_for_splits_and_no_raw_one(tmp_path: Path) -> None:
    home, file = tmp_path / "home", yahoo_file(tmp_path / "AAPL.csv")
    assert run(home, "import", str(file), "--by-name", FEED="none").returncode == 0
    words = ("backfill", "AAPL", "-t", "1d", "--from", "2025-06", "--to", "2026-01-07")
    raw = run(home, *words, FEED="alpaca")
    assert raw.returncode == 1
    assert "AAPL 1d all holds bars of imported/import/split" in raw.stderr
    split = run(home, *words, FEED="alpaca", ALPACA_ADJUSTMENT="split")
    assert split.returncode == 0, split.stderr
    answer = candles(home, "--as-of", "2026-01-06T06:00:00Z", ALPACA_ADJUSTMENT="split")
    assert answer["_meta"]["openbell/truth"]["data"] == "imported+live"
    closes = {item["timestamp"][:10]: item["close"] for item in answer["result"]["data"]["items"]}
    assert (min(closes), max(closes)) == ("2025-10-23", "2026-01-05")
    imported = {day for day, close in closes.items() if close in range(100, 107)}
    assert imported == {day for day in closes if day <= "2025-12-26"}, "each day from the file that has it"


@pytest.mark.usefixtures("alpaca")
def test_an_export_whose_last_day_is_made_of_minutes_imports_again_to_the_same_bytes(tmp_path: Path) -> None:
    home, other, first, second = (tmp_path / name for name in ("home", "other", "first.csv", "second.csv"))
    answer = candles(home, "--as-of", AFTER_THE_CLOSE)
    assert answer["_meta"]["openbell/truth"]["made_of"] == "1d+1m"
    export = ("export", "AAPL", "-t", "1d", "--from", "2025-12", "-o", str(first), "--as-of", AFTER_THE_CLOSE)
    assert run(home, *export, FEED="alpaca").returncode == 0
    assert run(other, "import", str(first), "--symbol", "AAPL", FEED="none").returncode == 0
    assert run(other, "export", "AAPL", "-t", "1d", "-o", str(second), FEED="none").returncode == 0
    assert first.read_bytes() == second.read_bytes()
    last = candles(other, FEED="none")["result"]["data"]["items"][-1]
    assert last == answer["result"]["data"]["items"][-1]


@pytest.mark.usefixtures("alpaca")
def test_a_read_only_desk_answers_from_backfilled_bars_while_the_vendor_is_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, as_of = tmp_path / "home", ("--as-of", "2026-01-06T06:00:00Z")
    assert run(home, "backfill", "AAPL", "-t", "1d", "--from", "2025-06", FEED="alpaca").returncode == 0
    owner, before = candles(home, *as_of), files(home)
    monkeypatch.setenv("ALPACA_DATA_URL", "http://127.0.0.1:9")
    read = candles(home, *as_of, "--read-only")
    assert read["result"]["data"]["items"] == owner["result"]["data"]["items"]
    assert read["_meta"]["openbell/truth"]["made_of"] == "1d"
    assert files(home) == before


def test_a_backfill_beside_the_collector_of_the_same_symbol_stores_the_vendors_bars(
    tmp_path: Path, alpaca: AlpacaServer
) -> None:
    home, minutes, start = tmp_path / "home", Series(BTC), int(time.time()) // DAY * DAY - 5 * DAY
    home.mkdir()
    (home / "watchlist.txt").write_text("BTC/USD\n")
    env = {"OPENBELL_HOME": str(home), "OPENBELL_FEED": "alpaca"}
    words = ("backfill", "BTC/USD", "--from", iso(start))
    with Child("openbell.cli.entry", "collect", env=env) as collector:
        for timeframe in ("1m", "1h"):
            done = run(home, *words, "-t", timeframe, FEED="alpaca")
            assert done.returncode == 0, done.stderr
        collector.run_until(lambda: bool(list(home.rglob("*.parquet"))))
    with closing(ParquetStore(home / "data")) as store:
        found = store.read(minutes, start, EVER)
        assert_same(found, alpaca.truth(BTC, start, int(found.time[-1]) + MINUTE))
        hours = store.read(Series(BTC, Timeframe.H1), start, EVER)
        assert_same(hours, alpaca.longer(hours.series, start, int(hours.time[-1]) + 3600))
        assert store.audit.problems() == []
