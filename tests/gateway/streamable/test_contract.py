"""The HTTP transport of the contract: Accept, sessions, aliases, paths, revisions, and messages that are none."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from openbell.gateway.app import paths_of
from openbell.gateway.streamable import exchange
from openbell.servers import NAMES
from tests.client import run
from tests.gateway.streamable.gateways import MODERN, Inside, Up, message, modern, modern_headers, notification
from tests.waiting import wait_for

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
PING = message("ping")
DOCS = Path(__file__).resolve().parents[3] / "docs"


def hello(version: str) -> dict[str, Any]:
    client = {"name": "test", "version": "1"}
    return message("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": client})


# Accept and Content-Type


@pytest.mark.parametrize(
    "accept",
    [
        None,
        "application/json",
        "application/json, text/event-stream",
        "APPLICATION/JSON",
        "application/json;charset=utf-8",
        "application/*",
        "*/*",
        "text/html, */*;q=0.1",
        "application/json;q=0.001",
        "text/plain;q=0, application/json",
        "application/*;q=0, application/json",
    ],
)
def test_a_client_that_accepts_json_or_names_nothing_gets_json(up: Up, accept: str | None) -> None:
    answer = up.post(PING, Accept=accept)
    assert (answer.status, answer["content-type"]) == (200, "application/json")
    assert answer.json == {"jsonrpc": "2.0", "id": 1, "result": {}}


@pytest.mark.parametrize(
    "accept",
    [
        "text/plain",
        "text/event-stream",
        "application/json;q=0",
        "application/json; q=0.000",
        "application/json;q=0, */*",
        "application/json;q=0, application/*",
        "application/*;q=0, */*",
        "application/jsonp",
        "",
    ],
)
def test_a_client_that_excludes_json_gets_406(up: Up, accept: str) -> None:
    answer = up.post(PING, Accept=accept)
    assert answer.status == 406
    assert answer.json["error"]["code"] == -32600


def test_two_accept_headers_are_one_list(up: Up) -> None:
    body = json.dumps(PING).encode()
    head = up.bytes_of("POST", "/mcp", body, Accept="text/plain").replace(
        b"\r\n", b"\r\nAccept: application/json\r\n", 1
    )
    assert up.send(head).status == 200


def test_accept_is_judged_before_the_token(up: Up) -> None:
    assert up.post(PING, None, Accept="text/plain").status == 406
    assert up.request("GET", "/mcp", None, Accept="application/json").status == 406


@pytest.mark.parametrize(
    "kind", [None, "", "text/plain", "application/jsonp", "application/json-rpc", "application/x-json"]
)
def test_a_body_that_is_not_declared_as_json_gets_415(up: Up, kind: str | None) -> None:
    assert up.post(PING, Content_Type=kind).status == 415


def test_a_parameter_of_the_content_type_is_allowed(up: Up) -> None:
    assert up.post(PING, Content_Type="Application/JSON; charset=utf-8").status == 200


# Sessions, notifications and aliases


@pytest.mark.parametrize("session", ["abc", "a" * 1024, "!#$%&'*+-.^_`|~:;<=>?@[]{}()/\\,\""])
def test_a_session_id_is_echoed_unchanged(up: Up, session: str) -> None:
    for body in (PING, message("tools/call", {"name": "list_alerts"}), notification("notifications/initialized")):
        assert up.post(body, Mcp_Session_Id=session)["mcp-session-id"] == session
    with up.stream(Mcp_Session_Id=session) as stream:
        assert stream.headers["mcp-session-id"] == session


def test_every_refusal_echoes_the_session_id_too(up: Up) -> None:
    refusals = [
        up.post(PING, Accept="text/plain", Mcp_Session_Id="mine"),
        up.post(PING, None, Mcp_Session_Id="mine"),
        up.post(PING, Content_Type="text/plain", Mcp_Session_Id="mine"),
        up.post(b"{", Mcp_Session_Id="mine"),
        up.post({"jsonrpc": "2.0", "id": 1}, Mcp_Session_Id="mine"),
        up.post(message("tools/call", {"name": "set_alert"}), "reader", Mcp_Session_Id="mine"),
        up.request("DELETE", Mcp_Session_Id="mine"),
        up.request("GET", Accept="application/json", Mcp_Session_Id="mine"),
        up.post(PING, MCP_Protocol_Version="1999-01-01", Mcp_Session_Id="mine"),
        up.post(PING, Origin="http://other.example", Mcp_Session_Id="mine"),
        up.post(PING, Host="other.example", Mcp_Session_Id="mine"),
        up.post(b" " * 2_000_000, Mcp_Session_Id="mine"),
        up.request("POST", "/nowhere", Mcp_Session_Id="mine"),
    ]
    assert [each.status for each in refusals] == [406, 401, 415, 400, 400, 403, 405, 406, 400, 403, 421, 413, 404]
    assert {each["mcp-session-id"] for each in refusals} == {"mine"}


def test_only_initialize_of_a_revision_with_sessions_issues_an_id(up: Up) -> None:
    assert up.post(PING)["mcp-session-id"] is None
    assert up.post(hello("2024-11-05"))["mcp-session-id"] is None
    first, second = (up.post(hello("2025-06-18"))["mcp-session-id"] for _ in range(2))
    assert first is not None
    assert first != second


# Batches


def test_a_client_of_2025_03_26_sends_batches(up: Up) -> None:
    session = up.post(hello("2025-03-26"))["mcp-session-id"]
    batch = [
        message("ping", number="a"),
        notification("notifications/initialized"),
        message("tools/call", {"name": "list_alerts"}, 2),
        message("tools/call", {"name": "list_indicators", "arguments": {"name": "nothing"}}, 3),
        message("no/such/method", number=4),
        {"jsonrpc": "2.0", "id": 5, "method": 7},
    ]
    for named in ({"Mcp_Session_Id": session}, {"MCP_Protocol_Version": "2025-03-26"}, {}):
        answer = up.post(batch, **named)
        assert (answer.status, answer["content-type"]) == (200, "application/json")
        found = {each["id"]: each for each in answer.json}
        assert list(found) == ["a", 2, 3, 4, 5]
        assert found["a"]["result"] == {}
        assert (found[2]["result"]["isError"], found[3]["result"]["isError"]) == (False, True)
        assert (found[4]["error"]["code"], found[5]["error"]["code"]) == (-32601, -32600)


def test_a_batch_without_requests_is_answered_with_202(up: Up) -> None:
    answer = up.post([notification("notifications/initialized")] * 2, MCP_Protocol_Version="2025-03-26")
    assert (answer.status, answer.body) == (202, b"")


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"])
def test_batches_of_other_revisions_are_refused(up: Up, version: str) -> None:
    refused = [up.post([PING], MCP_Protocol_Version=version)]
    if version in HANDSHAKE and (session := up.post(hello(version))["mcp-session-id"]):
        refused.append(up.post([PING], Mcp_Session_Id=session))
    assert {(each.status, each.json["error"]["code"]) for each in refused} == {(400, -32600)}


@pytest.mark.parametrize(
    "batch",
    [[], [hello("2025-03-26")], [message("ping", number=n) for n in range(51)], [PING, PING]],
    ids=["empty", "initialize", "too many", "an id twice"],
)
def test_a_batch_that_breaks_the_rules_is_refused_whole(up: Up, batch: list[Any]) -> None:
    answer = up.post(batch, MCP_Protocol_Version="2025-03-26")
    assert (answer.status, answer.json["error"]["code"], answer.json["id"]) == (400, -32600, None)


def test_a_request_of_a_batch_that_is_cancelled_before_its_turn_does_not_run(up: Up) -> None:
    def sets(price: int, number: int) -> dict[str, Any]:
        given = {"symbol": "BTC/USD", "condition": {"price_above": price}}
        return message("tools/call", {"name": "set_alert", "arguments": given}, number)

    def is_set(price: int) -> bool:
        alerts = up.ask("list_alerts", "bob")["alerts"]
        return any(each["condition"].get("threshold") == price for each in alerts)

    waits = message("tools/call", {"name": "get_notifications", "arguments": {"wait_s": 9}}, 2)
    batch = [sets(987_654_320, 1), waits, sets(987_654_321, 3)]
    named: dict[str, Any] = {"MCP_Protocol_Version": "2025-03-26", "Mcp_Session_Id": "batch"}
    with ThreadPoolExecutor() as threads:
        answer = threads.submit(up.post, batch, "bob", **named)
        wait_for(lambda: is_set(987_654_320), "the batch to begin")
        for number in (3, 2):
            up.post(notification("notifications/cancelled", {"requestId": number}), "bob", **named)
    assert [each.get("error", {}).get("code") for each in answer.result().json] == [None, -32800, -32800]
    assert not is_set(987_654_321)


def test_attack_a_batch_goes_on_after_its_token_was_removed(tmp_path: Path) -> None:
    """The token is checked again before each message."""
    with Up(tmp_path) as up:
        added = run(tmp_path, "token", "add", "brief", "--scopes", "read,trade")
        up.tokens["brief"] = added.stdout.split()[-1]
        waits = [message("tools/call", {"name": "get_notifications", "arguments": {"wait_s": 9}}, n) for n in (1, 2)]
        given = {"symbol": "BTC/USD", "condition": {"price_above": 5}}
        sets = message("tools/call", {"name": "set_alert", "arguments": given}, 3)
        with ThreadPoolExecutor() as threads:
            answer = threads.submit(up.post, [*waits, sets], "brief", MCP_Protocol_Version="2025-03-26")
            assert run(tmp_path, "token", "remove", "brief").returncode == 0
            codes = [each.get("error", {}).get("code") for each in answer.result().json]
        assert codes[1:] == [401, 401]


def test_each_call_of_a_batch_needs_its_scope(up: Up) -> None:
    given = {"symbol": "BTC/USD", "condition": {"price_above": 1}}
    batch = [message("ping"), message("tools/call", {"name": "set_alert", "arguments": given}, 2)]
    answer = up.post(batch, "reader", MCP_Protocol_Version="2025-03-26")
    assert [each.get("error", {}).get("code") for each in answer.json] == [None, 403]


def test_notifications_and_responses_are_answered_with_202_and_nothing(up: Up) -> None:
    for body in (
        notification("notifications/initialized"),
        notification("notifications/cancelled", {"requestId": 5}),
        notification("notifications/of-another-server", {}),
        {"jsonrpc": "2.0", "id": "never-asked", "result": {}},
        {"jsonrpc": "2.0", "id": 7, "error": {"code": 1, "message": "no"}},
    ):
        for session in (None, "s"):
            answer = up.post(body, Mcp_Session_Id=session)
            assert (answer.status, answer.body, answer["content-type"]) == (202, b"", None)


@pytest.mark.parametrize("path", ["/", "/message"])
def test_older_paths_of_post(up: Up, path: str) -> None:
    assert up.post(PING, path=path, Mcp_Session_Id="s").json["result"] == {}
    assert up.ask("list_alerts", path=path)["alerts"] == up.ask("list_alerts")["alerts"]
    assert up.request("GET", path).status == 404


def test_the_older_path_of_get(up: Up) -> None:
    with up.stream(path="/sse") as stream:
        assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
        assert stream.frame() == {":": "keep-alive"}
    assert up.post(PING, path="/sse").status == 404


def test_tool_calls_are_answered_with_json_also_if_a_stream_is_accepted(up: Up) -> None:
    answer = up.post(message("tools/call", {"name": "list_indicators", "arguments": {}}, "x"))
    assert (answer.status, answer["content-type"]) == (200, "application/json")
    assert answer.json["id"] == "x"
    assert answer.json["result"]["isError"] is False


# Paths and methods


def test_every_server_has_a_path(up: Up) -> None:
    for name in NAMES:
        assert (DOCS / f"{name}.md").exists()
        path = "/mcp" if name == "chartgen" else f"/{name}/mcp"
        listed = {tool["name"] for tool in up.post(message("tools/list"), path=path).json["result"]["tools"]}
        assert listed
        documented = (DOCS / f"{name}.md").read_text()
        assert all(tool in documented for tool in listed)


def test_chart_signals_is_served_only_by_setting(tmp_path: Path) -> None:
    assert "chart-signals" in paths_of(chart_signals=True).values()
    with Inside(tmp_path) as gateway:
        assert gateway.post(PING, path="/chart-signals/mcp").status == 404
        assert gateway.post(PING, path="/strategy/mcp").status == 200


def test_an_unknown_tool_is_an_error_that_clients_read(tmp_path: Path) -> None:
    """The contract's code is that of unknown methods, for which the newest revision wants 404: clients skip such a body."""
    with Inside(tmp_path, CHART_SIGNALS_HTTP="1") as gateway:
        for method, name, status in (("tools/call", "no_such_tool", 200), ("no/such/method", None, 404)):
            body, headers = modern(method, {"name": name} if name else None), modern_headers(method, name)
            answer = gateway.post(body, path="/chart-signals/mcp", **headers)
            assert (answer.status, answer.json["error"]["code"]) == (status, -32601)


