"""Symbols of which only longer bars are stored: what can be answered is, and the rest names what there is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from openbell.indicators.evaluation import NO_VOLUME
from openbell.market.clock import iso
from openbell.market.instruments import parse
from openbell.market.series import Series
from openbell.market.series_plan import buckets
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.port import Span
from tests.servers.desks import Bench, awaited, bench
from tests.stores.samples import FILE, at, bars

START, NOW = at("2025-03-03"), at("2025-06-12T21:00:00Z")
DAY = 86400
Ask = Callable[[Bench], Awaitable[None]]


def stored(home: Path, symbol: str, timeframe: Timeframe, until: int = NOW, since: int = START) -> None:
    """Store all bars of a timeframe in a span."""
    instrument = parse(symbol)
    opens = buckets(instrument, timeframe, since, until)[0]
    with closing(ParquetStore(home / "data")) as store:
        store.write([bars(Series(instrument, timeframe), opens)], FILE, covers=Span(since, until))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    stored(tmp_path, "AAPL", Timeframe.H1)
    stored(tmp_path, "MSFT", Timeframe.D1)
    return tmp_path


@awaited
async def test_indicators_that_need_minutes_say_so(home: Path) -> None:
    async with bench(home, iso(NOW), FEED="none") as desk:
        found = await desk.chartgen("get_indicators", symbol="AAPL", interval="1h", indicators=["vwap", "pivot", "rsi"])
        shown = found["indicators"]
        for name in ("vwap", "pivot"):
            assert {line["last_value"] for line in shown[name]["lines"]} == {None}
            assert "bars have no minutes" in shown[name]["note"]
        assert "note" not in shown["rsi"]
        reply = await desk.reply("chartgen", "generate_chart", {"symbol": "AAPL", "indicators": ["vwap"]})
        assert "vwap: computed from minutes" in reply.truth["note"]
        signals = await desk.ask("chart-signals", "get_signals", symbol="AAPL", timeframe="1hour")
        assert signals["snapshot"]["vwap"] is None
        assert "vwap is null" in signals["note"]


@awaited
async def test_profiles_of_sessions_need_finer_bars(home: Path) -> None:
    async with bench(home, iso(NOW), FEED="none") as desk:
        found = await desk.chartgen("get_indicators", symbol="MSFT", interval="1d", indicators=["svp", "naked_poc"])
        for name in ("svp", "naked_poc"):
            shown = found["indicators"][name]
            assert "hlines" not in shown
            assert shown["note"].startswith("one bar is a session, so its profile comes from finer bars")
        given = {"symbol": "MSFT", "timeframe": "1d", "indicators": ["svp", "rsi", "tpo"]}
        reply = await desk.reply("chartgen", "generate_chart", given)
        why = reply.truth["note"]
        assert why.startswith("svp: one bar is a session, so its profile comes from finer bars; ")
        assert "; tpo: periods of half an hour come from finer bars; " in why
        hourly = await desk.chartgen("get_indicators", symbol="AAPL", interval="4h", indicators=["tpo"])
        assert "note" not in hourly["indicators"]["tpo"], "bars of an hour are the periods"
        assert len(hourly["indicators"]["tpo"]["hlines"]) == 3


@awaited
async def test_bars_without_volume_are_noted(tmp_path: Path) -> None:
    series = Series(parse("EUR/USD"), Timeframe.H1)
    opens = buckets(series.instrument, Timeframe.H1, START, NOW)[0]
    quotes = bars(series, opens)
    with closing(ParquetStore(tmp_path / "data")) as store:
        store.write([replace(quotes, volume=0.0 * quotes.volume)], FILE, covers=Span(START, NOW))
    of_volume = ["vwap", "vwap_bands", "vwma", "session_vp", "volume_profile", "cmf", "mfi", "obv"]
    async with bench(tmp_path, iso(NOW), FEED="none") as desk:
        given = {"symbol": "EUR/USD", "interval": "1h", "indicators": [*of_volume, "rsi"]}
        shown = (await desk.chartgen("get_indicators", **given))["indicators"]
        assert {name: shown[name].get("note") for name in of_volume} == dict.fromkeys(of_volume, NO_VOLUME)
        assert "note" not in shown["rsi"]
        reply = await desk.reply("chartgen", "generate_chart", given)
        assert f"vwma: {NO_VOLUME}; session_vp: {NO_VOLUME}" in reply.truth["note"]


@awaited
async def test_minutes_of_some_bars_are_counted(home: Path) -> None:
    # Of the last two sessions, the second has minutes.
    stored(home, "AAPL", Timeframe.M1, since=at("2025-06-12T13:30:00Z"))
    async with bench(home, iso(NOW), FEED="none") as desk:
        given = {"symbol": "AAPL", "timeframe": "1h", "bars": 27, "indicators": ["vwap"], "format": "summary"}
        note = (await desk.chartgen("generate_chart", **given))["indicators"]["vwap"]["note"]
        assert note.endswith("; 2 of 9 bars have no minutes"), note
        shown = await desk.chartgen("generate_chart", **given | {"bars": 8})
        assert "note" not in shown["indicators"]["vwap"]


@awaited
async def test_what_cannot_be_answered_names_what_is_stored(home: Path) -> None:
    async with bench(home, iso(NOW), FEED="none") as desk:
        wanted = "what is stored are bars of 1d"
        assert wanted in (await desk.refused("market-data", "get_current_price", symbol="MSFT"))["message"]
        assert wanted in await desk.no("place_order", symbol="MSFT", side="buy", type="market", quantity=1)
        assert wanted in await desk.no("generate_chart", symbol="MSFT", timeframe="1h")
        signals = await desk.ask("chart-signals", "get_signals", symbol="MSFT", timeframe="1hour")
        assert signals == {"ready": False, "reason": "insufficient bars (need 35+)", "note": wanted}
    async with bench(home, iso(START), FEED="none") as desk:
        early = await desk.reply("chart-signals", "get_signals", {"symbol": "MSFT", "timeframe": "1hour"})
        assert early.code == -32002, "nothing was stored then"


@pytest.mark.parametrize("stray", [None, Timeframe.M1, Timeframe.M15])
@pytest.mark.parametrize(("symbol", "timeframe"), [("AAPL", Timeframe.H1), ("MSFT", Timeframe.D1)])
@awaited
async def test_price_alerts_are_decided_by_the_latest_bars(
    home: Path, symbol: str, timeframe: Timeframe, stray: Timeframe | None
) -> None:
    if stray is not None:  # one shorter bar of some days ago decides nothing
        stored(home, symbol, stray, NOW - 3 * DAY, NOW - 3 * DAY - stray.seconds)
    async with bench(home, iso(NOW), FEED="none") as desk:
        await desk.chartgen("set_alert", symbol=symbol, condition={"price_above": 1})
        await desk.chartgen("set_alert", symbol=symbol, condition={"price_above": 10_000})
    async with bench(home, iso(NOW + DAY), FEED="none") as desk:
        assert (await desk.chartgen("get_notifications"))["notifications"] == [], "no new bar is stored"
    stored(home, symbol, timeframe, NOW + DAY)
    first = buckets(parse(symbol), timeframe, NOW, NOW + DAY)
    async with bench(home, iso(NOW + DAY), FEED="none") as desk:
        found = (await desk.chartgen("get_notifications"))["notifications"]
        assert [each["triggered_at"] for each in found] == [iso(int(first[1][0]))]
        fired = bars(Series(parse(symbol), timeframe), first[0][:1])
        assert found[0]["value"] == pytest.approx(float(fired.high[0]))
