"""Every argument of every tool, with wrong values of many kinds: each error is in our own words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openbell.servers import NAMES, load
from tests.servers.desks import Bench, awaited, bench_as_found
from tests.servers.test_arguments import AS_OF, GOOD, required

WRONG: tuple[Any, ...] = (
    *(None, True, 5, -5, 0.5, 1e300, -(10**400), float("nan"), "", "nonsense", "9" * 900, "\x00"),
    *([], {}, [None], [[]], [{}], [{"name": None}], {"name": 1}, {"nonsense": {"deep": []}}, [1] * 600, {"": ""}),
)
FOREIGN = re.compile(
    r"[Ii]nput should|validation error|[Vv]alue error|[Ff]ield required|[Ee]xtra inputs|pydantic|Traceback|Error\b|"
    r"unable to parse|List should|String should|valid (string|integer|number|boolean|list|dictionary)|"
    r"\b[A-Z][a-z]+(Input|Shape|Object)\b|constrained|function-|SkipJsonSchema|NoneType|<class"
)
"""A validator's phrases, names of classes and of Python's types."""


def nested(schema: dict[str, Any], good: Any) -> Iterator[Any]:
    """Values that are wrong only inside: each field of an object and each entry of a list with each wrong value."""
    for each in (schema, *schema.get("anyOf", [])):
        for name in each.get("properties", {}):
            whole = good if isinstance(good, dict) else {}
            yield from ({**whole, name: wrong} for wrong in WRONG)
            yield {**whole, f"{name}x": 1}
        if isinstance(items := each.get("items"), dict):
            inner = good[0] if isinstance(good, list) and good else None
            yield from ([value] for value in (*WRONG, *nested(items, inner)))


async def check(desk: Bench, server: str, tool: str, arguments: dict[str, Any]) -> None:
    """An error is in our own words, and is no bug."""
    reply = await desk.reply(server, tool, arguments)
    if reply.is_error:
        text = json.dumps(reply.payload)
        shown = f"{tool} {str(arguments)[:300]}: {text[:500]}"
        assert not FOREIGN.search(text.replace("DATABASE_ERROR", "")), shown
        assert "Internal error" not in text, shown


@pytest.mark.parametrize("server", NAMES)
@awaited
async def test_every_wrong_argument_is_refused_in_our_own_words(tmp_path: Path, server: str) -> None:
    async with bench_as_found(tmp_path, AS_OF, FEED="none") as desk:
        for tool in load(server).tools:
            for name, schema in tool.input_schema["properties"].items():
                for value in (*WRONG, *nested(schema, GOOD.get(name))):
                    await check(desk, server, tool.name, required(tool) | {name: value})
            await check(desk, server, tool.name, {})
            await check(desk, server, tool.name, {"nonsense": 1})


CANDLES = {"symbol": "AAPL"}
ORDER = {"symbol": "AAPL", "side": "buy", "type": "market", "quantity": 1}


@pytest.mark.parametrize(
    ("server", "tool", "arguments", "message"),
    [
        ("market-data", "get_candles", {}, "symbol is required"),
        ("market-data", "get_candles", {**CANDLES, "limit": 1001}, "limit must be at most 1000"),
        ("market-data", "get_candles", {**CANDLES, "limit": 0}, "limit must be at least 1"),
        ("market-data", "get_candles", {**CANDLES, "limit": "5"}, "limit must be a whole number, not text"),
        ("market-data", "get_candles", {**CANDLES, "limit": None}, "limit must be a whole number, not null"),
        ("market-data", "get_candles", {"symbol": ["A"]}, "symbol must be text, not a list"),
        ("market-data", "get_candles", {**CANDLES, "force_refresh": "x"}, "force_refresh must be true or false, not text"),
        ("market-data", "get_candles", {**CANDLES, "limits": 1},
         "limits is not an argument of this tool; did you mean 'limit'?"),
        ("chartgen", "place_order", {**ORDER, "quantity": [1]}, "quantity must be a number or text, not a list"),
        ("chartgen", "get_indicators", {**CANDLES, "indicators": [5]},
         "indicators[0] must be text or an object, not a number"),
        ("chartgen", "get_indicators", {**CANDLES, "indicators": [{"nam": "rsi"}]}, "indicators[0].name is required"),
        ("chartgen", "get_indicators", {**CANDLES, "indicators": ["rsi"] * 25},
         "indicators must have at most 24 entries, not 25"),
        ("chartgen", "cancel_order", {"order_id": "x" * 201}, "order_id must have at most 200 characters"),
        ("chartgen", "generate_chart", {**CANDLES, "scale": 9}, "scale must be at most 4"),
        ("chartgen", "set_alert", {**CANDLES, "condition": {"price_abov": 1}},
         "condition.price_abov is not a known field; did you mean 'price_above'?"),
        ("chart-signals", "subscribe_alerts", {**CANDLES, "timeframe": "1min", "conditions": []},
         "conditions must have at least 1 entry, not 0"),
        ("chart-signals", "subscribe_alerts",
         {**CANDLES, "timeframe": "1min", "conditions": [{"type": "macd_cross", "direction": "upp"}]},
         "conditions[0].direction must be up or down; did you mean 'up'?"),
        ("arche", "quotes.live", {"tickers": ["AAPL"] * 51}, "tickers must have at most 50 entries, not 51"),
        ("chart-image", "get_symbols", {"exchange": "NASDAQ", "limit": 0}, "limit must be at least 1"),
        ("chart-image", "construct_chart_config", {"naturalLanguage": "BTC", "preferences": {"theem": "dark"}},
         "preferences.theem is not a known field; did you mean 'theme'?"),
    ],
)  # fmt: skip
@awaited
async def test_an_error_names_the_argument_and_the_limit(
    tmp_path: Path, server: str, tool: str, arguments: dict[str, Any], message: str
) -> None:
    async with bench_as_found(tmp_path, AS_OF, FEED="none") as desk:
        reply = await desk.reply(server, tool, arguments)
        assert reply.is_error
        assert message in json.dumps(reply.payload, ensure_ascii=False)