@pytest.mark.parametrize("method", ["DELETE", "PUT", "HEAD", "PATCH", "OPTIONS", "TRACE", "PROPFIND"])
def test_other_methods_get_405_and_the_allowed_ones(up: Up, method: str) -> None:
    answer = up.request(method)
    assert (answer.status, answer["allow"]) == (405, "GET, POST")


@pytest.mark.parametrize("path", ["/nothing", "/mcp/x", "/chartgen/mcp", "/mcp.json", "/favicon.ico"])
def test_unknown_paths_get_404(up: Up, path: str) -> None:
    assert up.request("GET", path).status == 404
    assert up.post(PING, path=path).status == 404


# Revisions


@pytest.mark.parametrize("version", HANDSHAKE)
def test_the_handshake_of_each_revision(up: Up, version: str) -> None:
    answer = up.post(hello(version))
    assert answer.json["result"]["protocolVersion"] == version
    assert (answer["mcp-session-id"] is None) == (version == "2024-11-05")
    named: dict[str, Any] = {"MCP_Protocol_Version": version, "Mcp_Session_Id": answer["mcp-session-id"]}
    assert up.post(notification("notifications/initialized"), **named).status == 202
    assert up.post(message("tools/list"), **named).json["result"]["tools"]
    called = up.post(message("tools/call", {"name": "list_alerts"}), **named).json["result"]
    assert "resultType" not in called


