"""What every tool of every server does with its arguments: lengths, whole numbers, defaults, names."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import ValidationError

from openbell.market.timeframes import CHART, read_timeframe
from openbell.protocol.tool import Tool
from openbell.servers import NAMES, load
from tests.client import OPENBELL, Client, run
from tests.servers.desks import Bench, awaited, bench, bench_as_found, payload

AS_OF = "2026-01-07T15:00:00Z"
EVERY = [pytest.param(server, tool, id=f"{server}-{tool.name}") for server in NAMES for tool in load(server).tools]
GOOD: dict[str, Any] = {
    "symbol": "BTC/USD",
    "ticker": "BTC/USD",
    "side": "buy",
    "type": "market",
    "quantity": "0.01",
    "size": 0.01,
    "order_id": "local-1",
    "alert_id": "alert_1",
    "subscription_id": "sub_1",
    "condition": {"price_above": 1},
    "conditions": [{"type": "rsi_oversold"}],
    "indicators": ["rsi"],
    "timeframe": "1h",
    "interval": "1d",
    "tickers": ["BTC/USD"],
    "from": "2026-01-05",
    "to": "2026-01-06",
    "action": "BUY",
    "confidence": 0.5,
    "reasoning": "because",
    "strategy_id": "MACD_CROSSOVER",
    "spec_id": "MACD_CROSSOVER",
    "name": "SAMPLE",
    "entry_conditions": [],
    "exit_conditions": [],
    "parameters": [],
    "exchange": "BINANCE",
    "naturalLanguage": "Bitcoin",
    "config": {"symbol": "BINANCE:BTCUSD", "interval": "1h"},
}
LONG = " " * 1_000_000


def required(tool: Tool) -> dict[str, Any]:
    """The least that a tool takes."""
    return {name: GOOD[name] for name in tool.input_schema.get("required", [])}


def places(schema: dict[str, Any], kind: str) -> bool:
    """Whether a schema takes a value of this type."""
    return schema.get("type") == kind or any(places(each, kind) for each in schema.get("anyOf", []))


async def refused(desk: Bench, server: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The error of a call, which is short and comes at once."""
    began = time.process_time()
    reply = await desk.reply(server, tool, arguments)
    assert reply.is_error, f"{tool} took it"
    assert len(json.dumps(reply.payload)) < 4000
    assert "Internal error" not in str(reply.payload)
    assert time.process_time() - began < 2.0
    payload: dict[str, Any] = reply.payload
    return payload


# Lengths


@pytest.mark.parametrize(("server", "tool"), EVERY)
@awaited
async def test_no_text_of_a_million_blanks_is_taken(tmp_path: Path, server: str, tool: Tool) -> None:
    async with bench_as_found(tmp_path, AS_OF) as desk:
        for name, schema in tool.input_schema["properties"].items():
            if places(schema, "string"):
                text = f"{LONG}{GOOD.get(name, 'x')}{LONG}"
                await refused(desk, server, tool.name, required(tool) | {name: text})
            if places(schema, "array") and name != "tool_calls":
                await refused(desk, server, tool.name, required(tool) | {name: [LONG]})
        await refused(desk, server, tool.name, required(tool) | {LONG: 1})
        await refused(desk, server, tool.name, required(tool) | {"nonsense": LONG})


@awaited
async def test_a_long_symbol_has_the_contracts_own_code(tmp_path: Path) -> None:
    long = f"{LONG}AAPL{LONG}"
    async with bench_as_found(tmp_path, AS_OF) as desk:
        signals = await refused(desk, "chart-signals", "get_signals", {"symbol": long, "timeframe": "1min"})
        assert signals["code"] == -32002
        for server, tool, more in (
            ("market-data", "get_candles", {}),
            ("portfolio", "validate_trade", {"side": "BUY", "size": 1}),
            ("decisions", "save_decision", {"action": "BUY", "confidence": 1, "reasoning": "x"}),
        ):
            payload = await refused(desk, server, tool, {"symbol": long, **more})
            assert payload["error"]["code"] == "INVALID_SYMBOL"
        candles = {"symbol": "AAPL", "timeframe": f"{LONG}1h"}
        assert (await refused(desk, "market-data", "get_candles", candles))["error"]["code"] == "INVALID_TIMEFRAME"


