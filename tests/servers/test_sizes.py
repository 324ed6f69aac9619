"""What a call costs an agent: the default answer of each reading tool, and what a description says of limits."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from openbell.charts.payload import MOST_MARKS
from openbell.indicators.registry import MAX_INDICATORS
from openbell.protocol.tool import Tool
from openbell.servers import NAMES, load
from tests.servers.desks import Bench, awaited, bench
from tests.servers.every_tool import WRITES
from tests.servers.test_arguments import AS_OF, required

MOST = 1500
"""Tokens of an answer; a token is about four bytes."""
ORDERS = 60
EXCEPTIONS = {
    ("market-data", "get_candles"): 'TradeStream, get_candles: "limit": default 100',
    (
        "chartgen",
        "list_indicators",
    ): "chartgen: the full catalog with descriptions, aliases and configurable parameters",
    ("arche", "quotes.historical"): 'Arche, quotes.historical: "page_size": default 50',
    ("chart-image", "generate_chart_image"): "chart-image, tool 6: imageData is Base64 if storage is false",
}
"""Tools whose default answer is longer, each with the clause of its contract that asks for it."""
ELSEWHERE = {"strategy", "strategy-db", "backtest"}
"""Servers whose answers rest on a search of strategies; `test_strategy` weighs them where it has one."""
MORE: dict[str, dict[str, Any]] = {
    "generate_chart": {"symbol": "BTC/USD", "format": "summary", "indicators": ["macd", "bbands", "ema"]},
    "get_indicators": {"indicators": ["rsi", "macd", "bbands", "ema", "ichimoku"]},
    "quotes.historical": {"from": "2026-01-01", "to": "2026-01-06", "interval": "1m"},
}


def tokens(payload: Any) -> float:
    """The size of an answer."""
    return len(to_json(payload)) / 4


async def place_orders(desk: Bench) -> None:
    """Market and limit orders; again if a quick machine has placed too many in a second."""
    deadline = time.monotonic() + 60
    for number in range(ORDERS):
        more = {"type": "market"} if number % 2 else {"type": "limit", "price": "9000.5"}
        given = {"symbol": "BTC/USD", "side": "buy", "quantity": "0.001", "client_order_id": f"order-{number}", **more}
        while (reply := await desk.reply("chartgen", "place_order", given)).is_error:
            assert "orders in a second" in str(reply.payload), reply.payload
            assert time.monotonic() < deadline


@awaited
async def test_the_default_answer_of_every_reading_tool_is_short(tmp_path: Path) -> None:
    """With a watchlist of 22 symbols and an account of 60 orders, half of them filled."""
    free = {f"RISK_{name}": "0" for name in ("ORDER_SHARE", "SYMBOL_SHARE", "COLLAR", "POSITIONS")}
    async with bench(tmp_path, AS_OF, **free) as desk:
        await place_orders(desk)
    longer = set()
    async with bench(tmp_path, AS_OF.replace("15:00", "15:05"), **free) as desk:
        for server, tool in ((name, tool) for name in NAMES for tool in load(name).tools):
            if tool.effect in WRITES or server in ELSEWHERE:
                continue
            reply = await desk.reply(server, tool.name, required(tool) | MORE.get(tool.name, {}))
            assert not reply.is_error, (tool.name, reply.payload)
            if tokens(reply.payload) > MOST:
                longer.add((server, tool.name))
        assert longer == set(EXCEPTIONS)
        page = await desk.chartgen("get_orders")
        assert (len(page["orders"]), page["pagination"]["total"]) == (20, ORDERS)
        assert len({order["status"] for order in page["orders"]}) > 1
        watched = (await desk.ask("chart-signals", "get_watchlist"))["watchlist"]
        assert sum(map(len, watched.values())) == 22


@awaited
async def test_the_catalogue_has_descriptions_aliases_and_typed_parameters_in_6000_tokens(tmp_path: Path) -> None:
    async with bench(tmp_path, AS_OF, FEED="none") as desk:
        short = await desk.chartgen("list_indicators")
        full = await desk.chartgen("list_indicators", detail=True)
        assert [each["name"] for each in short["indicators"]] == [each["name"] for each in full["indicators"]]
        assert short["total"] == full["total"] == len(full["indicators"])
        for row, whole in zip(short["indicators"], full["indicators"], strict=True):
            assert set(row) == {"name", "aliases", "description", "parameters"}
            assert row["aliases"] == whole["aliases"]
            assert 0 < len(row["description"]) <= 60
            assert not row["description"].endswith("…"), "it is a line of its own, not the beginning of the whole one"
            assert len(row["description"]) <= len(whole["description"])
            assert 10 < len(row["description"]) <= 61
            assert row["parameters"] == [
                f"{each['name']}: {each['type']} = {json.dumps(each['default'])}" for each in whole["parameters"]
            ]
            assert {*row, "is_overlay"} <= set(whole)
        assert tokens(short) <= 6000
        (one,) = (await desk.chartgen("list_indicators", name="Bollinger Bands"))["indicators"]
        assert one in full["indicators"]
        assert one["name"] == "bbands"
        assert await desk.no("list_indicators", name="ema50") == (
            "no indicator 'ema50'; did you mean ema_line with length 50?"
        )


@awaited
async def test_every_indicator_alone_is_short_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    cut = set()
    async with bench(tmp_path, AS_OF) as desk:
        for each in (await desk.chartgen("list_indicators"))["indicators"]:
            given = {"symbol": "AAPL", "indicators": [each["name"]]}
            reply = await desk.reply("chartgen", "get_indicators", given)
            if reply.is_error:  # it needs data that the simulator does not have
                continue
            assert tokens(reply.payload) <= MOST, each["name"]
            (shown,) = reply.payload["indicators"].values()
            if lists := [name for name in ("signals", "divlines") if f"{name}_total" in shown]:
                whole = await desk.chartgen("generate_chart", **given, format="series")
                summary = await desk.chartgen("generate_chart", **given, format="summary")
                (all_of_it,), (same,) = whole["indicators"].values(), summary["indicators"].values()
                for name in lists:
                    index = "x" if name == "signals" else "x2"
                    assert shown[f"{name}_total"] == len(all_of_it[name]) > len(shown[name]) == MOST_MARKS
                    kept = {item[index] for item in shown[name]}
                    assert min(kept) >= sorted(item[index] for item in all_of_it[name])[-MOST_MARKS]
                    assert same[name] == shown[name]
                cut.add(each["name"])
    assert cut >= {"session_vp", "tpo", "fractals"}, "otherwise this shows nothing"


def test_descriptions_name_the_limits_and_are_short() -> None:
    chartgen = load("chartgen").by_name
    for name in ("generate_chart", "get_indicators"):
        assert f"{MAX_INDICATORS} indicators" in chartgen[name].description
    for server in NAMES:
        for tool in load(server).tools:
            assert len(tool.description) <= 300, tool.name
            assert len(json.dumps(_declared(tool))) / 4 <= 700, tool.name


def _declared(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}
