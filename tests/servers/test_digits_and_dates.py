"""Numbers and indexes in results: their digits, the times of their bars, and the names of levels."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, get_args

import pytest
from typing_extensions import get_type_hints, is_typeddict

from openbell.indicators.registry import MAX_INDICATORS, all_indicators
from openbell.protocol.numbers import Digits
from tests.servers.desks import Bench, awaited, bench
from tests.servers.every_tool import every_tool, reads, samples

SATURDAY = "2026-01-10T18:00:00Z"
FRIDAY = "2026-01-09T18:00:00Z"
AMOUNTS = {
    *(
        "entry_price",
        "total_balance",
        "available_balance",
        "margin_used",
        "unrealized_pnl",
        "market_value",
        "trade_value",
    ),
    *("total_market_value", "total_unrealized_pnl", "cash", "realized_pnl", "fees_paid", "day_pnl", "daily_loss_left"),
    "costs",
}
"""Sums and averages of exact decimals."""
TIMES = {"x": {"time", "t"}, "extreme_x": {"extreme_time", "extreme_t"}, "x1": {"time1", "t1"}, "x2": {"time2", "t2"}}
"""The fields beside the index of a bar, of which one is its time."""


def floats_without_digits(kind: Any, place: str) -> Iterator[str]:
    """The places in the type of a result whose floats have no rule for their digits."""
    if kind is float:
        yield place
    elif is_typeddict(kind):
        for name, hint in get_type_hints(kind, include_extras=True).items():
            yield from floats_without_digits(hint, f"{place}.{name}")
    else:
        parts = get_args(kind)
        if getattr(kind, "__metadata__", None) and any(isinstance(each, Digits) for each in parts[1:]):
            return
        for part in parts:
            yield from floats_without_digits(part, place)


def test_a_float_without_a_rule_is_found() -> None:
    kind = dict[str, list[Annotated[float, "a note"] | None]]
    assert list(floats_without_digits(kind, "here")) == ["here"]


def test_every_float_of_every_result_has_a_rule_for_its_digits() -> None:
    """Arche's errors are the exception: `retry_after_s` is what a server has sent."""
    found = [
        place for server, tool in every_tool() for place in floats_without_digits(tool.returns, f"{server} {tool.name}")
    ]
    assert found == []


def significant_digits(value: float) -> int:
    mantissa = repr(abs(value)).partition("e")[0].replace(".", "").lstrip("0")
    return len(mantissa.rstrip("0"))


def faults(value: Any, place: str = "") -> Iterator[str]:
    """The floats with too many digits, the indexes of bars without a time, and the levels without a name."""
    if isinstance(value, float):
        if significant_digits(value) > 10:
            yield f"{place}: {value!r}"
    elif isinstance(value, dict):
        for index in TIMES.keys() & value.keys():
            if not TIMES[index] & value.keys():
                yield f"{place}: no time beside {index}"
        for name, each in value.items():
            if name == "hlines" and not all(level.get("label") for level in each):
                yield f"{place}: a level without a name"
            if name not in AMOUNTS:
                yield from faults(each, f"{place}.{name}")
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from faults(each, f"{place}[{number}]")


async def found_in(desk: Bench, server: str, tool: str, arguments: dict[str, Any]) -> list[str]:
    reply = await desk.reply(server, tool, arguments)
    return [f"{server} {tool} {json.dumps(arguments)} {each}" for each in faults(reply.payload)]


@pytest.mark.usefixtures("short_search")
@awaited
async def test_every_reading_tool_rounds_its_numbers_and_dates_its_bars(tmp_path: Path) -> None:
    """The simulator's prices and volumes have at most 10 digits of their own, so that no number of a result has more."""
    async with bench(tmp_path, FRIDAY) as desk:
        for symbol, quantity in (("BTC/USD", "0.0123"), ("AAPL", "7"), ("AAPL", "4")):
            order = {"symbol": symbol, "side": "buy", "type": "market", "quantity": quantity}
            placed = await desk.reply("chartgen", "place_order", {**order, "client_order_id": symbol + quantity})
            assert not placed.is_error, placed.payload
        await desk.chartgen("set_alert", symbol="BTC/USD", condition={"price_above": 1.0})
        signal = {"indicator": "rsi", "signal": "rsi_overbought"}
        await desk.chartgen("set_alert", symbol="BTC/USD", interval="1m", condition={"indicator_signal": signal})
    async with bench(tmp_path, SATURDAY) as desk:
        held = (await desk.chartgen("get_positions"))["positions"]
        assert [len(each["entry_price"].partition(".")[2]) <= 10 for each in held] == [True, True]
        assert len((await desk.chartgen("get_notifications", cursor=0))["notifications"]) == 2
        wrong: list[str] = []
        for server, tool in every_tool():
            for arguments in samples(server, tool.name) if reads(server, tool) else ():
                wrong += await found_in(desk, server, tool.name, arguments)
                if arguments.get("symbol") == "BTC/USD":
                    wrong += await found_in(desk, server, tool.name, {**arguments, "symbol": "AAPL"})
        assert wrong == []