def test_nothing_long_is_stored_and_the_command_line_refuses_it_too(tmp_path: Path) -> None:
    blanks = " " * 60_000
    order = {"symbol": f"{blanks}BTC/USD{blanks}", "side": "buy", "type": "market", "quantity": "0.001"}
    done = run(tmp_path, "call", "chartgen", "place_order", "--trade", json.dumps(order), AS_OF=AS_OF)
    assert done.returncode == 1
    assert len(done.stdout) < 1000
    assert "Invalid symbol" in json.loads(done.stdout)["error"]
    alert = {"symbol": order["symbol"], "condition": {"price_above": 1}}
    assert run(tmp_path, "call", "chartgen", "set_alert", "--trade", json.dumps(alert), AS_OF=AS_OF).returncode == 1
    left = json.loads(run(tmp_path, "call", "chartgen", "get_orders", "--trade", AS_OF=AS_OF).stdout)
    assert left["orders"] == []


@awaited
async def test_a_value_that_is_sent_back_is_cut(tmp_path: Path) -> None:
    async with bench_as_found(tmp_path, AS_OF) as desk:
        entry = {"name": "rsi", "length": [7] * 300_000}
        await refused(desk, "chartgen", "get_indicators", {"symbol": "BTC/USD", "indicators": [entry]})


# Whole numbers


@pytest.mark.parametrize(("server", "tool"), EVERY)
def test_a_whole_number_may_be_written_with_a_point(server: str, tool: Tool) -> None:
    found = 0
    for name, schema in tool.input_schema["properties"].items():
        if not places(schema, "integer"):
            continue
        found += 1
        least = schema.get("minimum", 1)
        given = tool.arguments.model_validate(required(tool) | {name: float(least)})
        assert getattr(given, name) == least
        assert type(getattr(given, name)) is int
        for value in (least + 0.5, True, str(least), float("nan"), float("inf")):
            with pytest.raises(ValidationError):
                tool.arguments.model_validate(required(tool) | {name: value})
    others = (each for name, each in tool.input_schema["properties"].items() if name != "config")  # checked by the tool
    assert found == sum('"integer"' in json.dumps(each) for each in others)


def test_over_the_pipe_five_with_a_point_is_five(tmp_path: Path) -> None:
    with Client(tmp_path, command=[*OPENBELL, "mcp", "market-data"], AS_OF=AS_OF) as client:
        client.initialize()

        def ask(limit: str) -> dict[str, Any]:
            arguments = f'{{"symbol": "BTC/USD", "limit": {limit}, "offset": 0.0}}'
            call = f'{{"name": "get_candles", "arguments": {arguments}}}'
            client.send_raw(f'{{"jsonrpc": "2.0", "id": "n", "method": "tools/call", "params": {call}}}'.encode())
            return payload(client.response("n")["result"])

        assert ask("5.0")["data"] == ask("5")["data"]
        assert ask("5.0")["data"]["pagination"]["limit"] == 5
        for wrong in ("5.5", "true", '"5"', "5e-1"):
            assert ask(wrong)["error"]["code"] == "INVALID_PARAMETER", wrong


@awaited
async def test_an_indicators_length_may_be_written_with_a_point(tmp_path: Path) -> None:
    async with bench_as_found(tmp_path, AS_OF) as desk:
        for length in (21, 21.0):
            entry = {"name": "rsi", "length": length}
            found = await desk.chartgen("get_indicators", symbol="BTC/USD", indicators=[entry])
            assert found["indicators"]["rsi"]["label"] == "RSI(21)"
        for wrong in (21.5, True):
            entry = {"name": "rsi", "length": wrong}
            assert "whole number" in await desk.no("get_indicators", symbol="BTC/USD", indicators=[entry])


# Defaults


@pytest.mark.parametrize(("server", "tool"), EVERY)
def test_every_default_is_a_value_that_the_schema_takes(server: str, tool: Tool) -> None:
    def walk(schema: dict[str, Any]) -> None:
        if "default" in schema:
            jsonschema.validate(schema["default"], schema)
        for each in (*schema.get("properties", {}).values(), *schema.get("anyOf", [])):
            walk(each)
        if isinstance(schema.get("items"), dict):
            walk(schema["items"])

    walk(tool.input_schema)


