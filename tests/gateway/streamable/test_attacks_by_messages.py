"""Attacks by a message or its headers: two readings of one request, hostile types and names, and texts that are echoed."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.gateway.streamable.fixture_server import Fixtures, fixtures
from tests.gateway.streamable.gateways import META, MODERN, Up, message, modern, modern_headers, notification
from tests.waiting import wait_for

CALL: dict[str, Any] = {"name": "list_alerts", "arguments": {}}


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fixtures]:
    with fixtures(tmp_path_factory.mktemp("fixtures")) as made:
        yield made


# Two readings of one request


@pytest.mark.parametrize(
    "body",
    [
        '{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}',
        '{"jsonrpc":"2.0","id":1,"method":"ping","m\\u0065thod":"tools/list"}',
        '{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_alerts","name":"place_order"}}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_alerts","arguments":{"a":1,"a" :2}}}',
        '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":[{"b":[{"":1, "":2}]}]}}',
        '{"jsonrpc":"2.0","id":"\\":\\":","method":"ping","params":{"x":"\\\\", "x":"\\":"}}',
    ],
)
def test_attack_key_given_twice(up: Up, body: str) -> None:
    answer = up.post(body.encode())
    assert (answer.status, answer.json["error"]["code"]) == (400, -32700)


def test_attack_method_header_against_the_body(up: Up) -> None:
    body = modern("tools/call", CALL)
    for method, name in (
        ("tools/list", "list_alerts"),
        ("tools/call", "list_indicators"),
        ("TOOLS/CALL", "list_alerts"),
    ):
        answer = up.post(body, **modern_headers(method, name))
        assert (answer.status, answer.json["error"]["code"]) == (400, -32020)


def test_attack_method_header_against_the_body_of_an_older_revision(up: Up) -> None:
    for version in (None, "2025-06-18"):
        named: dict[str, Any] = {"MCP_Protocol_Version": version}
        assert (
            up.post(message("tools/call", CALL), Mcp_Method="tools/call", Mcp_Name="list_alerts", **named).status == 200
        )
        for headers in ({"Mcp_Method": "tools/list"}, {"Mcp_Name": "list_indicators"}, {"Mcp_Method": ""}):
            answer = up.post(message("tools/call", CALL), **headers, **named)
            assert (answer.status, answer.json["error"]["code"]) == (400, -32020)


def test_attack_revision_of_the_header_against_the_envelope(up: Up) -> None:
    body = modern("tools/call", CALL)
    meta = {f"{META}protocolVersion": "2025-06-18", f"{META}clientCapabilities": {}}
    older = message("tools/call", {**CALL, "_meta": meta})
    assert up.post(older, **modern_headers("tools/call", "list_alerts")).status == 400
    assert up.post(body, Mcp_Method="tools/call", Mcp_Name="list_alerts").status == 400


@pytest.mark.parametrize("name", ["Mcp-Method", "Mcp-Name", "MCP-Protocol-Version"])
def test_attack_routing_header_given_twice(up: Up, name: str) -> None:
    headers = modern_headers("tools/call", "list_alerts")
    data = up.bytes_of("POST", "/mcp", json.dumps(modern("tools/call", CALL)).encode(), **headers)
    assert up.send(data).status == 200
    twice = data.replace(b"\r\n", f"\r\n{name}: {headers[name]}\r\n".encode(), 1)
    assert up.send(twice).status == 400


def test_attack_parameter_header_against_the_argument(tools: Fixtures) -> None:
    body = modern("tools/call", {"name": "test_header_argument", "arguments": {"region": "eu"}})
    headers = modern_headers("tools/call", "test_header_argument")
    assert tools.post(body, **headers, Mcp_Param_Region="eu").status == 200
    for value in ("us", "EU", "=?base64?!?=", None):
        answer = tools.post(body, **headers, Mcp_Param_Region=value)
        assert (answer.status, answer.json["error"]["code"]) == (400, -32020)


@pytest.mark.parametrize("name", ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "_method"])
def test_attack_override_of_the_http_method(up: Up, name: str) -> None:
    assert up.request("GET", "/mcp", **{name: "POST", "Accept": "application/json"}).status == 406
    answer = up.post(message("ping"), **{name: "DELETE"})
    assert (answer.status, answer.json["result"]) == (200, {})
    assert up.post(message("ping"), path=f"/mcp?_method=DELETE&{name}=PUT").status == 200


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/mcp/",
            "//mcp",
            "/MCP",
            "/%2fmcp",
            "/%6dcp/",
            "/portfolio/../mcp",
            "/./mcp",
            "/mcp;x=1",
            "/mcp%00",
            "/mcp%20",
        ),
        *(
            "/mcp%2f",
            "/portfolio%2fmcp",
            "/portfolio//mcp",
            "/portfolio/mcp/",
            "/mcp/..",
            "/mcp\\",
            "/Portfolio/mcp",
            "mcp",
        ),
    ],
)
def test_attack_other_spellings_of_a_path(up: Up, path: str) -> None:
    for method in ("GET", "POST"):
        assert up.request(method, path, Accept="text/event-stream, application/json").status in {400, 404}


@pytest.mark.parametrize("path", ["/token/", "/authorize/", "/register/", "/revoke/"])
def test_attack_redirect_by_a_slash(up: Up, path: str) -> None:
    answer = up.request("GET", path, None)
    assert (answer.status, answer["location"]) == (404, None)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip, identity", "x-gzip"])
def test_attack_compressed_bodies(up: Up, coding: str) -> None:
    plain = json.dumps(message("ping")).encode()
    spaces = b" " * 2**24 + plain
    bomb = {"gzip": gzip.compress(spaces), "deflate": zlib.compress(spaces)}.get(coding, plain)
    for body in (plain, bomb):
        assert up.post(body, Content_Encoding=coding).status == 415


# Hostile types and names


@pytest.mark.parametrize("meta", [5, "x", [], True, [{"progressToken": 1}]])
@pytest.mark.parametrize("method", ["tools/call", "tools/list", "ping"])
def test_attack_meta_of_another_type(up: Up, method: str, meta: Any) -> None:
    answer = up.post(message(method, {**(CALL if method == "tools/call" else {}), "_meta": meta}))
    assert answer.json["error"]["code"] == -32602
    body = message(method, {**(CALL if method == "tools/call" else {}), "_meta": meta})
    newest = up.post(body, **modern_headers(method, CALL["name"] if method == "tools/call" else None))
    assert (newest.status, newest.json["error"]["code"]) == (400, -32602)


@pytest.mark.parametrize("token", [{}, [1], 1.5, {"a": "b"}])
def test_attack_progress_token_of_another_type(up: Up, token: Any) -> None:
    answer = up.post(message("tools/call", {**CALL, "_meta": {"progressToken": token}}))
    assert answer.json["error"]["code"] == -32602


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("protocolVersion", 5),
        ("protocolVersion", ["x"]),
        ("clientCapabilities", 3),
        ("clientCapabilities", []),
        ("clientInfo", 3),
    ],
)
def test_attack_envelope_of_another_type(up: Up, key: str, value: Any) -> None:
    meta = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}, f"{META}{key}": value}
    answer = up.post(message("tools/call", {**CALL, "_meta": meta}), **modern_headers("tools/call", "list_alerts"))
    listed = up.post(message("tools/list", {"_meta": meta}), **modern_headers("tools/list"))
    assert (answer.status, listed.status) == (400, 400)


@pytest.mark.parametrize("info", [5, [], {"name": []}, {"name": "x" * 500_000, "version": "1"}, None])
def test_attack_hostile_initialize(up: Up, info: Any) -> None:
    """What a session keeps of its client cannot fail or fill its later requests."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": 7 if info is None else {}, "clientInfo": info}
    named = {"Mcp_Session_Id": "hostile"}
    assert up.post(message("initialize", hello), **named).status == 200
    assert up.post(message("tools/list"), **named).json["result"]["tools"]