def test_a_handshake_with_an_unknown_revision_is_answered_with_the_newest(up: Up) -> None:
    assert up.post(hello("2099-01-01")).json["result"]["protocolVersion"] == HANDSHAKE[-1]


def test_the_newest_revision_needs_no_handshake(up: Up) -> None:
    found = up.post(modern("server/discover"), **modern_headers("server/discover")).json["result"]
    assert MODERN in found["supportedVersions"]
    listed = up.post(modern("tools/list"), **modern_headers("tools/list")).json["result"]
    assert (listed["resultType"], listed["cacheScope"]) == ("complete", "private")
    body = modern("tools/call", {"name": "list_alerts", "arguments": {}})
    for session in (None, "s"):  # it has no sessions: an id of the client's own is echoed, and none is issued
        named = {} if session is None else {"Mcp_Session_Id": session}
        answer = up.post(body, **named, **modern_headers("tools/call", "list_alerts"))
        assert answer.json["result"]["resultType"] == "complete"
        assert answer["mcp-session-id"] == session
    assert up.request("GET", MCP_Protocol_Version=MODERN, Accept="text/event-stream").status == 405


@pytest.mark.parametrize("version", ["1999-01-01", "2026-07-29", "x", "2025-06-18, 2026-07-28", "\xe9"])
def test_unknown_revisions_get_400_and_the_known_ones(up: Up, version: str) -> None:
    answers = [
        up.post(PING, MCP_Protocol_Version=version),
        up.post(notification("notifications/initialized"), MCP_Protocol_Version=version),
        up.request("GET", MCP_Protocol_Version=version, Accept="text/event-stream"),
    ]
    for answer in answers:
        assert answer.status == 400
        assert answer.json["error"]["data"]["supported"] == [MODERN]


