"""Attacks on what belongs to another principal: its sessions, streams, orders and other handles, and its scopes."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openbell.desk.settings import load
from openbell.desk.settings.access import make_access
from openbell.gateway.oauth.secret_texts import ACCESS, digest, new_secret
from openbell.gateway.streamable import messages
from openbell.protocol.json_text import parse
from openbell.stores.access import grants, users
from openbell.stores.access.grants import Code, Grant, Token
from openbell.stores.access.users import PassphraseHash, User
from openbell.stores.threads import CALLER
from tests.client import run
from tests.gateway.streamable.fixture_server import Fixtures, fixtures
from tests.gateway.streamable.gateways import (
    Inside,
    Stream,
    Up,
    add_tokens,
    message,
    modern,
    modern_headers,
    notification,
)
from tests.waiting import wait_for

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
LATEST = {"MCP_Protocol_Version": "2025-11-25"}


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fixtures]:
    with fixtures(tmp_path_factory.mktemp("fixtures")) as made:
        yield made


def asked(tools: Fixtures, session: str) -> tuple[Stream, dict[str, Any]]:
    """A stream of alice on which a tool has sent her a request, and the request."""
    able: dict[str, Any] = {"sampling": {}, "elicitation": {}}
    about = {"protocolVersion": "2025-11-25", "capabilities": able, "clientInfo": {"name": "t", "version": "1"}}
    assert tools.post(message("initialize", about), Mcp_Session_Id=session).status == 200
    call = message("tools/call", {"name": "test_sampling", "arguments": {"prompt": "secret"}}, "mine")
    stream = tools.posted(call, "alice", Mcp_Session_Id=session, **LATEST)
    return stream, stream.message()


def answer_to(request: dict[str, Any], text: str) -> dict[str, Any]:
    content = {"role": "assistant", "content": {"type": "text", "text": text}, "model": "m"}
    return {"jsonrpc": "2.0", "id": request["id"], "result": content}


# Sessions


def test_attack_answer_to_a_pending_request_of_another_principal(tools: Fixtures) -> None:
    stream, request = asked(tools, "shared")
    with stream:
        forged = tools.post(answer_to(request, "forged"), "bob", Mcp_Session_Id="shared", **LATEST)
        assert forged.status == 202  # accepted as any answer, and given to nobody
        assert tools.post(answer_to(request, "mine"), "alice", Mcp_Session_Id="shared", **LATEST).status == 202
        assert stream.message()["result"]["content"][0]["text"] == "LLM response: mine"


def test_attack_answer_from_another_session_of_the_same_principal(tools: Fixtures) -> None:
    stream, request = asked(tools, "first")
    with stream:
        tools.post(answer_to(request, "forged"), "alice", Mcp_Session_Id="second", **LATEST)
        tools.post(answer_to(request, "forged"), "alice", **LATEST)
        tools.post(answer_to(request, "mine"), "alice", Mcp_Session_Id="first", **LATEST)
        assert stream.message()["result"]["content"][0]["text"] == "LLM response: mine"


def test_attack_cancel_a_request_of_another_principal(tools: Fixtures) -> None:
    stream, request = asked(tools, "to-cancel")
    with stream:
        cancel = notification("notifications/cancelled", {"requestId": "mine"})
        assert tools.post(cancel, "bob", Mcp_Session_Id="to-cancel", **LATEST).status == 202
        tools.post(answer_to(request, "still here"), "alice", Mcp_Session_Id="to-cancel", **LATEST)
        assert stream.message()["result"]["content"][0]["text"] == "LLM response: still here"


def test_attack_resume_the_response_of_another_principal(tools: Fixtures) -> None:
    named = {"Mcp_Session_Id": "resumed", **LATEST}
    with tools.posted(message("tools/call", {"name": "test_reconnection"}), "alice", **named) as stream:
        assert stream.frame()
        event = stream.event()["id"]
        assert stream.frame() is None
    with tools.stream("bob", Last_Event_ID=event, **named) as foreign:
        for _ in range(2):  # the end of the log is kept, and only for its owner
            with tools.stream("alice", Last_Event_ID=event, **named) as own:
                assert [each.get("method", "result") for each in own.rest()] == ["notifications/message", "result"]
        assert tools.post(message("tools/call", {"name": "test_trigger_tool_change"}), "bob").status == 200
        assert foreign.message()["method"] == "notifications/tools/list_changed"  # it is a stream of pushes


@pytest.mark.parametrize("number", ["9" * 5000, "-1", "1e9", "٣", "", "0x1"])
def test_attack_hostile_event_numbers(tools: Fixtures, up: Up, number: str) -> None:
    named = {"Mcp_Session_Id": "numbers", **LATEST}
    with tools.posted(message("tools/call", {"name": "test_reconnection"}), "alice", **named) as stream:
        assert stream.frame()
        log = stream.event()["id"].rpartition(".")[0]
    text = f"{log}.{number}".encode().decode("latin-1")
    with tools.stream("alice", Last_Event_ID=text, **named) as resumed:
        assert resumed.status == 200
        assert resumed.frame() == {":": "keep-alive"}  # a stream of pushes, not the response
    with up.stream(Last_Event_ID=number.encode().decode("latin-1")) as pushes:
        assert pushes.status == 200


def test_attack_session_id_of_another_principal_reads_no_cursor(up: Up) -> None:
    """The cursor of get_notifications is soft state of a session."""
    named = {"name": "get_notifications", "arguments": {}}
    for who in ("alice", "bob"):
        found = up.post(message("tools/call", named), who, Mcp_Session_Id="the-same").json["result"]
        assert found["structuredContent"]["notifications"] == []


# Handles


@pytest.fixture(scope="module")
def price(up: Up) -> float:
    found = up.ask("get_current_price", path="/market-data/mcp", symbol="BTC/USD")
    return float(found["data"]["price"])


def test_attack_order_of_another_principal(up: Up, price: float) -> None:
    given: dict[str, Any] = {
        "symbol": "BTC/USD",
        "side": "buy",
        "type": "limit",
        "quantity": "0.001",
        "price": round(price * 0.97, 2),
    }
    order = up.ask("place_order", **given, client_order_id="mine")
    refused = up.call("cancel_order", "bob", order_id=order["order_id"])
    unknown = up.call("cancel_order", "bob", order_id="order_0000000000000000")
    assert refused["isError"] is unknown["isError"] is True
    assert_same_refusal(refused, order["order_id"], unknown, "order_0000000000000000")
    assert order["order_id"] not in json.dumps(up.ask("get_orders", "bob"))
    other = up.ask("place_order", "bob", **given, client_order_id="mine")
    assert other["order_id"] != order["order_id"]  # a key belongs to its principal too
    assert [each["order_id"] for each in up.ask("get_orders", filter="open")["orders"]] == [order["order_id"]]


def assert_same_refusal(one: dict[str, Any], name: str, other: dict[str, Any], unknown: str) -> None:
    """A handle of another principal is refused with the words for a handle that does not exist."""
    assert one["content"][0]["text"].replace(name, "X") == other["content"][0]["text"].replace(unknown, "X")


def test_attack_alert_of_another_principal(up: Up) -> None:
    alert = up.ask("set_alert", symbol="BTC/USD", condition={"price_above": 10_000_000})["alert_id"]
    assert alert not in {each["alert_id"] for each in up.ask("list_alerts", "bob")["alerts"]}
    refused = up.call("cancel_alert", "bob", alert_id=alert)
    assert refused["isError"] is True
    unknown = "alert_0000000000000000"
    assert_same_refusal(refused, alert, up.call("cancel_alert", "bob", alert_id=unknown), unknown)
    assert alert in [each["alert_id"] for each in up.ask("list_alerts")["alerts"]]


def test_attack_subscription_of_another_principal(up: Up) -> None:
    path = "/chart-signals/mcp"
    given: dict[str, Any] = {"symbol": "BTC/USD", "timeframe": "1h", "conditions": [{"type": "macd_cross"}]}
    number = up.ask("subscribe_alerts", path=path, **given)["subscription_id"]
    call = {"name": "unsubscribe_alerts", "arguments": {"subscription_id": number}}
    for body in (message("tools/call", call), message("unsubscribe_alerts", call["arguments"])):
        assert "error" in up.post(body, "bob", path).json
    assert up.ask("unsubscribe_alerts", path=path, subscription_id=number)["unsubscribed"] is True
    up.ask("subscribe_notifications", symbols=["BTC/USD"])
    up.ask("unsubscribe_notifications", "bob")
    assert up.ask("list_subscriptions", "bob")["subscriptions"] == []
    assert len(up.ask("list_subscriptions")["subscriptions"]) == 1


def test_attack_decisions_of_another_principal(up: Up) -> None:
    secret = "alice buys before the news"
    given: dict[str, Any] = {
        "symbol": "BTC/USD",
        "action": "BUY",
        "confidence": 0.5,
        "opportunity_score": 1,
        "reasoning": secret,
    }
    saved = up.call("save_decision", path="/decisions/mcp", tool_calls=[], **given)
    assert saved["isError"] is False, saved
    for who, is_seen in (("alice", True), ("bob", False)):
        found = up.ask("get_recent_decisions", who, "/decisions/mcp", force_refresh=False)
        assert (secret in json.dumps(found)) is is_seen


def test_attack_cached_results_of_another_principal(up: Up) -> None:
    """The results are cached for 30 s, for each principal apart."""
    given: dict[str, Any] = {
        "symbol": "ETH/USD",
        "action": "HOLD",
        "confidence": 0.1,
        "opportunity_score": 1,
        "tool_calls": [],
    }
    for who in ("alice", "bob"):
        up.ask("save_decision", who, "/decisions/mcp", reasoning=f"the reason of {who}", **given)
    for who, other in (("alice", "bob"), ("bob", "alice"), ("alice", "bob")):
        found = json.dumps(up.ask("get_recent_decisions", who, "/decisions/mcp", symbol="ETH/USD"))
        assert f"the reason of {who}" in found
        assert f"the reason of {other}" not in found


def test_attack_lists_and_suggestions_of_what_others_have_asked_for(tmp_path: Path) -> None:
    """A symbol that is stored and not watched is one that somebody has asked for: neither a list nor a typo reveals it."""
    (tmp_path / "bars.csv").write_text("timestamp,open,high,low,close,volume\n2026-01-05T15:00:00Z,1,1,1,1,1\n")
    options = ("--symbol", "ZQXW", "--timeframe", "60min")
    assert run(tmp_path, "import", str(tmp_path / "bars.csv"), *options, FEED="none").returncode == 0
    (tmp_path / "watchlist.txt").write_text("AAPL\n")
    with Inside(tmp_path, {"bob": ("bob", "read"), "own": ("local", "read")}, FEED="none") as desk:
        for path, tool, argument in (
            ("/mcp", "get_indicators", {"symbol": "ZQWX", "indicators": ["rsi"]}),
            ("/market-data/mcp", "get_candles", {"symbol": "ZQWX"}),
            ("/arche/mcp", "quotes.live", {"tickers": ["ZQWX"]}),
            ("/chart-image/mcp", "get_symbols", {"exchange": "NASDAQ"}),
        ):
            called = message("tools/call", {"name": tool, "arguments": argument})
            for who, is_told in (("own", True), ("bob", False)):
                assert ("ZQXW" in desk.post(called, who, path).body.decode()) is is_told, (tool, who)
        for who, is_told in (("own", True), ("bob", False)):
            listed = desk.request("GET", "/v3/tradingview/exchange/NASDAQ/symbols", who)
            assert ("ZQXW" in listed.body.decode()) is is_told, (who, listed.status)


def test_attack_cursor_of_another_principals_inbox(up: Up) -> None:
    found = up.ask("get_notifications", "bob", cursor=0)
    assert found["notifications"] == []
    beyond = up.call("get_notifications", "bob", cursor=2**53)
    assert beyond["isError"] is True


# Scopes


@pytest.mark.parametrize("tool", ["place_order", "cancel_order", "get_orders", "set_alert", "get_notifications"])
@pytest.mark.parametrize("revision", ["handshake", "modern"])
def test_attack_token_for_reading_calls_trading_tools(up: Up, tool: str, revision: str) -> None:
    call = {"name": tool, "arguments": {}}
    if revision == "modern":
        answer = up.post(modern("tools/call", call), "reader", **modern_headers("tools/call", tool))
    else:
        answer = up.post(message("tools/call", call), "reader")
    assert answer.status == 403
    assert answer.json["error"]["data"] == {"reason": "forbidden"}
    challenge = answer["www-authenticate"]
    assert challenge is not None
    # A client that asks for the scopes of the challenge instead of its own still has those that it had.
    assert challenge.startswith('Bearer error="insufficient_scope", scope="read trade", resource_metadata="http')


@pytest.mark.parametrize(
    ("path", "tool"), [("/decisions/mcp", "save_decision"), ("/strategy-db/mcp", "submit_new_spec")]
)
def test_attack_token_for_reading_writes(up: Up, path: str, tool: str) -> None:
    call = message("tools/call", {"name": tool, "arguments": {}})
    for who, scopes in (("reader", "read write"), ("keeper", "write admin")):
        answer = up.post(call, who, path)
        assert answer.status == 403
        assert f'scope="{scopes}"' in (answer["www-authenticate"] or "")


def test_attack_token_without_the_scope_of_a_tool_or_a_method(up: Up) -> None:
    assert up.post(message("tools/call", {"name": "list_indicators"}), "keeper").status == 403
    given: dict[str, Any] = {"symbol": "BTC/USD", "timeframe": "1h", "conditions": [{"type": "macd_cross"}]}
    for body in (
        message("subscribe_alerts", given),
        message("tools/call", {"name": "subscribe_alerts", "arguments": given}),
    ):
        assert up.post(body, "keeper", "/chart-signals/mcp").status == 403
    assert up.post(message("tools/list"), "keeper").status == 200


def test_attack_large_messages_of_one_principal_do_not_delay_those_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large message is read in a thread for which the principals queue in turn, not in one of the loop's own."""
    read_for: list[tuple[Any, str]] = []

    def noted(body: bytes) -> Any:
        read_for.append((CALLER.get(), threading.current_thread().name.partition("_")[0]))
        return parse(body)

    monkeypatch.setattr(messages, "parse", noted)
    with Inside(tmp_path) as gateway:
        for who in ("alice", "bob"):
            assert gateway.post(message("ping", {"a": [1] * 6_000}), who).status == 200
    assert read_for == [("alice", "messages"), ("bob", "messages")]


