"""chartgen, row by row: the server on stdio, and `openbell up` over HTTP, both on a simulated market that runs fast."""

from __future__ import annotations

import base64
import json
import sys
import tomllib
from collections.abc import Iterator
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from openbell.indicators.registry import all_indicators
from tests.client import Client, environment
from tests.contracts.rows import differs, row, shown_by
from tests.contracts.wire import ask, refused, server, text_of, tools
from tests.gateway.streamable.gateways import Up, message
from tests.prefork import Process
from tests.servers.test_chart_signals import START, load, walk
from tests.servers.test_chartgen_trading import TRADING
from tests.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
AS_OF = "2026-01-07T15:00:00Z"
FAST: dict[str, Any] = {"AS_OF": AS_OF, "REPLAY_SPEED": "120"}
"""Every minute takes half a second."""
MINE = ["generate_chart", "list_indicators", "get_indicators"]
EXAMPLE: dict[str, Any] = {
    "name": "generate_chart",
    "arguments": {
        "ticker": "BTCUSDT",
        "timeframe": "1h",
        "indicators": ["ema_stack", {"name": "rsi", "length": 21}, {"name": "vpvr", "bins": 32, "split_up_down": True}],
        "bars": 200,
        "format": "summary",
    },
}
FILLS = ["bbands", "keltner", "ichimoku", "vwap_bands"]
PROFILES = ["vpvr", "session_vp", "hvn_lvn", "naked_poc", "tpo"]


@pytest.fixture(scope="module")
def charts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """The server without --trade, at a fixed time."""
    with server(tmp_path_factory.mktemp("charts"), "chartgen", AS_OF=AS_OF) as client:
        yield client


