"""chart-signals, row by row: real servers on stdio, with bars that were imported or that the simulator makes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.client import Client, run
from tests.contracts.rows import differs, row, shown_by
from tests.contracts.wire import ask, server, tools
from tests.servers import reference
from tests.servers.quotes_server import QuotesServer, reply
from tests.servers.test_alerts import AS_OF as ALERTS_FROM
from tests.servers.test_alerts import CONDITIONS, alerts, epoch, expected
from tests.servers.test_chart_signals import SECONDS, START, Row, at, buckets, walk

NOW = START + 4000 * 60
FRIDAY = "2025-09-19T19:00:00Z"
"""The moment of the contract's examples."""
SNAPSHOT = {
    "price",
    "ema9",
    "ma10",
    "macd",
    "signal",
    "hist",
    "rsi",
    "bb_upper",
    "bb_middle",
    "bb_lower",
    "time",
}
CROSSINGS = {
    "macd_cross_up",
    "macd_cross_dn",
    "ema_support_lost",
    "ema_reclaim",
    "rsi_overbought",
    "rsi_oversold",
    "bb_squeeze",
    "bb_breakout_up",
    "bb_breakout_dn",
}
STOCKS = (
    "SPY, QQQ, IWM, AAPL, MSFT, GOOGL, AMZN, META, NVDA, TSLA, BBAI, RIOT, NVDX, SMR, APLD, SOUN, SERV, ACHR, BITQ, UEC"
).split(", ")
GET_SIGNALS = b"""{
  "jsonrpc": "2.0",
  "id": 1,
  "method": "tools/call",
  "params": {
    "name": "get_signals",
    "arguments": {
      "symbol": "AAPL",
      "timeframe": "1min"
    }
  }
}"""
QUICK_START = [
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"check_market_status","arguments":{}}}',
    b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"get_signals","arguments":{"symbol":"AAPL","timeframe":"1min"}}}',
    b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"get_watchlist","arguments":{}}}',
]


# Closes whose indicators are known without a calculation, minute by minute up to NOW. While nothing moves, the MACD equals
# its signal, the close its average and the bands.

FLAT = [100.0] * 40
UP, DOWN = [*FLAT, 101.0], [*FLAT, 99.0]
SEVEN_UP_THREE_DOWN = [100.0, 101, 100, 101, 102, 101, 102, 103, 102, 103, 104]
"""Ten steps of 1, of which seven are up: an RSI of exactly 70 as long as nothing moves afterwards."""
CLOSES: dict[str, list[float]] = {
    "FLAT": FLAT,
    "UP": UP,
    "DOWN": DOWN,
    "FARUP": [*FLAT, 110.0],
    "RISES": [*UP, 102.0],
    "FALLS": [*DOWN, 98.0],
    "HIGH": [*SEVEN_UP_THREE_DOWN, *[104.0] * 24],
    "LOW": [200 - close for close in [*SEVEN_UP_THREE_DOWN, *[104.0] * 24]],
    "LESS": [*SEVEN_UP_THREE_DOWN[:-1], 103.9, *[103.9] * 24],
    "MORE": [200 - close for close in [*SEVEN_UP_THREE_DOWN[:-1], 103.9, *[103.9] * 24]],
    "WIDE": [99.0, 101.0] * 20,
    "THIN": [99.01, 100.99] * 20,
    "FEW": [100.0] * 10,
}


def minutes(closes: list[float]) -> list[Row]:
    """Bars with these closes, the last one before NOW."""
    first = NOW - 60 * len(closes)
    return [(first + 60 * number, close, close, close, close, 1.0) for number, close in enumerate(closes)]