def test_attack_an_internal_error_tells_nothing_about_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Inside(tmp_path) as gateway:

        async def fail(*_: object, **__: object) -> None:
            raise RuntimeError("boom")

        monkeypatch.setattr(gateway.desk.quotes, "quote", fail)
        found = gateway.call("get_current_price", "alice", "/market-data/mcp", symbol="BTC/USD")
        error = json.loads(found["content"][0]["text"])["error"]
        assert (error["code"], error["details"]) == ("INTERNAL_ERROR", {"tool": "get_current_price"})
        assert "standard error" not in json.dumps(found) and "boom" not in json.dumps(found)


def test_attack_reading_without_a_token_writes_and_trades(tmp_path: Path) -> None:
    with Inside(tmp_path, OPEN_READING="1") as gateway:
        assert gateway.post(message("tools/call", {"name": "list_indicators"}), None).status == 200
        for path, tool in (
            ("/decisions/mcp", "save_decision"),
            ("/strategy-db/mcp", "submit_new_spec"),
            ("/mcp", "place_order"),
            ("/mcp", "list_alerts"),
        ):
            assert gateway.post(message("tools/call", {"name": tool}), None, path).status == 403
        forwarded = gateway.post(message("ping"), None, X_Forwarded_For="8.8.8.8", Forwarded="for=8.8.8.8")
        assert forwarded.status == 401