@pytest.fixture(scope="module")
def trading(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """The server with --trade."""
    with server(tmp_path_factory.mktemp("trading"), "chartgen", "--trade", **FAST) as client:
        yield client


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """`openbell up --trade`."""
    with Up(tmp_path_factory.mktemp("up"), TIMEOUT="60", **FAST) as made:
        yield made


def chart(client: Client, **arguments: Any) -> dict[str, Any]:
    """The result of generate_chart."""
    given = {"symbol": "BTCUSDT", "timeframe": "1h", **arguments}
    result: dict[str, Any] = client.call("generate_chart", given)["result"]
    assert result["isError"] is False, result
    return result


def payload(result: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text_of(result))
    return found


# Transports


@row("stdio and HTTP share the same tool definitions")
def test_both_transports_list_the_same_tools(trading: Client, up: Up) -> None:
    listed = up.post(message("tools/list")).json["result"]["tools"]
    assert listed == trading.request("tools/list")["result"]["tools"]


def script(name: str) -> list[str]:
    """A command line that does what the installed command of a name does."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, function = scripts[name].partition(":")
    return [sys.executable, "-c", f"from {module} import {function}; {function}()"]


@row("claude_desktop_config: command chartgen, args [--mcp]")
def test_the_command_chartgen_serves_on_stdio(tmp_path: Path) -> None:
    with Client(tmp_path, command=[*script("chartgen"), "--mcp"], AS_OF=AS_OF) as client:
        client.initialize()
        assert set(tools(client)) == {*MINE, *TRADING}


@row("chartgen --serve")
def test_the_command_chartgen_serves_over_http(tmp_path: Path) -> None:
    command = [*script("chartgen"), "--serve"]
    with Process(command, env=environment(tmp_path, AS_OF=AS_OF), text=True, stderr=-1, stdout=-3) as process:
        assert process.stderr
        try:
            line = next((each for each in process.stderr if each.startswith("MCP over HTTP: ")), "it has ended")
        finally:
            process.kill()
    assert "/mcp" in line


def hello(version: str) -> dict[str, Any]:
    client = {"name": "test", "version": "1"}
    return message("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": client})


@row("Streamable HTTP 2025-03-26")
def test_the_revision_of_the_contract_is_spoken(up: Up) -> None:
    answer = up.post(hello("2025-03-26"))
    assert (answer.status, answer["content-type"]) == (200, "application/json")
    assert answer.json["result"]["protocolVersion"] == "2025-03-26"
    named: dict[str, Any] = {"Mcp_Session_Id": answer["mcp-session-id"]}
    assert up.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, **named).status == 202
    assert len(up.post(message("tools/list"), **named).json["result"]["tools"]) == 15


@row("… including JSON-RPC batches, which 2025-03-26 requires")
def test_a_batch_is_answered_to_clients_of_2025_03_26_alone(up: Up) -> None:
    batch = [
        message("ping", number=1),
        message("tools/call", {"name": "list_alerts", "arguments": {}}, number=2),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]
    session = up.post(hello("2025-03-26"))["mcp-session-id"]
    answer = up.post(batch, Mcp_Session_Id=session)
    assert answer.status == 200
    assert {each["id"]: "result" in each for each in answer.json} == {1: True, 2: True}
    other = up.post(hello("2025-06-18"))["mcp-session-id"]
    refusal = up.post(batch, Mcp_Session_Id=other, MCP_Protocol_Version="2025-06-18")
    assert (refusal.status, refusal.json["error"]["code"]) == (400, -32600)


shown_by(
    "OAuth 2.1 with PKCE",
    "gateway/oauth/test_flow.py::test_the_metadata_names_what_the_server_can",
    "gateway/oauth/test_flow.py::test_a_user_gives_a_client_access",
    "gateway/oauth/test_flow.py::test_the_client_of_the_sdk_signs_in_and_refreshes",
)


@row("POST /mcp with Accept both → application/json")
def test_a_client_that_accepts_both_gets_json(up: Up) -> None:
    answer = up.post(message("tools/call", {"name": "list_alerts"}), Accept="application/json, text/event-stream")
    assert (answer.status, answer["content-type"]) == (200, "application/json")
    assert answer.json["result"]["isError"] is False


@row("Accept text/plain → 406")
def test_a_client_that_excludes_json_gets_406(up: Up) -> None:
    assert up.post(message("ping"), Accept="text/plain").status == 406


@row("No Accept is treated as application/json")
def test_a_client_that_names_nothing_gets_json(up: Up) -> None:
    answer = up.post(message("ping"), Accept=None)
    assert (answer.status, answer["content-type"], answer.json["result"]) == (200, "application/json", {})


def set_alert(up: Up, who: str, **condition: Any) -> dict[str, Any]:
    found: dict[str, Any] = up.ask("set_alert", who, symbol="BTCUSDT", condition=condition)
    return found


@row("GET /mcp: SSE, raw JSON-RPC notification frames")
def test_a_stream_has_json_rpc_notifications(up: Up) -> None:
    with up.stream("alice") as stream:
        assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
        up.ask("subscribe_notifications", "alice")
        alert = set_alert(up, "alice", price_above=50000)
        frame = stream.message()
    assert (frame["jsonrpc"], frame["method"]) == ("2.0", "notifications/alert_triggered")
    assert "id" not in frame
    assert frame["params"]["alert_id"] == alert["alert_id"]
    assert frame["params"]["condition"] == alert["condition"], "one form everywhere"


@row("GET /mcp needs the bearer token")
def test_a_stream_needs_a_token(up: Up) -> None:
    answer = up.request("GET", "/mcp", None, Accept="text/event-stream")
    assert answer.status == 401
    assert (answer["www-authenticate"] or "").startswith("Bearer")


@row("Mcp-Session-Id echoed unchanged")
@pytest.mark.parametrize("session", ["abc", "a" * 129, "!#$%&'*+-.^_`|~:;<=>?@[]{}()/\\,\"", "x" * 1024])
def test_a_session_id_is_echoed_on_every_answer(up: Up, session: str) -> None:
    assert up.post(message("ping"), Mcp_Session_Id=session)["mcp-session-id"] == session
    refusal = up.post(message("ping"), Mcp_Session_Id=session, Accept="text/plain")
    assert (refusal.status, refusal["mcp-session-id"]) == (406, session)


differs(
    "No server-side session state; header only echoed",
    "No request needs a session, and any id is echoed. `initialize` issues one to clients of the revisions that have "
    "sessions, because they expect it. It names what one process may forget at any time: the place of "
    "`get_notifications` in the inbox, and streams that can be resumed.",
)


@row("No server-side session state; header only echoed")
def test_an_invented_session_id_changes_no_answer(up: Up) -> None:
    call = message("tools/call", {"name": "get_orders", "arguments": {}})
    plain, named = (up.post(call, "bob", Mcp_Session_Id=session) for session in (None, "nobody-has-issued-this"))
    assert plain["mcp-session-id"] is None
    assert [each.json["result"]["structuredContent"]["orders"] for each in (plain, named)] == [[], []]


@row("POST / alias", "POST /message alias")
@pytest.mark.parametrize("path", ["/", "/message"])
def test_older_paths_of_post(up: Up, path: str) -> None:
    listed = message("tools/list")
    assert up.post(listed, path=path).json == up.post(listed).json


@row("GET /sse alias")
def test_the_older_path_of_get(up: Up) -> None:
    with up.stream(path="/sse") as stream:
        assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")


# Tools


@row("15 tools")
def test_there_are_fifteen_tools(charts: Client) -> None:
    assert set(tools(charts)) == {*MINE, *TRADING}
    assert len(tools(charts)) == 15


@row("12 trading tools without --trade return an error")
@pytest.mark.parametrize("tool", TRADING)
def test_a_trading_tool_needs_trade(charts: Client, tool: str) -> None:
    assert "--trade" in refused(charts, tool, **TRADING[tool])


@row("generate_chart: ticker/symbol, timeframe/interval, indicators as names or objects, bars, width, height, format")
def test_generate_chart_has_the_contracts_arguments(charts: Client) -> None:
    schema = tools(charts)["generate_chart"]["inputSchema"]
    names = {"ticker", "symbol", "timeframe", "interval", "indicators", "bars", "width", "height", "format"}
    assert set(schema["properties"]) >= names
    assert schema["properties"]["format"]["enum"] == ["png", "summary", "both", "series"]
    found = [
        payload(charts.call("generate_chart", {**given, "bars": 50, "format": "summary"})["result"])
        for given in (
            {"symbol": "BTCUSDT", "timeframe": "4h", "indicators": ["rsi"]},
            {"ticker": "BTCUSDT", "interval": "4h", "indicators": [{"name": "rsi"}]},
        )
    ]
    assert found[0] == found[1]
    assert (found[0]["interval"], found[0]["price"]["bars"]) == ("4h", 50)


@row("format png (default): base64 PNG")
def test_a_picture_is_the_default(charts: Client) -> None:
    result = chart(charts, indicators=["ema_stack", "rsi"])
    (item,) = result["content"]
    assert (item["type"], item["mimeType"]) == ("image", "image/png")
    assert _size(item) == (1200, 675)
    assert _size(chart(charts, width=800, height=400)["content"][0]) == (800, 400)
    assert result["_meta"]["openbell/truth"]["data"] == "simulated"


def _size(item: dict[str, Any]) -> tuple[int, int]:
    picture = Image.open(BytesIO(base64.b64decode(item["data"])))
    assert picture.format == "PNG"
    return picture.size


@row("format summary; example request verbatim")
def test_the_contracts_request_has_its_summary(charts: Client) -> None:
    result = charts.request("tools/call", EXAMPLE)["result"]
    assert [item["type"] for item in result["content"]] == ["text"]
    found = payload(result)
    assert found == result["structuredContent"]
    assert (found["symbol"], found["interval"]) == ("BTCUSDT", "1h")
    price = found["price"]
    assert price["bars"] == 200
    assert set(price) == {"bars", "first", "last", "range", "total_volume", "change_pct", "change_over", "drawdown"}
    dates = {"from_open": price["first"]["date"], "to_close": price["last"]["date"]}
    assert price["change_over"] == {"bars": 200, **dates}
    assert set(price["first"]) >= {"date", "open", "close"}
    assert set(price["last"]) >= {"date", "open", "high", "low", "close", "volume"}
    assert price["range"]["high"] >= price["last"]["high"]
    assert price["change_pct"] == pytest.approx((price["last"]["close"] / price["first"]["open"] - 1) * 100)
    assert set(found["indicators"]) == {"ema_stack", "rsi", "vpvr"}
    rsi = found["indicators"]["rsi"]
    assert (rsi["label"], rsi["is_overlay"], rsi["y_range"]) == ("RSI(21)", False, [0, 100])
    assert [(line["index"], line["label"]) for line in rsi["lines"]] == [(0, "RSI")]
    assert 0 < rsi["lines"][0]["last_value"] < 100
    assert rsi["hlines"] == [{"y": 30.0, "label": "oversold"}, {"y": 70.0, "label": "overbought"}]
    assert all({"x", "y", "label"} <= set(signal) for signal in rsi["signals"])


@row("summary has divergences")
def test_a_summary_has_the_divergences(charts: Client) -> None:
    found = payload(chart(charts, indicators=["cipher_b"], format="summary"))["indicators"]["cipher_b"]
    series = payload(chart(charts, indicators=["cipher_b"], format="series"))["indicators"]["cipher_b"]
    assert len(found["divlines"]) == len(series["divlines"]) > 0
    assert {(each["x1"], each["x2"]) for each in found["divlines"]} == {
        (each["x1"], each["x2"]) for each in series["divlines"]
    }


@row("summary 10-50× fewer tokens than a PNG")
def test_a_summary_is_a_tenth_of_a_picture_at_most(charts: Client) -> None:
    given = {key: value for key, value in EXAMPLE["arguments"].items() if key not in ("format", "ticker", "timeframe")}
    (picture,) = chart(charts, **given)["content"]
    assert len(text_of(chart(charts, **given, format="summary"))) <= len(picture["data"]) / 10


@row("format both")
def test_both_is_a_picture_and_its_summary(charts: Client) -> None:
    both, picture, summary = (
        chart(charts, indicators=["rsi"], format=form)["content"] for form in ("both", "png", "summary")
    )
    assert both == [*picture, *summary]


@pytest.fixture(scope="module")
def series(charts: Client) -> dict[str, Any]:
    """One answer with every channel."""
    result = chart(charts, indicators=[*FILLS, *PROFILES, "cipher_b", "macd", "rsi", "ema_stack"], format="series")
    assert [item["type"] for item in result["content"]] == ["text"]
    return payload(result)


@row("format series: shape, 1:1 alignment, null warm-up, single text item")
def test_a_series_has_a_value_for_every_bar(series: dict[str, Any]) -> None:
    bars = series["bars"]
    assert (series["symbol"], series["interval"], len(bars)) == ("BTCUSDT", "1h", 200)
    assert {tuple(bar) for bar in bars} == {("t", "o", "h", "l", "c", "v")}
    assert [bar["t"] for bar in bars] == list(range(bars[0]["t"], bars[-1]["t"] + 1, 3600))
    for indicator in series["indicators"].values():
        assert {"label", "is_overlay"} <= set(indicator)
        for line in (*indicator.get("lines", []), *indicator.get("histogram", [])):
            assert len(line["values"]) == 200


@row("format series: shape, 1:1 alignment, null warm-up, single text item")
def test_values_before_the_warm_up_are_null(tmp_path: Path) -> None:
    load(tmp_path, "BTC/USDT", walk(60, gaps=0))
    with server(tmp_path, "chartgen", FEED="none", AS_OF="2025-09-01T01:00:00Z") as client:
        found = payload(chart(client, timeframe="1m", indicators=["rsi"], bars=60, format="series"))
    (line,) = found["indicators"]["rsi"]["lines"]
    assert found["bars"][0]["t"] == START
    assert line["values"][:14] == [None] * 14
    assert None not in line["values"][14:]
    assert len(line["values"]) == 60


@row("keys are the requested names")
def test_indicators_have_the_names_that_were_asked_for(charts: Client) -> None:
    found = payload(chart(charts, indicators=[{"name": "rsi", "length": 21}, "macd"], format="series"))["indicators"]
    assert {name: entry["label"] for name, entry in found.items()} == {"rsi": "RSI(21)", "macd": "MACD(12,26,9)"}


@row("series channel fills (Bollinger, Keltner, Ichimoku, VWAP bands)")
@pytest.mark.parametrize("name", FILLS)
def test_fills_are_aligned_with_the_bars(series: dict[str, Any], name: str) -> None:
    for fill in series["indicators"][name]["fills"]:
        assert len(fill["y1"]) == len(fill["y2"]) == 200


@row("series channel hbars (VPVR, Session VP, HVN/LVN, Naked POC, TPO)")
@pytest.mark.parametrize("name", PROFILES)
def test_horizontal_bars_have_a_price_and_a_share_of_the_width(series: dict[str, Any], name: str) -> None:
    for bar in series["indicators"][name]["hbars"]:
        assert set(bar) >= {"y", "height", "width", "offset", "left"}
        assert bar["y"] > 0 and bar["height"] >= 0
        assert 0 <= bar["width"] <= 1 and 0 <= bar["offset"] <= 1
        assert type(bar["left"]) is bool


@row("series channel divlines")
def test_divergences_join_two_bars(series: dict[str, Any]) -> None:
    times = [bar["t"] for bar in series["bars"]]
    for line in series["indicators"]["cipher_b"]["divlines"]:
        assert set(line) >= {"x1", "t1", "y1", "x2", "t2", "y2", "dashed"}
        assert (line["t1"], line["t2"]) == (times[line["x1"]], times[line["x2"]])
        assert line["x1"] < line["x2"]


@row("series channel histogram")
def test_a_histogram_is_aligned_with_the_bars(series: dict[str, Any]) -> None:
    (found,) = series["indicators"]["macd"]["histogram"]
    macd, signal = (line["values"] for line in series["indicators"]["macd"]["lines"])
    assert found["values"] == pytest.approx([one - other for one, other in zip(macd, signal, strict=True)], abs=1e-6)


@row("series channel signals with x and t")
def test_a_signal_has_its_bar_and_its_time(series: dict[str, Any]) -> None:
    found = series["indicators"]["rsi"]["signals"]
    assert found
    for signal in found:
        assert signal["t"] == series["bars"][signal["x"]]["t"]
        assert (signal["y"] >= 70) is (signal["label"] == "rsi_overbought")


@row("series channel empty channels omitted")
def test_an_indicator_has_no_empty_channel(series: dict[str, Any]) -> None:
    for name, indicator in series["indicators"].items():
        for channel in ("lines", "histogram", "signals", "hlines", "fills", "hbars", "divlines"):
            assert indicator.get(channel) != [], (name, channel)
    assert set(series["indicators"]["ema_stack"]) == {"label", "is_overlay", "lines"}


@row("list_indicators: full catalog with descriptions, aliases, parameters")
def test_the_catalogue_describes_every_indicator_in_6000_tokens(charts: Client) -> None:
    result = charts.call("list_indicators")["result"]
    listed = {each["name"]: each for each in payload(result)["indicators"]}
    assert set(listed) == set(all_indicators())
    for name, each in listed.items():
        assert 0 < len(each["description"]) <= 60, name
        assert "…" not in each["description"], f"the description of {name} is cut"
        assert isinstance(each["aliases"], list), name
    parameters = json.dumps({key: value for key, value in listed["rsi"].items() if key.startswith("param")})
    assert "length" in parameters and ("int" in parameters or "number" in parameters)
    assert len(text_of(result).encode()) / 4 <= 6000


@row("get_indicators: required symbol, indicators; interval default 4h; response shape")
def test_indicators_are_read_as_numbers(charts: Client) -> None:
    schema = tools(charts)["get_indicators"]["inputSchema"]
    assert schema["required"] == ["symbol", "indicators"]
    found = ask(charts, "get_indicators", symbol="BTCUSDT", indicators=["rsi", "macd"])
    assert (found["symbol"], found["interval"], found["bars"]) == ("BTCUSDT", "4h", 200)
    assert set(found["indicators"]) == {"rsi", "macd"}
    assert set(found["indicators"]["rsi"]) >= {"label", "lines", "signals", "hlines"}
    assert set(found["indicators"]["macd"]) >= {"label", "lines", "histogram"}


@row("source engine_cache / fetched")
def test_the_source_is_the_engines_bars_or_fetched(charts: Client, trading: Client) -> None:
    asked: dict[str, Any] = {"symbol": "BTCUSDT", "indicators": ["rsi"], "interval": "1h"}
    assert ask(charts, "get_indicators", **asked)["source"] == "fetched"
    wait_for(lambda: ask(trading, "get_indicators", **asked)["source"] == "engine_cache", "the engine's bars")


@row("get_indicators object equals the summary's")
def test_an_indicator_is_the_same_in_a_summary(charts: Client) -> None:
    names = ["rsi", "macd", "cipher_b"]
    numbers = ask(charts, "get_indicators", symbol="BTCUSDT", indicators=names, interval="1h")["indicators"]
    assert numbers == payload(chart(charts, indicators=names, format="summary"))["indicators"]


# Orders and positions


def price_of(client: Client) -> float:
    found: float = payload(chart(client, timeframe="1m", bars=1, format="summary"))["price"]["last"]["close"]
    return found


def orders(client: Client, **given: Any) -> dict[str, dict[str, Any]]:
    return {each["order_id"]: each for each in ask(client, "get_orders", **given)["orders"]}


def placed(client: Client, **given: Any) -> dict[str, Any]:
    return ask(client, "place_order", **{"symbol": "BTCUSDT", "side": "buy", "type": "market", **given})


@row("place_order market/limit, price for limits")
def test_orders_are_market_orders_or_have_a_limit(trading: Client) -> None:
    schema = tools(trading)["place_order"]["inputSchema"]
    assert set(schema["required"]) == {"symbol", "side", "type", "quantity"}
    market = placed(trading, quantity=0.01)
    limit = placed(trading, type="limit", quantity=0.02, price=round(price_of(trading) * 0.97, 2))
    assert (market["side"], market["type"], market["quantity"]) == ("buy", "market", "0.01")
    assert (limit["type"], limit["status"]) == ("limit", "open")
    wait_for(lambda: orders(trading)[market["order_id"]]["status"] == "filled", "the market order")
    without = refused(trading, "place_order", symbol="BTCUSDT", side="buy", type="limit", quantity=0.03)
    assert "price is required" in without


@row("cancel_order")
def test_an_open_order_is_cancelled(trading: Client) -> None:
    order = placed(trading, type="limit", quantity=0.04, price=round(price_of(trading) * 0.97, 2))["order_id"]
    assert ask(trading, "cancel_order", order_id=order)["status"] == "cancelled"
    assert "cancelled already" in refused(trading, "cancel_order", order_id=order)
    assert "no order" in refused(trading, "cancel_order", order_id="local-0")


@row("get_orders filter open|all")
def test_orders_are_listed_open_or_all(trading: Client) -> None:
    order = placed(trading, type="limit", quantity=0.05, price=round(price_of(trading) * 0.97, 2))["order_id"]
    assert order in orders(trading, filter="open")
    ask(trading, "cancel_order", order_id=order)
    assert order not in orders(trading, filter="open")
    everything = orders(trading, filter="all")
    assert everything[order]["status"] == "cancelled"
    assert everything.keys() == orders(trading).keys()


@row("get_positions with unrealized PnL")
def test_a_position_has_its_unrealized_profit(trading: Client) -> None:
    order = placed(trading, symbol="ETHUSDT", quantity=0.5)["order_id"]
    wait_for(lambda: orders(trading)[order]["status"] == "filled", "the order")
    held = {each["symbol"]: each for each in ask(trading, "get_positions")["positions"]}["ETH/USDT"]
    gained = (Decimal(held["current_price"]) - Decimal(held["entry_price"])) * Decimal(held["quantity"])
    assert (held["side"], held["quantity"]) == ("long", "0.5")
    assert Decimal(held["unrealized_pnl"]) == gained


differs(
    "get_balance: stub, always an error",
    "It answers with the balance of the account, which an agent needs before it trades. The contract's stub is an error "
    "because its program has no account.",
)


@row("get_balance: stub, always an error")
def test_the_balance_is_answered(tmp_path: Path) -> None:
    with server(tmp_path, "chartgen", "--trade", AS_OF=AS_OF) as client:
        found = ask(client, "get_balance")
    assert (found["total_balance"], found["available_balance"], found["account"]) == ("100000", "100000", "paper")


# Alerts


def alert(client: Client, **condition: Any) -> dict[str, Any]:
    return ask(client, "set_alert", symbol="BTCUSDT", condition=condition)


def alerts(client: Client) -> set[str]:
    return {each["alert_id"] for each in ask(client, "list_alerts")["alerts"]}


@row("set_alert, one-shot: fires once, then is removed")
def test_an_alert_fires_once_and_is_gone(trading: Client) -> None:
    name = alert(trading, price_above=1)["alert_id"]
    assert name in alerts(trading)
    fired: list[str] = []
    later = alert(trading, price_below=1_000_000)["alert_id"]
    wait_for(lambda: {name, later} <= set(_drained(trading, fired)), "both alerts")
    assert not {name, later} & alerts(trading)
    last = alert(trading, price_above=1)["alert_id"]
    wait_for(lambda: last in _drained(trading, fired), "another alert")
    assert fired.count(name) == 1


def _drained(client: Client, fired: list[str]) -> list[str]:
    fired += [each["alert_id"] for each in ask(client, "get_notifications", wait_s=20)["notifications"]]
    return fired


@row("three conditions; fixed registry of signals")
def test_an_alert_has_one_of_three_conditions(trading: Client) -> None:
    gold = {"indicator": "cipher_b", "signal": "gold_buy"}
    conditions: list[dict[str, Any]] = [{"price_above": 5_000_000}, {"price_below": 45}, {"indicator_signal": gold}]
    for condition in conditions:
        made = alert(trading, **condition)
        assert next(iter(condition)) in json.dumps(made["condition"])
        listed = {each["alert_id"]: each["condition"] for each in ask(trading, "list_alerts")["alerts"]}
        assert listed[made["alert_id"]] == made["condition"]
        ask(trading, "cancel_alert", alert_id=made["alert_id"])
    for wrong in ({"indicator_signal": {**gold, "signal": "silver_buy"}}, {"volume_above": 1}, {}):
        assert isinstance(refused(trading, "set_alert", symbol="BTCUSDT", condition=wrong), str)


@row("list_alerts, cancel_alert")
def test_alerts_are_listed_and_cancelled(trading: Client) -> None:
    name = alert(trading, price_above=5_000_000)["alert_id"]
    assert name in alerts(trading)
    assert ask(trading, "cancel_alert", alert_id=name)["status"] == "cancelled"
    assert name not in alerts(trading)


@row("get_notifications drains")
def test_notifications_are_taken_out(trading: Client) -> None:
    name = alert(trading, price_above=1)["alert_id"]
    fired: list[str] = []
    wait_for(lambda: name in _drained(trading, fired), "the alert")
    assert ask(trading, "get_notifications")["notifications"] == []


# Push notifications


@row("subscribe_notifications symbols, alert_types")
def test_a_subscription_has_filters(trading: Client) -> None:
    found = ask(trading, "subscribe_notifications", symbols=["ETHUSDT"], alert_types=["price_above"])["subscription"]
    assert (found["symbols"], found["alert_types"]) == (["ETH/USDT"], ["price_above"])
    trading.aside.clear()
    other = alert(trading, price_above=1)["alert_id"]
    wanted = ask(trading, "set_alert", symbol="ETHUSDT", condition={"price_above": 1})["alert_id"]
    pushed = trading.aside.pop(0) if trading.aside else trading.receive()
    assert (pushed["method"], pushed["params"]["alert_id"]) == ("notifications/alert_triggered", wanted)
    fired: list[str] = []
    wait_for(lambda: {other, wanted} <= set(_drained(trading, fired)), "both alerts")
    assert trading.aside == []
    for type_ in ("price_below", "indicator_signal"):
        ask(trading, "subscribe_notifications", alert_types=[type_])
    assert "alert_types" in refused(trading, "subscribe_notifications", alert_types=["volume"])


@row("unsubscribe_notifications, list_subscriptions with queue size")
def test_a_subscription_is_listed_and_ended(trading: Client) -> None:
    made = ask(trading, "subscribe_notifications", symbols=["AAPL"])["subscription"]
    assert ask(trading, "list_subscriptions") == {"subscriptions": [made], "queued": 0}
    assert ask(trading, "unsubscribe_notifications") == {"unsubscribed": True}
    assert ask(trading, "list_subscriptions") == {"subscriptions": [], "queued": 0}


@row("Subscriptions persist")
def test_a_subscription_outlasts_a_killed_server(tmp_path: Path) -> None:
    with server(tmp_path, "chartgen", "--trade", AS_OF=AS_OF) as client:
        made = ask(client, "subscribe_notifications", symbols=["BTCUSDT"])["subscription"]
    with server(tmp_path, "chartgen", "--trade", AS_OF=AS_OF) as client:
        assert ask(client, "list_subscriptions")["subscriptions"] == [made]


shown_by(
    "Subscriptions persist",
    "servers/test_chartgen_alerts.py::test_the_subscription_and_its_queue_survive_killed_servers",
)
differs(
    "… to ~/.chartgen/subscriptions.json",
    "They are rows of the records (SQLite in the home, or PostgreSQL), for each principal, and are written together with "
    "the queue: a file of one user could not be shared by several servers.",
)


@row("… to ~/.chartgen/subscriptions.json")
def test_subscriptions_are_in_the_records(tmp_path: Path) -> None:
    with server(tmp_path, "chartgen", "--trade", AS_OF=AS_OF) as client:
        ask(client, "subscribe_notifications", symbols=["BTCUSDT"])
    assert list(tmp_path.rglob("records.sqlite"))
    assert not list(tmp_path.rglob("subscriptions.json"))


@row("Queued alerts delivered when the stream opens")
def test_what_was_missed_comes_when_the_stream_opens(up: Up) -> None:
    up.ask("subscribe_notifications", "bob")
    name = set_alert(up, "bob", price_above=1)["alert_id"]
    wait_for(lambda: up.ask("list_subscriptions", "bob")["queued"] == 1, "the alert")
    with up.stream("bob") as stream:
        assert stream.message()["params"]["alert_id"] == name


shown_by(
    "Queued alerts kept for up to one hour",
    "gateway/streamable/test_pushes.py::test_what_was_missed_for_longer_than_an_hour_does_not_come",
    "servers/test_chartgen_alerts.py::test_what_waits_too_long_is_not_pushed_any_more",
)
