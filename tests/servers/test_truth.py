"""What answers say about themselves: where the data comes from, which session, whether the feed was asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from openbell.protocol.dialects import Reply
from tests.client import run
from tests.servers.desks import awaited, bench, bench_as_found

SATURDAY = "2026-01-10T18:00:00Z"
SIMULATED = "Openbell simulator (simulated data)"
ORDER = {"symbol": "BTC/USD", "side": "buy", "type": "market", "quantity": "0.001"}


@pytest.mark.parametrize(
    ("server", "tool", "arguments"),
    [
        ("market-data", "get_candles", {"symbol": "BTC/USD"}),
        ("market-data", "get_current_price", {"symbol": "BTC/USD"}),
        ("market-data", "get_volatility", {"symbol": "BTC/USD"}),
        ("portfolio", "get_positions", {}),
        ("portfolio", "get_balance", {}),
        ("portfolio", "validate_trade", {"symbol": "BTC/USD", "side": "BUY", "size": 0.001}),
        ("chartgen", "get_positions", {}),
        ("chartgen", "get_balance", {}),
        ("chartgen", "get_orders", {}),
        ("chartgen", "get_indicators", {"symbol": "BTC/USD", "indicators": ["rsi"]}),
        ("chartgen", "generate_chart", {"symbol": "BTC/USD", "format": "summary"}),
        ("chartgen", "generate_chart", {"symbol": "BTC/USD", "format": "both"}),
        ("chartgen", "generate_chart", {"symbol": "BTC/USD", "format": "series"}),
        ("chart-signals", "get_signals", {"symbol": "BTC/USD", "timeframe": "1min"}),
        ("chart-signals", "get_watchlist", {}),
        ("chart-signals", "get_storage_info", {}),
        ("chart-signals", "get_capabilities", {}),
    ],
)
@awaited
async def test_payloads_name_their_data(tmp_path: Path, server: str, tool: str, arguments: dict[str, Any]) -> None:
    async with bench_as_found(tmp_path, SATURDAY) as desk:
        assert (await desk.ask(server, tool, **arguments))["data_source"] == SIMULATED


# The session


def session(reply: Reply) -> str:
    return str(reply.truth["session"])


@awaited
async def test_the_header_speaks_of_the_instrument_that_was_asked_for(tmp_path: Path) -> None:
    async with bench(tmp_path, SATURDAY) as desk:
        placed = await desk.reply("chartgen", "place_order", ORDER)
        assert not placed.is_error
        alert = await desk.reply(
            "chartgen", "set_alert", {"symbol": "BTC/USD", "condition": {"price_above": 1e9}, "interval": "1h"}
        )
        for reply in (
            placed,
            alert,
            await desk.reply("chartgen", "cancel_order", {"order_id": placed.payload["order_id"]}),
            await desk.reply("chartgen", "cancel_alert", {"alert_id": alert.payload["alert_id"]}),
            await desk.reply("portfolio", "validate_trade", {"symbol": "BTC/USD", "side": "BUY", "size": 0.001}),
            await desk.reply("portfolio", "get_positions", {"symbol": "BTC/USD"}),
            await desk.reply("market-data", "get_candles", {"symbol": "BTC/USD"}),
        ):
            assert not reply.is_error, reply.payload
            assert session(reply) == "regular"
        stocks = await desk.reply("portfolio", "validate_trade", {"symbol": "AAPL", "side": "BUY", "size": 1})
        assert session(stocks) == "closed"


@awaited
async def test_the_header_of_a_refusal_does_too(tmp_path: Path) -> None:
    async with bench(tmp_path, SATURDAY) as desk:
        for server, tool, arguments in (
            ("chartgen", "place_order", {**ORDER, "quantity": "1000000"}),
            ("chartgen", "place_order", {**ORDER, "type": "limit"}),
            ("chartgen", "set_alert", {"symbol": "BTC/USD", "condition": {}}),
            ("chartgen", "generate_chart", {"ticker": "BTCUSDT", "indicators": ["nonsense"]}),
            ("portfolio", "validate_trade", {"symbol": "BTC/USD", "side": "HOLD", "size": 1}),
            ("chart-signals", "get_signals", {"symbol": "BTC/USD", "timeframe": "2h"}),
        ):
            reply = await desk.reply(server, tool, arguments)
            assert reply.is_error
            assert session(reply) == "regular", tool


# Whether the feed was asked


@awaited
async def test_indicators_say_whether_the_feed_was_asked(tmp_path: Path) -> None:
    asked = {"symbol": "BTC/USD", "indicators": ["rsi"], "interval": "1h"}
    async with bench_as_found(tmp_path, SATURDAY) as desk:
        assert (await desk.chartgen("get_indicators", **asked))["source"] == "fetched"
        assert (await desk.chartgen("get_indicators", **asked))["source"] == "engine_cache", "from memory"
        assert (await desk.chartgen("get_indicators", **{**asked, "symbol": "ETH/USD"}))["source"] == "fetched"
    async with bench_as_found(tmp_path, SATURDAY) as desk:
        assert (await desk.chartgen("get_indicators", **asked))["source"] == "engine_cache", "from the store"
    async with bench_as_found(tmp_path, "2026-01-10T19:05:00Z") as desk:
        assert (await desk.chartgen("get_indicators", **asked))["source"] == "fetched", "an hour was missing"
    async with bench_as_found(tmp_path, SATURDAY, TRADE="0") as desk:
        for _ in range(2):
            assert (await desk.chartgen("get_indicators", **asked))["source"] == "fetched", "no engine without --trade"


# The command line

HEADER = (
    "truth: data=simulated account=none feed=sim as_of=2026-01-10T18:00:00+00:00 made_of=1m age_s=0 session=regular\n"
)


def test_call_prints_the_header_on_standard_error_and_the_result_alone_on_output(tmp_path: Path) -> None:
    words = ("call", "market-data", "get_current_price", '{"symbol": "BTC/USD"}')
    done = run(tmp_path, *words, AS_OF=SATURDAY)
    assert (done.returncode, done.stderr) == (0, HEADER)
    assert set(json.loads(done.stdout)) == {"data", "_metadata"}
    balance = run(tmp_path, "call", "portfolio", "get_balance", AS_OF=SATURDAY)
    assert balance.stderr.startswith("truth: data=simulated account=paper feed=sim")
    assert "age_s=- session=closed" in balance.stderr


def test_call_with_meta_prints_one_object_with_the_header_in_it(tmp_path: Path) -> None:
    words = ("call", "chart-signals", "get_signals", '{"symbol": "BTC/USD", "timeframe": "1min"}')
    plain, meta = run(tmp_path, *words, AS_OF=SATURDAY), run(tmp_path, *words, "--meta", AS_OF=SATURDAY)
    assert (meta.returncode, meta.stderr) == (0, "")
    said = json.loads(meta.stdout)
    assert set(said) == {"result", "_meta"}
    assert said["result"] == json.loads(plain.stdout)
    assert said["_meta"]["openbell/truth"] == {
        "data": "simulated",
        "account": "none",
        "feed": "sim",
        "as_of": "2026-01-10T18:00:00+00:00",
        "made_of": "1m",
        "age_s": 0,
        "session": "regular",
    }


def test_call_prints_the_header_of_errors_too(tmp_path: Path) -> None:
    for words, code in (
        (("chart-signals", "get_signals", '{"symbol": "BTC/USD", "timeframe": "2h"}'), -32003),
        (("chart-signals", "nonsense"), -32601),
    ):
        done = run(tmp_path, "call", *words, AS_OF=SATURDAY)
        assert done.returncode == 1
        assert json.loads(done.stdout)["code"] == code
        (line,) = done.stderr.splitlines()
        assert line.startswith("truth: data=simulated")
        meta = run(tmp_path, "call", *words, "--meta", AS_OF=SATURDAY)
        assert meta.returncode == 1
        assert json.loads(meta.stdout)["result"] == json.loads(done.stdout)
        assert json.loads(meta.stdout)["_meta"]["openbell/truth"]["data"] == "simulated"


def test_the_help_of_call_tells_of_both(tmp_path: Path) -> None:
    told = " ".join(run(tmp_path, "call", "--help").stdout.split())
    assert "--meta" in told
    assert "openbell/truth" in told
    assert "standard error" in told