@awaited
async def test_an_alert_without_an_interval_has_the_usual_one(tmp_path: Path) -> None:
    signal = {"indicator_signal": {"indicator": "cipher_b", "signal": "gold_buy"}}
    async with bench_as_found(tmp_path, AS_OF) as desk:
        for more in ({}, {"interval": None}):
            alert = await desk.chartgen("set_alert", symbol="BTC/USD", condition={"price_above": 1e9}, **more)
            assert alert["interval"] == "1m"
        assert (await desk.chartgen("set_alert", symbol="BTC/USD", condition=signal))["interval"] == "4h"


# Names


SPELLINGS = {
    "1m": "1min 1Min 1minute 1",
    "5m": "5min 5 5minutes",
    "15m": "15min 15",
    "1h": "1hour 1H 60m 60min 60 hourly",
    "4h": "4H 4hours 240m 240",
    "1d": "1D D 1day daily 1Day 24h",
}
TIMEFRAMES: list[tuple[str, str, str, str, dict[str, Any]]] = [
    ("chart-signals", "get_signals", "timeframe", "tf", {}),
    ("chart-signals", "get_watchlist", "timeframe", "timeframe", {}),
    ("chart-signals", "subscribe_alerts", "timeframe", "timeframe", {"conditions": [{"type": "rsi_oversold"}]}),
    ("market-data", "get_candles", "timeframe", "", {"limit": 2}),
    ("market-data", "get_volatility", "timeframe", "window.timeframe", {}),
    ("chartgen", "generate_chart", "timeframe", "interval", {"format": "summary", "bars": 2}),
    ("chartgen", "generate_chart", "interval", "interval", {"format": "summary", "bars": 2}),
    ("chartgen", "get_indicators", "interval", "interval", {"indicators": ["rsi"]}),
    ("chartgen", "set_alert", "interval", "interval", {"condition": {"price_above": 1e9}}),
    (
        "arche",
        "quotes.historical",
        "interval",
        "items.0.interval",
        {"from": "2026-01-05", "to": "2026-01-06", "page_size": 2},
    ),
    (
        "chart-image",
        "construct_chart_config",
        "preferences.interval",
        "config.interval",
        {"naturalLanguage": "Bitcoin"},
    ),
]
"""Tools with a timeframe: its argument, where the result repeats it, and other arguments."""


def symbol_for(server: str, tool: str) -> dict[str, Any]:
    """The argument that names the symbol; the watchlist has none."""
    if tool == "get_watchlist":
        return {}
    return {"tickers": ["BTC/USD"]} if server == "arche" else {"symbol": "BTC/USD"}


def at(value: Any, path: str) -> Any:
    """The part of a result at a path."""
    for part in filter(None, path.split(".")):
        value = value[int(part) if part.isdigit() else part]
    return value


@pytest.mark.parametrize(("server", "tool", "argument", "told", "more"), TIMEFRAMES)
@awaited
async def test_every_server_takes_every_spelling_of_a_timeframe_and_answers_its_own(
    tmp_path: Path, server: str, tool: str, argument: str, told: str, more: dict[str, Any]
) -> None:
    """The schema has the contract's names alone; another spelling of one of them is answered as that name is."""
    schema = load(server).by_name[tool].input_schema["properties"]
    symbol = symbol_for(server, tool)
    names = schema.get(argument, {}).get("enum") or next(
        (each["enum"] for each in schema.get(argument, {}).get("anyOf", []) if "enum" in each), list(CHART)
    )
    async with bench_as_found(tmp_path, AS_OF) as desk:
        for short, spellings in SPELLINGS.items():
            own = next((name for name in names if read_timeframe(name) is read_timeframe(short)), None)
            for spelling in (short, *spellings.split()):
                nested = {"preferences": {"interval": spelling}} if "." in argument else {argument: spelling}
                reply = await desk.reply(server, tool, {**symbol, **more, **nested})
                assert reply.is_error is (own is None), (spelling, reply.payload)
                if own is None:
                    assert "nvalid timeframe" in str(reply.payload)
                elif told:
                    assert at(reply.payload.get("data", reply.payload), told) == own


