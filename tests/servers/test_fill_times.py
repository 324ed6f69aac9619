"""The time of a fill is the open of its minute, in every result that has one; when it was recorded is another field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from openbell.market.clock import parse_time
from tests.client import run
from tests.servers.desks import Bench, awaited, bench, bench_as_found

PLACED, SEEN = "2026-01-07T15:00:30Z", "2026-01-07T15:40:00Z"
OPEN, CLOSE = "2026-01-07T15:01:00+00:00", "2026-01-07T15:02:00+00:00"
"""The minute that fills a market order that was placed within the one before."""


def called(home: Path, at: str, server: str, tool: str, **given: Any) -> Any:
    """What `openbell call` prints."""
    flags = ("--trade", "--as-of", at, "--scenario", "times")
    done = run(home, "call", server, tool, json.dumps(given), *flags, TIMEOUT="60")
    assert done.returncode == 0, done.stdout + done.stderr
    printed = json.loads(done.stdout)
    return printed.get("data", printed)


def test_a_market_order_filled_when_its_minute_opened(tmp_path: Path) -> None:
    order = {"symbol": "BTC/USD", "side": "buy", "type": "market", "quantity": "0.01"}
    placed = called(tmp_path, PLACED, "chartgen", "place_order", **order)
    assert (placed["status"], placed["filled_at"]) == ("open", None)
    (early,) = called(tmp_path, "2026-01-07T15:01:59Z", "chartgen", "get_orders", detail=True)["orders"]
    assert (early["status"], early["filled_at"]) == ("open", None), "its minute has not closed: nobody knows of it"
    assert called(tmp_path, "2026-01-07T15:01:59Z", "portfolio", "get_positions")["items"] == []

    (filled,) = called(tmp_path, SEEN, "chartgen", "get_orders", detail=True)["orders"]
    assert (filled["filled_at"], filled["updated_at"]) == (OPEN, CLOSE)
    assert "filled_at_precision" not in filled
    (held,) = called(tmp_path, SEEN, "chartgen", "get_positions")["positions"]
    (item,) = called(tmp_path, SEEN, "portfolio", "get_positions")["items"]
    for position in (held, item):
        assert (position["opened_at"], position["recorded_at"]) == (OPEN, CLOSE)
        assert "opened_at_precision" not in position
    (bar,) = [
        each
        for each in called(tmp_path, SEEN, "market-data", "get_candles", symbol="BTC/USD", timeframe="1m")["items"]
        if parse_time(each["timestamp"]) == parse_time(OPEN)
    ]
    assert item["entry_price"] == pytest.approx(bar["open"] * 1.0005), "the open of that minute, and slippage"


def test_a_chart_marks_the_minute_that_filled_the_order(tmp_path: Path) -> None:
    order = {"symbol": "BTC/USD", "side": "buy", "type": "market", "quantity": "0.01"}
    called(tmp_path, PLACED, "chartgen", "place_order", **order)
    asked = {"symbol": "BTC/USD", "timeframe": "1m", "bars": 60, "trades": True, "format": "series"}
    shown = called(tmp_path, SEEN, "chartgen", "generate_chart", **asked)
    (fill,) = shown["trades"]["fills"]
    assert (fill["time"], fill["filled_at"], fill["recorded_at"]) == (OPEN, OPEN, CLOSE)
    assert shown["bars"][fill["x"]]["t"] == parse_time(OPEN)


async def _fall(desk: Bench) -> tuple[float, str]:
    """A price that the market first trades through after `PLACED`, and the minute in which it does."""
    bars = (await desk.ask("market-data", "get_candles", symbol="BTC/USD", timeframe="1m", limit=39))["items"]
    first = bars[0]
    for bar in bars[1:]:
        low = min(each["low"] for each in bars[: bars.index(bar)])
        if bar["open"] > low - 2 > bar["low"]:
            return round(low - 1, 2), str(bar["timestamp"])
    raise AssertionError(f"the market never falls below {first['low']}")


@awaited
async def test_an_order_that_filled_at_its_limit_says_that_only_the_minute_is_known(tmp_path: Path) -> None:
    async with bench_as_found(tmp_path, SEEN, SCENARIO="look") as desk:
        limit, minute = await _fall(desk)
    order = {"symbol": "BTC/USD", "side": "buy", "type": "limit", "quantity": "0.01", "price": limit}
    async with bench(tmp_path, PLACED) as desk:
        await desk.chartgen("place_order", **order)
    async with bench(tmp_path, SEEN) as desk:
        (filled,) = (await desk.chartgen("get_orders", detail=True))["orders"]
        assert (filled["status"], float(filled["average_price"])) == ("filled", limit)
        assert parse_time(filled["filled_at"]) == parse_time(minute)
        assert parse_time(filled["updated_at"]) == parse_time(minute) + 60
        assert filled["filled_at_precision"] == "minute"
        (item,) = (await desk.ask("portfolio", "get_positions"))["items"]
        assert (item["opened_at"], item["opened_at_precision"]) == (filled["filled_at"], "minute")