@pytest.mark.parametrize("name", ["__proto__", "constructor", "__class__", "__init__", "call", "model_config", "_meta"])
def test_attack_names_of_program_internals(up: Up, name: str) -> None:
    hostile: dict[str, Any] = {name: {"polluted": True}}
    found = up.call("list_alerts", **hostile)
    assert found["isError"] is True
    assert up.post(message("tools/call", {"name": name, "arguments": {}})).json["error"]["code"] == -32602
    assert up.post(message(name, {})).json["error"]["code"] == -32601
    assert up.post(message("ping", {name: {"polluted": True}} if name != "_meta" else {})).json["result"] == {}


def test_attack_giant_tool_name(up: Up) -> None:
    """It is neither repeated in the response nor in the audit log."""
    name = "x" * 900_000 + "\n{}"
    answer = up.post(message("tools/call", {"name": name, "arguments": {}}), X_Request_ID="giant")
    assert answer.json["error"]["code"] == -32602
    assert len(answer.body) < 2_000
    log = up.home / "audit.log"

    def lines() -> list[str]:
        return [line for line in log.read_text().splitlines() if '"giant"' in line]

    wait_for(lambda: log.exists() and bool(lines()), "the audit line")
    (line,) = lines()
    assert len(line) < 500
    assert json.loads(line)["tool"] == "x" * 128