WALK = walk(4000, 1)
STORED: dict[str, list[Row]] = {"AAPL": WALK, "BTCUSD": walk(4000, 2), "TSLA": walk(4000, 3)[-33:]}
STORED |= {name: minutes(closes) for name, closes in CLOSES.items()}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with imported minutes. AAPL, BTC/USD and TSLA are watched, the others are not."""
    made, files = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("files")
    for name, rows in STORED.items():
        lines = ["timestamp,open,high,low,close,volume", *(",".join(map(repr, each)) for each in rows)]
        (files / f"{name}.csv").write_text("\n".join(lines) + "\n")
    done = run(made, "import", f"{files}/*.csv", "--by-name", "--timeframe", "1m")
    assert done.returncode == 0, done.stderr
    (made / "watchlist.txt").write_text("AAPL\nTSLA\nBTC/USD\n")
    return made


@pytest.fixture(scope="module")
def stored(home: Path) -> Iterator[Client]:
    """The server of that home at NOW."""
    with server(home, "chart-signals", AS_OF=at(NOW), FEED="none") as client:
        yield client


@pytest.fixture(scope="module")
def friday(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A server with the simulator at the moment of the contract's examples."""
    with server(tmp_path_factory.mktemp("friday"), "chart-signals", AS_OF=FRIDAY) as client:
        yield client


def signals(client: Client, symbol: str, timeframe: str = "1min") -> dict[str, Any]:
    return ask(client, "get_signals", symbol=symbol, timeframe=timeframe)


def crossings(client: Client, *symbols: str) -> list[dict[str, bool]]:
    return [signals(client, symbol)["crossings"] for symbol in symbols]