def test_a_request_of_the_newest_revision_needs_its_headers(up: Up) -> None:
    body = modern("tools/call", {"name": "list_alerts", "arguments": {}})
    good = modern_headers("tools/call", "list_alerts")
    assert up.post(body, **good).status == 200
    for name in ("Mcp-Method", "Mcp-Name", "MCP-Protocol-Version"):
        answer = up.post(body, **{key: value for key, value in good.items() if key != name})
        assert (answer.status, answer.json["error"]["code"]) == (400, -32020)


# Messages that are none


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"\xef\xbb\xbf{}", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"} x', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":-Infinity}}', -32700),
        (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"\\udc00":1}}', -32700),
        (b'{"jsonrpc":"2.0","id":%s,"method":"ping"}' % (b"9" * 5000), -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":%s}}' % (b"[" * 5000 + b"]" * 5000), -32700),
        (b"[]", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b'"ping"', -32600),
        (b"null", -32600),
        (b'{"id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":2.0,"id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}', -32600),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', -32600),
    ],
)
def test_json_that_is_no_message_gets_400_and_its_code(up: Up, body: bytes, code: int) -> None:
    answer = up.post(body, MCP_Protocol_Version="2025-06-18")  # 2025-03-26 has batches
    assert (answer.status, answer.json["error"]["code"]) == (400, code), answer.body


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","id":%s,"method":"ping"}' % (b"9" * 4000),
        b'{"jsonrpc":"2.0","id":-1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":"","method":"ping"}',
        b'{"jsonrpc":"2.0","id":"\\u0000\\n\\u2028","method":"ping"}',
        b'{"jsonrpc" : "2.0", "id" : "a \\" : b", "method"\t:\n"ping"}',
    ],
)
def test_unusual_ids_come_back_as_they_were(up: Up, body: bytes) -> None:
    answer = up.post(body)
    assert (answer.status, answer.json) == (200, {"jsonrpc": "2.0", "id": json.loads(body)["id"], "result": {}})


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("no/such/method", {}, -32601),
        ("place_order", {"symbol": "AAPL"}, -32601),
        ("tools/call", None, -32602),
        ("tools/call", {"name": 5}, -32602),
        ("tools/call", {"name": "list_alerts", "arguments": []}, -32602),
        ("tools/call", {"name": "list_alerts", "_meta": 5}, -32602),
        ("tools/call", {"name": "list_alerts", "_meta": {"progressToken": {}}}, -32602),
        ("tools/call", {"name": "no_such_tool"}, -32602),
    ],
)
def test_wrong_requests_get_a_json_rpc_error(up: Up, method: str, params: Any, code: int) -> None:
    answer = up.post(message(method, params, "me"))
    assert (answer.status, answer.json["id"], answer.json["error"]["code"]) == (200, "me", code)