@awaited
async def test_every_indicator_rounds_its_values_and_dates_its_bars(tmp_path: Path) -> None:
    names = [name for name, indicator in all_indicators().items() if not indicator.needs]
    async with bench(tmp_path, SATURDAY) as desk:
        wrong: list[str] = []
        marks: set[str] = set()
        for start in range(0, len(names), MAX_INDICATORS):
            asked = {"symbol": "BTC/USD", "interval": "1h", "indicators": names[start : start + MAX_INDICATORS]}
            wrong += await found_in(desk, "chartgen", "get_indicators", asked)
            shown = await desk.chartgen("generate_chart", **asked, format="series", bars=120)
            wrong += list(faults(shown))
            marks |= {mark for each in shown["indicators"].values() for mark in each}
        assert wrong == []
        assert marks >= {"signals", "divlines", "hlines", "hbars", "fills", "histogram"}, "each of them was looked at"


@awaited
async def test_levels_of_a_profile_are_named_and_have_the_time_of_their_session(tmp_path: Path) -> None:
    async with bench(tmp_path, SATURDAY) as desk:
        asked = {
            "symbol": "BTC/USD",
            "interval": "1h",
            "indicators": ["session_vp", "volume_profile", "pivot", "zigzag"],
        }
        found = (await desk.chartgen("get_indicators", **asked))["indicators"]
        session = found["session_vp"]["hlines"]
        assert [(each["label"], each["time"]) for each in session] == [
            (label, "2026-01-10T00:00:00+00:00") for label in ("POC", "VAH", "VAL")
        ]
        assert {each["label"] for each in found["session_vp"]["divlines"]} == {"POC", "VAH", "VAL"}
        assert [each["label"] for each in found["volume_profile"]["hlines"]] == ["POC", "VAH", "VAL"]
        assert {each["label"] for each in found["pivot"]["lines"]} >= {"P", "R1", "S1"}
        series = await desk.chartgen("generate_chart", **asked, format="series")
        for swing in series["indicators"]["zigzag"]["signals"]:
            bar = series["bars"][swing["extreme_x"]]
            assert (swing["extreme_t"], swing["y"]) == (bar["t"], bar["h" if swing["label"] == "swing_high" else "l"])
        for summed, whole in zip(session, series["indicators"]["session_vp"]["hlines"], strict=True):
            assert (whole["y"], whole["x"], whole["t"]) == (summed["y"], summed["x"], series["bars"][whole["x"]]["t"])


@awaited
async def test_the_last_value_of_a_series_is_that_of_the_summary(tmp_path: Path) -> None:
    async with bench(tmp_path, SATURDAY) as desk:
        asked = {"symbol": "BTC/USD", "interval": "1h", "indicators": ["rsi", "macd", "bbands", "atr"]}
        last = (await desk.chartgen("get_indicators", **asked))["indicators"]
        whole = (await desk.chartgen("generate_chart", **asked, format="series"))["indicators"]
        for name, shown in last.items():
            ends = [line["values"][-1] for line in whole[name]["lines"]]
            assert ends == [line["last_value"] for line in shown["lines"]]


@awaited
async def test_volumes_of_longer_candles_are_the_sums_of_the_minutes(tmp_path: Path) -> None:
    """As decimals: without the error of binary addition, and without loss."""
    async with bench(tmp_path, SATURDAY) as desk:
        minutes = (await desk.ask("market-data", "get_candles", symbol="BTC/USD", timeframe="1m", limit=960))["items"]
        for timeframe, length in (("5m", 5), ("1h", 60), ("4h", 240)):
            asked: dict[str, Any] = {"symbol": "BTC/USD", "timeframe": timeframe, "limit": 2}
            for candle in (await desk.ask("market-data", "get_candles", **asked))["items"]:
                first = next(n for n, each in enumerate(minutes) if each["timestamp"] == candle["timestamp"])
                own = minutes[first : first + length]
                assert len(own) == length
                assert Decimal(repr(candle["volume"])) == sum(Decimal(repr(each["volume"])) for each in own)