def error(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    found: dict[str, Any] = client.call(tool, arguments)["error"]
    return found


@row("Tool get_signals(symbol, timeframe: 1min|5min|15min|1hour), both required")
def test_get_signals_takes_a_symbol_and_one_of_four_timeframes(stored: Client) -> None:
    schema = tools(stored)["get_signals"]["inputSchema"]
    assert set(schema["properties"]) == {"symbol", "timeframe"}
    assert schema["required"] == ["symbol", "timeframe"]
    assert schema["properties"]["symbol"]["type"] == "string"
    assert schema["properties"]["timeframe"]["enum"] == ["1min", "5min", "15min", "1hour"]


@row("Request example verbatim (id 1, AAPL, 1min)", "Result: ready, symbol, asset_type, tf")
def test_the_contracts_request_is_answered(home: Path) -> None:
    with server(home, "chart-signals", AS_OF=at(NOW), FEED="none") as client:
        client.send_raw(GET_SIGNALS.replace(b"\n", b""))
        answer = client.response(1)
    assert (answer["jsonrpc"], answer["id"]) == ("2.0", 1)
    found = answer["result"]["structuredContent"]
    assert {name: found[name] for name in ("ready", "symbol", "asset_type", "tf")} == {
        "ready": True,
        "symbol": "AAPL",
        "asset_type": "stock",
        "tf": "1min",
    }


@row("asset_type is stock or crypto")
def test_a_symbol_is_a_stock_or_crypto(stored: Client) -> None:
    assert [signals(stored, symbol)["asset_type"] for symbol in ("AAPL", "BTC/USD")] == ["stock", "crypto"]


@row("snapshot: price ema9 ma10 macd signal hist rsi bb_upper bb_middle bb_lower time")
def test_a_snapshot_has_the_contracts_numbers(stored: Client) -> None:
    snapshot = signals(stored, "AAPL")["snapshot"]
    assert set(snapshot) >= SNAPSHOT
    assert all(math.isfinite(snapshot[name]) for name in SNAPSHOT - {"time"})
    assert snapshot["price"] == WALK[-1][4]


@row("crossings: nine booleans")
def test_crossings_are_nine_booleans(stored: Client) -> None:
    found = signals(stored, "AAPL")["crossings"]
    assert set(found) == CROSSINGS
    assert set(map(type, found.values())) == {bool}


@row("Insufficient data: {ready:false, reason:'insufficient bars (need 35+)'}")
def test_a_watched_symbol_with_too_few_bars_is_not_ready(stored: Client) -> None:
    assert signals(stored, "TSLA") == {"ready": False, "reason": "insufficient bars (need 35+)"}


@row("get_watchlist() without arguments; stocks/crypto with symbol, price, rsi, signals")
def test_the_watchlist_has_each_symbol_with_its_price_and_signals(stored: Client) -> None:
    assert "required" not in tools(stored)["get_watchlist"]["inputSchema"]
    found = ask(stored, "get_watchlist")["watchlist"]
    assert set(found) == {"stocks", "crypto"}
    assert [each["symbol"] for each in found["stocks"]] == ["AAPL", "TSLA"]
    assert [each["symbol"] for each in found["crypto"]] == ["BTC/USD"]
    for each in (found["stocks"][0], found["crypto"][0]):
        alone = signals(stored, each["symbol"])
        assert (each["price"], each["rsi"]) == (alone["snapshot"]["price"], alone["snapshot"]["rsi"])
        assert set(each["signals"]) == {name for name, held in alone["crossings"].items() if held}


@row("get_watchlist.timestamp and the two market_hours strings")
def test_the_watchlist_has_its_time_and_the_hours_of_both_markets(stored: Client) -> None:
    found = ask(stored, "get_watchlist")
    assert found["timestamp"] == at(NOW)
    assert found["market_hours"] == {"stocks": "9:30 AM - 4:00 PM ET (weekdays)", "crypto": "24/7"}


@row("check_market_status.stocks: open, session (4 values), next_open, current_time_et")
def test_the_market_status_of_stocks(friday: Client) -> None:
    stocks = ask(friday, "check_market_status")["stocks"]
    assert (stocks["open"], stocks["session"], stocks["current_time_et"]) == (True, "regular", "3:00 PM ET")
    declared = tools(friday)["check_market_status"]["outputSchema"]["properties"]["stocks"]["properties"]
    assert declared["session"]["enum"] == ["premarket", "regular", "afterhours", "closed"]
    assert set(stocks) >= {"open", "session", "next_open", "current_time_et"}


shown_by(
    "check_market_status.stocks: open, session (4 values), next_open, current_time_et",
    "servers/test_chart_signals.py::test_market_status",
)
differs(
    "next_open example 'Tomorrow 9:30 AM ET'",
    "The moment of the example is a Friday, and the market opens on Monday: the answer is `Monday, Sep 22 9:30 AM ET`. If "
    "the market opens tomorrow, the answer is the example's text.",
)


@row("next_open example 'Tomorrow 9:30 AM ET'")
def test_the_next_open_of_a_friday_is_on_monday_and_of_a_thursday_tomorrow(friday: Client, tmp_path: Path) -> None:
    assert ask(friday, "check_market_status")["stocks"]["next_open"] == "Monday, Sep 22 9:30 AM ET"
    with server(tmp_path, "chart-signals", AS_OF="2025-09-18T19:00:00Z") as client:
        assert ask(client, "check_market_status")["stocks"]["next_open"] == "Tomorrow 9:30 AM ET"


@row("check_market_status.crypto {open:true, note:'24/7 trading'}, timestamp")
def test_the_market_status_of_crypto(friday: Client) -> None:
    found = ask(friday, "check_market_status")
    assert found["crypto"] == {"open": True, "note": "24/7 trading"}
    assert found["timestamp"] == "2025-09-19T19:00:00+00:00"


@row("get_storage_info: data_directory, stored_symbols.stocks/crypto (BTC_USD), total_size_mb")
def test_storage_info_names_the_stored_symbols(stored: Client, home: Path) -> None:
    found = ask(stored, "get_storage_info")
    assert found["data_directory"] == str(home / "data")
    assert found["stored_symbols"] == {
        "stocks": sorted(STORED.keys() - {"BTCUSD"}),
        "crypto": ["BTC_USD"],
    }
    assert found["total_size_mb"] > 0


@row("Symbols: stock tickers, crypto with slash")
def test_symbols_are_tickers_and_pairs_with_a_slash(stored: Client) -> None:
    for asked, answered in (("AAPL", "AAPL"), ("BTC/USD", "BTC/USD"), ("btc_usd", "BTC/USD")):
        assert signals(stored, asked)["symbol"] == answered


@row("Files: slash becomes underscore, BTC_USD_2025-09.parquet")
def test_a_file_of_crypto_has_an_underscore(home: Path) -> None:
    assert [path.name for path in home.rglob("BTC*.parquet")] == ["BTC_USD_2025-09.parquet"]


differs(
    "Timeframes: exactly the four names",
    "The enum has the four names, and results use them. Other spellings of the same four (`1m`, `1h`) are understood "
    "instead of refused, which the description of the tool says: agents write them. Any other timeframe is -32003.",
)


@row("Timeframes: exactly the four names")
def test_other_spellings_of_the_four_timeframes_are_understood_and_described(stored: Client) -> None:
    assert [signals(stored, "AAPL", name)["tf"] for name in ("1m", "1h")] == ["1min", "1hour"]
    assert error(stored, "get_signals", symbol="AAPL", timeframe="4h")["code"] == -32003
    tool = tools(stored)["get_signals"]
    described = tool["description"] + tool["inputSchema"]["properties"]["timeframe"].get("description", "")
    assert "1h" in described.replace("1hour", "")


@row("5min, 15min, 1hour aggregated from 1min")
@pytest.mark.parametrize("timeframe", list(SECONDS))
def test_larger_bars_are_made_of_minutes(stored: Client, timeframe: str) -> None:
    answer = stored.call("get_signals", {"symbol": "AAPL", "timeframe": timeframe})["result"]
    assert answer["_meta"]["openbell/truth"]["made_of"] == "1m"
    snapshot, bars = answer["structuredContent"]["snapshot"], buckets(WALK, SECONDS[timeframe], NOW)
    assert (snapshot["time"], snapshot["price"]) == (at(bars[-1][0]), bars[-1][1])


@row("All timestamps UTC, ISO 8601 with zone")
def test_every_time_is_utc_with_its_zone(stored: Client) -> None:
    watched = ask(stored, "get_watchlist")
    status = ask(stored, "check_market_status")
    times = [signals(stored, "AAPL")["snapshot"]["time"], watched["timestamp"], status["timestamp"]]
    for each in times:
        assert datetime.fromisoformat(each).utcoffset() == timedelta(0), each
        assert each.endswith("+00:00")


@row("Bar timestamp is the open")
def test_a_bar_is_named_by_its_open(stored: Client) -> None:
    assert signals(stored, "BTC/USD")["snapshot"]["time"] == at(STORED["BTCUSD"][-1][0])
    assert signals(stored, "FLAT")["snapshot"]["time"] == at(NOW - 60)


@row("Closed bars only")
@pytest.mark.parametrize(("timeframe", "seconds"), SECONDS.items())
def test_an_unfinished_bar_is_not_used(home: Path, timeframe: str, seconds: int) -> None:
    end = (NOW - 6000) // seconds * seconds + seconds
    before, closed = (_snapshot_at(home, moment, timeframe) for moment in (end - 1, end))
    assert epoch(before["time"]) + seconds < end
    assert epoch(closed["time"]) + seconds == end


def _snapshot_at(home: Path, moment: int, timeframe: str) -> dict[str, Any]:
    with server(home, "chart-signals", AS_OF=at(moment), FEED="none") as client:
        found: dict[str, Any] = signals(client, "FLAT" if moment > NOW - 2000 else "AAPL", timeframe)["snapshot"]
    return found


# While nothing moves, both sides of a comparison are equal: a previous bar that is equal counts for a crossing, a last bar
# that is equal does not.


@row("Crossing macd_cross_up (prev <=, last >)")
def test_macd_cross_up(stored: Client) -> None:
    held = [each["macd_cross_up"] for each in crossings(stored, "UP", "RISES", "FLAT", "DOWN")]
    assert held == [True, False, False, False]


@row("Crossing macd_cross_dn (prev >=, last <)")
def test_macd_cross_dn(stored: Client) -> None:
    held = [each["macd_cross_dn"] for each in crossings(stored, "DOWN", "FALLS", "FLAT", "UP")]
    assert held == [True, False, False, False]


@row("Crossing rsi_overbought >= 70 inclusive")
def test_rsi_overbought_is_from_70(stored: Client) -> None:
    assert signals(stored, "HIGH")["snapshot"]["rsi"] == 70
    assert signals(stored, "LESS")["snapshot"]["rsi"] == pytest.approx(69.7, abs=0.05)
    assert [each["rsi_overbought"] for each in crossings(stored, "HIGH", "LESS")] == [True, False]


@row("Crossing rsi_oversold <= 30 inclusive")
def test_rsi_oversold_is_to_30(stored: Client) -> None:
    assert signals(stored, "LOW")["snapshot"]["rsi"] == 30
    assert [each["rsi_oversold"] for each in crossings(stored, "LOW", "MORE")] == [True, False]


@row("Crossing ema_support_lost")
def test_ema_support_lost(stored: Client) -> None:
    held = [each["ema_support_lost"] for each in crossings(stored, "DOWN", "FALLS", "FLAT", "UP")]
    assert held == [True, False, False, False]


@row("Crossing ema_reclaim")
def test_ema_reclaim(stored: Client) -> None:
    held = [each["ema_reclaim"] for each in crossings(stored, "UP", "RISES", "FLAT", "DOWN")]
    assert held == [True, False, False, False]


@row("Crossing bb_squeeze < 0.04")
def test_bb_squeeze_is_below_0_04(stored: Client) -> None:
    wide = signals(stored, "WIDE")["snapshot"]
    assert (wide["bb_upper"] - wide["bb_lower"]) / wide["bb_middle"] == 0.04
    assert [each["bb_squeeze"] for each in crossings(stored, "WIDE", "THIN", "FLAT", "FARUP")] == [
        False,
        True,
        True,
        False,
    ]


@row("Crossing bb_breakout_up")
def test_bb_breakout_up(stored: Client) -> None:
    assert [each["bb_breakout_up"] for each in crossings(stored, "UP", "FARUP", "FLAT", "DOWN")] == [
        True,
        True,
        False,
        False,
    ]


@row("Crossing bb_breakout_dn")
def test_bb_breakout_dn(stored: Client) -> None:
    assert [each["bb_breakout_dn"] for each in crossings(stored, "DOWN", "FLAT", "UP")] == [True, False, False]


@row("EMA 9, SMA 10, MACD 12/26/9, RSI 14, Bollinger 20/2")
@pytest.mark.parametrize("timeframe", list(SECONDS))
def test_the_numbers_equal_an_independent_calculation(stored: Client, timeframe: str) -> None:
    bars = buckets(WALK, SECONDS[timeframe], NOW)
    prev, last = reference.snapshot([close for _, close in bars])
    found = signals(stored, "AAPL", timeframe)
    for name, value in last.items():
        assert found["snapshot"][name] == pytest.approx(value, rel=1e-9, abs=1e-7), name
    assert found["crossings"] == reference.crossings(prev, last)


@row("Error -32001 with message 'Insufficient data' and data symbol, bars_available, bars_needed")
def test_too_few_bars_of_another_symbol_are_error_32001(stored: Client) -> None:
    assert error(stored, "get_signals", symbol="FEW", timeframe="1min") == {
        "code": -32001,
        "message": "Insufficient data",
        "data": {"symbol": "FEW", "bars_available": 10, "bars_needed": 35},
    }


@row("-32002 Invalid symbol")
@pytest.mark.parametrize("symbol", ["", "???", "../../etc/passwd", "NOPE"])
def test_what_is_no_symbol_or_unknown_is_error_32002(stored: Client, symbol: str) -> None:
    found = error(stored, "get_signals", symbol=symbol, timeframe="1min")
    assert (found["code"], found["message"][:14]) == (-32002, "Invalid symbol")


@row("-32002 Invalid symbol")
def test_a_pair_of_currencies_is_refused_as_neither_a_stock_nor_crypto(friday: Client) -> None:
    found = error(friday, "get_signals", symbol="EUR/USD", timeframe="1min")
    assert (found["code"], found["message"][:14]) == (-32002, "Invalid symbol")
    assert "did you mean 'EUR/USD'" not in found["message"]
    assert "stocks and crypto" in found["message"]


@row("-32003 Invalid timeframe")
@pytest.mark.parametrize("timeframe", ["2min", "", "1M", "1day"])
def test_another_timeframe_is_error_32003(stored: Client, timeframe: str) -> None:
    found = error(stored, "get_signals", symbol="AAPL", timeframe=timeframe)
    assert (found["code"], found["message"][:17]) == (-32003, "Invalid timeframe")
    assert "1min, 5min, 15min, 1hour" in found["message"]


@row("-32004 Market data unavailable")
def test_bars_that_cannot_be_read_are_error_32004(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file in the folder's place")
    with server(tmp_path, "chart-signals", FEED="none") as client:
        found = error(client, "get_signals", symbol="AAPL", timeframe="1min")
    assert (found["code"], found["message"][:23]) == (-32004, "Market data unavailable")


@row("-32601 Method not found")
def test_an_unknown_method_or_tool_is_error_32601(stored: Client) -> None:
    assert stored.request("nope", {})["error"]["code"] == -32601
    assert error(stored, "nope")["code"] == -32601


SUBSCRIBE: dict[str, Any] = {
    "method": "subscribe_alerts",
    "params": {
        "symbol": "AAPL",
        "timeframe": "1min",
        "conditions": [{"type": "macd_cross", "direction": "up"}, {"type": "rsi_oversold"}],
        "throttle_ms": 5000,
    },
}


@row("subscribe_alerts (planned), example verbatim")
def test_the_contracts_subscription_is_accepted(friday: Client) -> None:
    found = friday.request(SUBSCRIBE["method"], SUBSCRIBE["params"])["result"]
    assert found["subscription_id"].startswith("sub_")
    assert friday.request("unsubscribe_alerts", {"subscription_id": found["subscription_id"]})["result"]["unsubscribed"]


@row("signals.alert notification format")
def test_an_alert_is_the_contracts_notification(tmp_path: Path) -> None:
    asked = {"symbol": "BTC/USD", "timeframe": "1min", "conditions": CONDITIONS, "throttle_ms": 0}
    with server(tmp_path, "chart-signals", AS_OF=ALERTS_FROM, REPLAY_SPEED="1800") as client:
        number = client.request("subscribe_alerts", asked)["result"]["subscription_id"]
        message = client.aside.pop(0) if client.aside else client.receive()
    assert (message["jsonrpc"], message["method"]) == ("2.0", "signals.alert")
    assert "id" not in message
    params = message["params"]
    fields = {"subscription_id", "symbol", "timeframe", "triggered", "snapshot", "timestamp"}
    assert set(params) - {"_meta"} == fields
    assert (params["subscription_id"], params["symbol"], params["timeframe"]) == (number, "BTC/USD", "1min")
    assert set(params["triggered"]) <= CROSSINGS
    assert set(params["snapshot"]) == {"price", "macd", "signal", "rsi"}
    became = expected("BTC/USD", epoch(params["timestamp"]))
    assert set(params["triggered"]) & set(became[epoch(params["timestamp"])])


@row("throttle_ms")
def test_a_throttle_merges_what_becomes_true_meanwhile(tmp_path: Path) -> None:
    """0.6 s at 1,800 × are 18 minutes of this market."""
    asked = {"symbol": "BTC/USD", "timeframe": "1min", "conditions": CONDITIONS, "throttle_ms": 600}
    with server(tmp_path, "chart-signals", AS_OF=ALERTS_FROM, REPLAY_SPEED="1800") as client:
        client.call("subscribe_alerts", asked)
        first, second = alerts(client, 2)
    begin, end = epoch(first["timestamp"]), epoch(second["timestamp"])
    became = {name for when, names in expected("BTC/USD", end).items() if begin < when <= end for name in names}
    assert became <= set(second["triggered"])
    assert len(second["triggered"]) == len(set(second["triggered"]))


CAPABILITIES = {
    "version": "1.0.0",
    "protocol": "2025-06-18",
    "indicators": ["EMA9", "SMA10", "MACD(12,26,9)", "RSI14", "BB(20,2)"],
    "timeframes": ["1min", "5min", "15min", "1hour"],
    "asset_types": ["stocks", "crypto"],
    "storage": "parquet",
    "max_bars_in_memory": 3000,
}


@row("get_capabilities literals: version, protocol, indicators, timeframes, asset_types, storage, max_bars_in_memory")
def test_the_capabilities_are_the_contracts(stored: Client) -> None:
    found = ask(stored, "get_capabilities")
    assert {name: found[name] for name in CAPABILITIES} == CAPABILITIES
    assert set(found) == {*CAPABILITIES, "data_source"}


SECRET = "k3pt-by-the-environment"


@pytest.fixture(scope="module")
def vendor() -> Iterator[QuotesServer]:
    """A server in Alpaca's place that knows no bars."""
    with QuotesServer() as made:
        made.plan = reply(200, {"bars": {}, "next_page_token": None})
        yield made


@pytest.fixture
def alpaca(vendor: QuotesServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A server of the feed alpaca with keys."""
    for name in ("DATA", "TRADING"):
        monkeypatch.setenv(f"ALPACA_{name}_URL", vendor.url)
    monkeypatch.setenv("ALPACA_STREAM_URL", "ws://127.0.0.1:9")
    monkeypatch.setenv("ALPACA_API_KEY", "PK0123456789")
    monkeypatch.setenv("ALPACA_SECRET_KEY", SECRET)
    with server(tmp_path, "chart-signals", FEED="alpaca") as client:
        yield client


@row("get_capabilities.data_source 'Alpaca Markets'")
def test_the_data_source_of_the_feed_alpaca_is_alpaca_markets(alpaca: Client) -> None:
    answer = alpaca.call("get_capabilities")["result"]
    assert answer["structuredContent"] == {**CAPABILITIES, "data_source": "Alpaca Markets"}
    assert answer["_meta"]["openbell/truth"]["data"] == "live"


@row("JSON-RPC 2.0 over stdio")
def test_every_line_is_json_rpc(stored: Client) -> None:
    stored.send({"jsonrpc": "2.0", "id": "a text", "method": "ping"})
    assert stored.receive() == {"jsonrpc": "2.0", "id": "a text", "result": {}}
    stored.send_raw(b"{")
    assert stored.receive()["error"]["code"] == -32700


shown_by("No HTTP exposure", "gateway/streamable/test_contract.py::test_chart_signals_is_served_only_by_setting")


@row("Credentials in environment variables")
def test_keys_are_read_from_the_environment_and_shown_nowhere(
    tmp_path: Path, vendor: QuotesServer, alpaca: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = alpaca.call("get_signals", {"symbol": "AAPL", "timeframe": "1min"})
    sent = vendor.seen[-1].headers
    assert (sent["apca-api-key-id"], sent["apca-api-secret-key"]) == ("PK0123456789".lower(), SECRET)
    assert SECRET not in json.dumps(answer) + b"".join(alpaca.errors).decode()
    for name in ("ALPACA_API_KEY", "ALPACA_SECRET_KEY"):
        monkeypatch.delenv(name)
    with server(tmp_path / "without", "chart-signals", FEED="alpaca") as client:
        words = error(client, "get_signals", symbol="AAPL", timeframe="1min")["message"]
    assert "ALPACA_API_KEY and ALPACA_SECRET_KEY" in words


shown_by(
    "Data flow Alpaca WebSocket → memory → Parquet",
    "feeds/test_alpaca.py::test_after_random_faults_the_store_equals_the_vendors_bars",
)
differs(
    "FastAPI server, separate process, port 8742, optional, for webhooks",
    "`openbell up` is a process of its own on port 8742, optional, and takes and sends webhooks. It is built of Starlette "
    "without FastAPI, which would add only a layer of its own validation, and it also collects bars, runs the engines and "
    "serves the other servers, so that a desk is one process.",
)


@row("FastAPI server, separate process, port 8742, optional, for webhooks")
def test_the_http_server_is_a_command_of_its_own_on_port_8742(tmp_path: Path) -> None:
    assert "8742 by default" in run(tmp_path, "up", "--help").stdout


shown_by(
    "FastAPI server, separate process, port 8742, optional, for webhooks",
    "gateway/webhooks/test_kills.py::test_the_whole_desk_sends_and_sends_again_after_a_kill",
)


@row("Watchlist of 20 stocks and 2 crypto, in order")
def test_a_new_home_watches_the_contracts_symbols(friday: Client) -> None:
    found = ask(friday, "get_watchlist")["watchlist"]
    assert [each["symbol"] for each in found["stocks"]] == STOCKS
    assert [each["symbol"] for each in found["crypto"]] == ["BTC/USD", "ETH/USD"]


@row("Stocks incl. extended hours; crypto 24/7")
@pytest.mark.parametrize(
    ("moment", "stock"),
    [
        ("2025-09-19T12:00:30Z", "2025-09-19T11:59:00+00:00"),
        ("2025-09-19T22:00:30Z", "2025-09-19T21:59:00+00:00"),
        ("2025-09-21T12:00:30Z", "2025-09-19T23:59:00+00:00"),
    ],
    ids=["before the open", "after the close", "on Sunday"],
)
def test_stocks_have_minutes_in_extended_hours_and_crypto_has_all(tmp_path: Path, moment: str, stock: str) -> None:
    newest = datetime.fromisoformat(moment).replace(second=0) - timedelta(minutes=1)
    with server(tmp_path, "chart-signals", AS_OF=moment) as client:
        assert signals(client, "SPY")["snapshot"]["time"] == stock
        assert signals(client, "BTC/USD")["snapshot"]["time"] == newest.astimezone(UTC).isoformat()


@row("35 bars needed")
def test_34_bars_are_too_few_and_35_are_enough(home: Path) -> None:
    ready = NOW - 5 * 60  # FLAT has 40 bars
    for moment, found in ((ready - 1, 34), (ready, 35)):
        with server(home, "chart-signals", AS_OF=at(moment), FEED="none") as client:
            answer = client.call("get_signals", {"symbol": "FLAT", "timeframe": "1min"})
        if found < 35:
            assert answer["error"]["data"] == {"symbol": "FLAT", "bars_available": 34, "bars_needed": 35}
        else:
            assert answer["result"]["structuredContent"]["ready"] is True


shown_by("Last 3,000 bars in memory", "servers/test_chart_signals.py::test_more_than_3000_bars_are_not_used")


@row("Aggregation open first, high max, low min, close last, volume sum")
@pytest.mark.parametrize(("timeframe", "seconds"), [("5m", 300), ("15m", 900), ("1h", 3600)])
def test_a_larger_bar_is_its_minutes(home: Path, timeframe: str, seconds: int) -> None:
    minutes: dict[int, list[Row]] = {}
    for each in WALK:
        minutes.setdefault(each[0] - each[0] % seconds, []).append(each)
    wanted = [
        {
            "timestamp": at(time),
            "open": rows[0][1],
            "high": max(each[2] for each in rows),
            "low": min(each[3] for each in rows),
            "close": rows[-1][4],
            "volume": sum(each[5] for each in rows),
        }
        for time, rows in minutes.items()
        if time + seconds <= NOW
    ][-40:]
    with server(home, "market-data", AS_OF=at(NOW), FEED="none") as client:
        found = ask(client, "get_candles", symbol="AAPL", timeframe=timeframe, limit=40)["data"]["items"]
    assert [{name: each[name] for name in wanted[0]} for each in found] == wanted


@row("data/stocks/1min/{SYMBOL}_{YYYY-MM}.parquet")
def test_minutes_of_stocks_are_in_a_file_for_each_month(home: Path) -> None:
    assert (home / "data/stocks/1min/AAPL_2025-09.parquet").is_file()


@row("data/crypto/1min/{SYMBOL_USD}_{YYYY-MM}.parquet")
def test_minutes_of_crypto_are_in_a_file_for_each_month(home: Path) -> None:
    assert (home / "data/crypto/1min/BTC_USD_2025-09.parquet").is_file()


def check_quick_start(client: Client) -> None:
    for line in QUICK_START:
        client.send_raw(line)
    status, found, watched = (client.response(number)["result"]["structuredContent"] for number in (1, 2, 3))
    assert status["stocks"]["session"] == "regular"
    assert (found["ready"], found["symbol"]) == (True, "AAPL")
    assert all(math.isfinite(found["snapshot"][name]) for name in SNAPSHOT - {"time"})
    listed = watched["watchlist"]
    assert [len(listed["stocks"]), len(listed["crypto"])] == [20, 2]
    assert all(each["price"] > 0 and 0 <= each["rsi"] <= 100 for each in listed["stocks"] + listed["crypto"])


@row("Quick start 1-3 verbatim, after initialize")
def test_the_quick_start_is_answered(tmp_path: Path) -> None:
    with Client(tmp_path, AS_OF=FRIDAY, TIMEOUT="60") as client:
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        client.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
        assert client.response(0)["result"]["serverInfo"]["name"]
        client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        check_quick_start(client)


@row("Quick start line as the first line, as the contract shows it")
def test_the_quick_start_is_answered_without_a_handshake(tmp_path: Path) -> None:
    with Client(tmp_path, AS_OF=FRIDAY, TIMEOUT="60") as client:
        check_quick_start(client)
