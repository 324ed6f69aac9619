"""Prices and volumes at the edge of what a number can be: no answer of any server holds NaN or an infinity."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import to_json

from openbell.desk.bars.service import BarService
from openbell.indicators.registry import all_indicators
from openbell.market.bars import Bars, empty, make, resample
from openbell.market.instruments import Instrument, parse
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.protocol.dialects import BUG, Reply
from openbell.protocol.server import _wire
from tests.servers.desks import Bench, awaited, bench_as_found

COUNT = 4000
AS_OF = "2025-09-03T18:40:10Z"
END = 1_756_924_800
BTC, AAPL = parse("BTC/USD"), parse("AAPL")
LARGEST, SMALLEST = 1.7e308, 5e-324


def prices(kind: str) -> Iterator[tuple[float, float, float, float, float]]:
    """Open, high, low, close and volume."""
    chance = random.Random(kind)
    for minute in range(COUNT):
        price = {
            "largest": LARGEST,
            "smallest": SMALLEST,
            "both": LARGEST if minute % 2 else SMALLEST,
            "any": 10.0 ** chance.uniform(-320, 308),
            "rising": 10.0 ** (-300 + 600 * minute / COUNT),
            "volume": 100.0 + chance.random(),
            "drawn": 10.0 ** chance.uniform(-100, 100),
        }[kind]
        if kind == "both":
            yield price, LARGEST, SMALLEST, price, LARGEST
        elif kind == "drawn":
            yield price, price, price, price, 10.0 ** chance.uniform(-100, 100)
        else:
            yield price, price, price, price, chance.choice([0.0, SMALLEST, LARGEST])


KINDS = ["largest", "smallest", "both", "any", "rising", "volume", "drawn"]


class GivenBars(BarService):
    """The bar service over bars that no store would take."""

    given: dict[Instrument, Bars]

    async def known(self, instrument: Instrument) -> bool:
        return instrument in self.given

    async def _newest(self, series: Series, depth: int, end: int) -> Bars:
        return resample(self.given.get(series.instrument, empty(series.instrument)), series.timeframe, end)

    async def page(self, instrument: Instrument, timeframe: Timeframe, limit: int, offset: int) -> tuple[Bars, int]:
        bars = await self._newest(Series(instrument, timeframe), 0, self.closed_until())
        return bars.tail(limit), len(bars)


def give(bench: Bench, kind: str) -> None:
    """Let the desk have such bars of two symbols, one of them watched."""
    desk = bench.desk
    service = GivenBars(desk.store, desk.feed, desk.clock)
    rows = list(zip(*prices(kind), strict=True))
    times = range(END - 60 * COUNT, END, 60)
    service.given = {each: make(each, Timeframe.M1, times, *rows) for each in (BTC, AAPL)}
    for part in ("indicators", "quotes", "signals"):
        desk.__dict__.pop(part, None)
    desk.__dict__["bars"] = service


def check(reply: Reply) -> None:
    """An answer, or an error with a place in the tree; every form of it is JSON."""
    assert BUG not in str(reply.payload)
    for value in (reply.payload, reply.truth):
        json.dumps(value, allow_nan=False)
    if reply.code is None:
        for item in _wire(reply)["content"]:
            assert item["type"] == "image" or item["text"] == reply.text or json.loads(item["text"]) == reply.payload
    json.loads(to_json(reply.payload), parse_constant=pytest.fail)


@pytest.mark.parametrize("kind", KINDS)
@awaited
async def test_every_answer_about_the_market_is_json(tmp_path: Path, kind: str) -> None:
    async with bench_as_found(tmp_path, AS_OF, FEED="none") as desk:
        give(desk, kind)

        async def ask(server: str, tool: str, **arguments: Any) -> Reply:
            reply = await desk.reply(server, tool, arguments)
            check(reply)
            return reply

        for symbol in ("BTC/USD", "AAPL"):
            for timeframe in ("1min", "5min", "15min", "1hour"):
                await ask("chart-signals", "get_signals", symbol=symbol, timeframe=timeframe)
            for timeframe in ("1m", "1h", "4h", "1d"):
                await ask("market-data", "get_candles", symbol=symbol, timeframe=timeframe, limit=1000)
            assert not (await ask("market-data", "get_current_price", symbol=symbol)).is_error
            await ask("market-data", "get_volatility", symbol=symbol, timeframe="1h")
            await ask("portfolio", "validate_trade", symbol=symbol, side="BUY", size=1)
        watched = await ask("chart-signals", "get_watchlist")
        assert not watched.is_error


@pytest.mark.parametrize("kind", KINDS)
@awaited
async def test_every_indicator_and_chart_is_json(tmp_path: Path, kind: str) -> None:
    names = [name for name, indicator in all_indicators().items() if not indicator.needs]
    async with bench_as_found(tmp_path, AS_OF, FEED="none") as desk:
        give(desk, kind)
        for start in range(0, len(names), 8):
            asked = {"symbol": "BTC/USD", "interval": "1m", "indicators": names[start : start + 8]}
            for arguments in (asked, {**asked, "interval": "15m"}):
                reply = await desk.reply("chartgen", "get_indicators", arguments)
                check(reply)
                assert not reply.is_error, reply.payload
            for form in ("summary", "series"):
                reply = await desk.reply("chartgen", "generate_chart", {**asked, "format": form})
                check(reply)
                assert not reply.is_error, reply.payload
            small = {"format": "both", "width": 400, "height": 300}
            check(await desk.reply("chartgen", "generate_chart", {**asked, **small}))


@awaited
async def test_a_contract_that_has_no_null_gets_an_error_that_names_the_field(tmp_path: Path) -> None:
    async with bench_as_found(tmp_path, AS_OF, FEED="none") as desk:
        give(desk, "both")
        signals = await desk.reply("chart-signals", "get_signals", {"symbol": "BTC/USD", "timeframe": "1min"})
        assert signals.code == -32004
        assert "snapshot." in signals.payload["message"]
        refused = await desk.refused("market-data", "get_volatility", symbol="BTC/USD")
        assert refused["code"] == "INSUFFICIENT_DATA"
        assert refused["details"]["field"] == "atr"
        price = await desk.ask("market-data", "get_current_price", symbol="BTC/USD")
        assert price["price"] == LARGEST
        assert price["volume_24h"] == pytest.approx(1.797e308, rel=1e-3)


@awaited
async def test_a_change_that_is_no_number_is_null(tmp_path: Path) -> None:
    async with bench_as_found(tmp_path, AS_OF, FEED="none") as desk:
        give(desk, "rising")
        price = await desk.ask("market-data", "get_current_price", symbol="BTC/USD")
        assert price["change_24h"] is not None
        summary = await desk.chartgen("generate_chart", symbol="BTC/USD", timeframe="1m", bars=1000, format="summary")
        assert summary["price"]["change_pct"] is not None
        give(desk, "both")
        odd = await desk.chartgen("generate_chart", symbol="BTC/USD", timeframe="1m", bars=2, format="summary")
        assert odd["price"]["change_pct"] is None, "from the smallest price to the largest"