def test_attack_writing_tools_of_a_read_only_desk(tmp_path: Path) -> None:
    with Inside(tmp_path):
        pass  # makes the tokens and the stores
    with Up(tmp_path, "--read-only", "--trade", tokens={}) as desk:
        desk.tokens = {"alice": _token_of(tmp_path)}
        listed = {tool["name"] for tool in desk.post(message("tools/list")).json["result"]["tools"]}
        assert not listed & {"place_order", "cancel_order", "set_alert", "subscribe_notifications"}
        for tool, given in (
            ("place_order", {"symbol": "BTC/USD", "side": "buy", "type": "market", "quantity": 1}),
            ("set_alert", {"symbol": "BTC/USD", "condition": {"price_above": 1}}),
            ("subscribe_notifications", {}),
        ):
            refused = desk.call(tool, **given)
            assert refused["isError"] is True
            assert "--read-only" in refused["content"][0]["text"]
        assert desk.stop() == 0


# Tokens


def _token_of(home: Path) -> str:
    return add_tokens(home, {"late": ("alice", "read,trade")})["late"]


@pytest.mark.parametrize("where", ["access_token", "token", "authorization", "bearer"])
def test_attack_token_in_the_query(up: Up, where: str) -> None:
    text = up.tokens["alice"]
    answer = up.post(message("ping"), None, f"/mcp?{where}={text}")
    assert answer.status == 401
    assert text.encode() not in answer.body
    assert up.request("GET", f"/mcp?{where}={text}", None, Accept="text/event-stream").status == 401