# Requests that take long


def test_a_response_that_takes_long_becomes_a_stream_with_comments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that accepts JSON only waits for it."""
    assert exchange.PING_SECONDS == 15
    monkeypatch.setattr(exchange, "PING_SECONDS", 0.1)
    call = {"name": "get_notifications", "arguments": {"wait_s": 0.5, "cursor": 0}}
    with Inside(tmp_path) as gateway:
        for body, headers in (
            (message("tools/call", call), {}),
            (modern("tools/call", call), modern_headers("tools/call", "get_notifications")),
        ):
            with gateway.posted(body, **headers) as stream:
                assert [stream.frame(), stream.frame()] == [{":": "keep-alive"}] * 2
                assert stream.message()["result"]["isError"] is False
                assert stream.frame() is None
            assert gateway.post(body, **{**headers, "Accept": "application/json"}).json["result"]["isError"] is False


# Cancelling

TOOL = "get_notifications"
WAITS = {"name": TOOL, "arguments": {"wait_s": 25, "cursor": 0}}


def outcomes(up: Up, who: str) -> list[str]:
    """The outcomes of a principal's calls of get_notifications, from the audit log."""
    log = up.home / "audit.log"
    lines = map(json.loads, log.read_text().splitlines()) if log.exists() else ()
    return [line["outcome"] for line in lines if (line["principal"], line["tool"]) == (who, TOOL)]


@pytest.mark.parametrize("session", ["cancels", "cancels-again"])
def test_a_notification_cancels_the_handler(up: Up, session: str) -> None:
    before = len(outcomes(up, "bob"))
    with up.connect() as connection:
        body = json.dumps(message("tools/call", WAITS, "w")).encode()
        connection.sendall(up.bytes_of("POST", "/mcp", body, "bob", Mcp_Session_Id=session))
        cancelled = notification("notifications/cancelled", {"requestId": "w"})

        def answered() -> bool:
            assert up.post(cancelled, "bob", Mcp_Session_Id=session).status == 202
            connection.settimeout(0.05)
            try:
                return b"-32800" in connection.recv(65536)
            except TimeoutError:
                return False

        wait_for(answered, "the response of the cancelled request")
    wait_for(lambda: outcomes(up, "bob")[before:] == ["cancelled"], "the handler to end")


def test_a_closed_connection_cancels_the_handler_in_the_newest_revision_only(up: Up) -> None:
    before = len(outcomes(up, "bob"))
    body = json.dumps(modern("tools/call", WAITS)).encode()
    with up.connect() as connection:
        connection.sendall(up.bytes_of("POST", "/mcp", body, "bob", **modern_headers("tools/call", TOOL)))
    wait_for(lambda: outcomes(up, "bob")[before:] == ["cancelled"], "the handler to end")
    short = {"name": "get_notifications", "arguments": {"wait_s": 0.3, "cursor": 0}}
    with up.connect() as connection:
        connection.sendall(up.bytes_of("POST", "/mcp", json.dumps(message("tools/call", short)).encode(), "bob"))
    wait_for(lambda: outcomes(up, "bob")[before:] == ["cancelled", "ok"], "the handler to end by itself")


def test_a_client_that_was_given_localhost_finds_its_own_url(up: Up) -> None:
    """Clients refuse metadata about another URL than theirs."""
    host = f"localhost:{up.port}"
    refused = up.post(message("ping"), None, Host=host)
    assert refused.status == 401
    place = f"http://{host}/.well-known/oauth-protected-resource/mcp"
    assert f'resource_metadata="{place}"' in (refused["www-authenticate"] or "")
    described = up.request("GET", place.removeprefix(f"http://{host}"), None, Host=host).json
    assert described["resource"] == f"http://{host}/mcp"
    lacking = up.post(message("tools/call", {"name": "place_order"}), "reader", Host=host)
    assert f'resource_metadata="{place}"' in (lacking["www-authenticate"] or "")