def test_every_argument_of_a_timeframe_is_in_the_table() -> None:
    found = {(server, tool.name, name) for server in NAMES for tool in load(server).tools
             for name in tool.input_schema["properties"] if name in {"timeframe", "interval"}}  # fmt: skip
    assert found == {row[:3] for row in TIMEFRAMES if "." not in row[2]}


@awaited
async def test_a_month_is_never_a_minute(tmp_path: Path) -> None:
    async with bench_as_found(tmp_path, AS_OF) as desk:
        for server, tool, argument, _, more in TIMEFRAMES[:-1]:
            symbol = symbol_for(server, tool)
            for month in ("1M", "M", "1mo", "monthly", "m", "5M", "15M"):
                payload = (await desk.reply(server, tool, {**symbol, **more, argument: month})).payload
                assert "nvalid timeframe" in str(payload), (server, tool, month, payload)
        config = {"symbol": "BINANCE:BTCUSD"}
        for month in ("1M", "monthly"):
            made = await desk.ask("chart-image", "construct_chart_config", naturalLanguage="Bitcoin",
                                  preferences={"interval": month})  # fmt: skip
            assert made["config"]["interval"] == "1M"
        for interval, valid in (("60min", True), ("daily", True), ("5M", False), ("7m", False)):
            checked = await desk.ask("chart-image", "validate_chart_config", config={**config, "interval": interval})
            assert checked["valid"] is valid, checked


@awaited
async def test_sides_are_taken_in_any_case_and_answered_in_the_contracts(tmp_path: Path) -> None:
    async with bench(tmp_path, AS_OF) as desk:
        for side in ("BUY", "Buy", "buy"):
            placed = await desk.chartgen("place_order", symbol="BTC/USD", side=side, type="market", quantity="0.001",
                                         client_order_id=side)  # fmt: skip
            assert placed["side"] == "buy"
            verdict = await desk.ask("portfolio", "validate_trade", symbol="BTC/USD", side=side, size=0.001)
            assert verdict["valid"] is True
            note: dict[str, Any] = {"symbol": "BTC/USD", "action": side, "confidence": 0.5, "reasoning": side}
            await desk.ask("decisions", "save_decision", **note)
        for action in ("BUY", "Buy", "buy"):
            recent = await desk.ask("decisions", "get_recent_decisions", action=action)
            assert [each["action"] for each in recent["items"]] == ["BUY"] * 3
        for side in ("long", "Short", "b"):
            assert (
                await desk.reply("portfolio", "validate_trade", {"symbol": "BTC/USD", "side": side, "size": 1})
            ).is_error


@pytest.mark.parametrize(
    ("server", "tool", "arguments", "meant"),
    [
        ("portfolio", "validate_trade", {"symbol": "AAPL", "side": "buys", "size": 1}, "BUY"),
        ("chartgen", "place_order", {"symbol": "AAPL", "side": "sel", "type": "market", "quantity": 1}, "sell"),
        ("market-data", "get_candles", {"symbol": "AAPL", "timeframe": "15mn"}, "15m"),
        ("market-data", "get_candles", {"symbol": "AAPL", "timeframe": "1ho"}, "1h"),
        ("market-data", "get_candles", {"symbol": "AAPL", "limits": 5}, "limit"),
        ("chart-signals", "get_signals", {"symbol": "AAPL", "timeframe": "15mni"}, "15min"),
        ("decisions", "get_recent_decisions", {"action": "holdd"}, "HOLD"),
    ],
)
@awaited
async def test_an_unknown_name_suggests_the_nearest(
    tmp_path: Path, server: str, tool: str, arguments: dict[str, Any], meant: str
) -> None:
    async with bench_as_found(tmp_path, AS_OF) as desk:
        assert f"did you mean '{meant}'" in str(await refused(desk, server, tool, arguments)).replace('"', "'")


def test_an_unknown_tool_or_server_suggests_the_nearest(tmp_path: Path) -> None:
    done = run(tmp_path, "call", "market-data", "get_candle")
    assert "did you mean 'get_candles'" in json.loads(done.stdout)["message"]
    assert "did you mean 'market-data'" in run(tmp_path, "call", "market_data", "get_candles").stderr
    with Client(tmp_path) as client:
        client.initialize()
        assert "did you mean 'get_signals'" in client.call("get_signal")["error"]["message"]