def test_attack_token_in_a_cookie_or_the_body(up: Up) -> None:
    text = up.tokens["alice"]
    assert up.post(message("ping"), None, Cookie=f"access_token={text}; Authorization=Bearer {text}").status == 401
    assert up.post({**message("ping"), "access_token": text}, None).status == 401
    assert up.post(message("ping"), None, Proxy_Authorization=f"Bearer {text}").status == 401
    assert up.post(message("ping"), None, X_Forwarded_Authorization=f"Bearer {text}").status == 401


def test_attack_two_tokens(up: Up) -> None:
    head = up.bytes_of("POST", "/mcp", b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    extra = f"\r\nAuthorization: Bearer {up.tokens['bob']}\r\n".encode()
    for data in (head.replace(b"\r\n", extra, 1), head.replace(b"\r\nContent-Type", extra + b"Content-Type", 1)):
        assert up.send(data).status == 401
    both = f"Bearer {up.tokens['alice']}, Bearer {up.tokens['bob']}"
    assert up.post(message("ping"), None, Authorization=both).status == 401


@pytest.mark.parametrize(
    "form",
    [
        *(
            "Basic {basic}",
            "{token}",
            "Token {token}",
            "Bearer",
            "Bearer {token}x",
            "Bearer {token}=",
            "Digest {token}",
        ),
        *("Bearer {token} {token}", 'Bearer "{token}"', "BearerBearer {token}", "Bearer {token},", "Bearer\t{token}"),
    ],
)
def test_attack_token_in_another_form(up: Up, form: str) -> None:
    text = up.tokens["alice"]
    basic = base64.b64encode(f"alice:{text}".encode()).decode()
    answer = up.post(message("ping"), None, Authorization=form.format(token=text, basic=basic))
    assert answer.status == 401
    assert 'error="invalid_token"' in (answer["www-authenticate"] or "")


def test_attack_token_for_another_resource(up: Up) -> None:
    base = f"http://127.0.0.1:{up.port}"
    issued = {name: new_secret(ACCESS) for name in ("/mcp", "/portfolio/mcp", "other")}
    addresses = {"other": "https://another.example/mcp"}

    async def work() -> None:
        store = make_access(load({"OPENBELL_HOME": str(up.home)}))
        user = User("carol", PassphraseHash(b"0" * 32, b"0" * 16, 16, 8, 1), frozenset({"read", "trade"}))
        await store.write(lambda connection: users.put(connection, user, 1.0))
        for name, text in issued.items():
            resource = addresses.get(name, base + name)
            grant = Grant(f"grant{name}", "client", "carol", frozenset({"read"}), resource)
            code = Code(digest(name), grant, "http://127.0.0.1/", "x", 4e9)
            token = Token(digest(text), grants.ACCESS, grant, frozenset({"read"}), resource, 4e9)

            def write(connection: Any, code: Code = code, token: Token = token) -> None:
                grants.create(connection, code, 1.0)
                grants.add_token(connection, token)

            await store.write(write)
        await store.close()

    asyncio.run(work())
    for name, text in issued.items():
        for path in ("/mcp", "/portfolio/mcp", "/strategy/mcp"):
            status = up.post(message("ping"), None, path, Authorization=f"Bearer {text}").status
            assert status == (200 if name == path else 401), (name, path)


def test_attack_removed_token(up: Up) -> None:
    text = add_tokens(up.home, {"removed": ("alice", "read")})["removed"]
    assert up.post(message("ping"), None, Authorization=f"Bearer {text}").status == 200
    assert run(up.home, "token", "remove", "removed").returncode == 0
    wait_for(lambda: up.post(message("ping"), None, Authorization=f"Bearer {text}").status == 401, "the refusal")