def test_attack_giant_texts_in_arguments(up: Up) -> None:
    found = up.call("cancel_order", order_id="y" * 900_000)
    assert found["isError"] is True
    assert len(json.dumps(found)) < 5_000


def test_attack_deeply_nested_arguments(up: Up) -> None:
    nested: Any = 1
    for _ in range(150):
        nested = {"a": nested}
    assert up.call("list_alerts", a=nested)["isError"] is True
    deeper = (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}"
    )
    assert up.post(deeper).status == 400


def test_attack_request_id_used_in_parallel(up: Up) -> None:
    """Each response belongs to its own request, and one cancellation ends both."""

    def call(tool: str) -> dict[str, Any]:
        answer = up.post(message("tools/call", {"name": tool, "arguments": {}}, "same"), Mcp_Session_Id="parallel")
        found: dict[str, Any] = answer.json["result"]["structuredContent"]
        return found

    names = {"list_alerts": "alerts", "get_orders": "orders", "list_subscriptions": "subscriptions"}
    with ThreadPoolExecutor(6) as threads:
        for tool, found in zip(list(names) * 8, threads.map(call, list(names) * 8), strict=True):
            assert names[tool] in found
        waits = message("tools/call", {"name": "get_notifications", "arguments": {"wait_s": 25, "cursor": 0}}, "same")
        both = [threads.submit(up.post, waits, "bob", Mcp_Session_Id="parallel") for _ in range(2)]
        cancel = notification("notifications/cancelled", {"requestId": "same"})

        def ended() -> bool:
            up.post(cancel, "bob", Mcp_Session_Id="parallel")
            return all(each.done() for each in both)

        wait_for(ended, "both to be cancelled")
        assert [each.result().json["error"]["code"] for each in both] == [-32800] * 2


# Texts that are echoed


@pytest.mark.parametrize("session", ["a b", "a\tb", "x" * 1025, "\xe9", "caf\xc3\xa9", "a\x7fb", ""])
def test_attack_hostile_session_id(up: Up, session: str) -> None:
    for body in (message("ping"), notification("notifications/initialized"), message("initialize", {})):
        answer = up.post(body, Mcp_Session_Id=session)
        assert (answer.status, answer["mcp-session-id"]) == (400, None)
    assert up.request("GET", Mcp_Session_Id=session, Accept="text/event-stream").status == 400


@pytest.mark.parametrize(
    "name", ["Mcp-Session-Id", "X-Request-ID", "MCP-Protocol-Version", "Last-Event-ID", "Mcp-Method"]
)
@pytest.mark.parametrize(
    "text", ["a\r\nSet-Cookie: x=1", "a\rSet-Cookie: x=1", "a\nSet-Cookie: x=1", "a\x00b", "a\r\n\r\n<p>"]
)
def test_attack_response_splitting(up: Up, name: str, text: str) -> None:
    answer = up.post(message("ping"), **{name: text})
    assert answer["set-cookie"] is None
    assert b"<p>" not in answer.body
    assert "\r" not in json.dumps(answer.headers)
    if "\nSet" not in text:  # that one is simply another header of the request
        assert answer.status == 400


def test_attack_hostile_texts_are_escaped_in_responses(up: Up) -> None:
    answer = up.post(message("<script>alert(1)</script>", {}, "\u2028</script>"))
    assert answer["content-type"] == "application/json"
    assert answer.json["error"]["code"] == -32601
    page = up.request("GET", "/%3Cscript%3Ealert(1)%3C/script%3E")
    assert page.status == 404
    assert b"<script" not in page.body
