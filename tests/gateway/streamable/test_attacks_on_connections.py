"""Attacks that exhaust or block: sessions, streams, connections that are pipelined, half-closed or not read."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from pathlib import Path
from typing import Any

import pytest

from openbell.gateway.streamable.pushes import PushStreams
from openbell.gateway.streamable.sessions import ClientStates
from openbell.protocol.session import Principal, Scope, no_notifications
from tests.gateway.guard.serving import Served, read, settings_of
from tests.gateway.streamable.fixture_server import fixtures
from tests.gateway.streamable.gateways import Client, Up, message, modern, modern_headers
from tests.waiting import wait_for

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
PING = json.dumps(message("ping")).encode()


def test_attack_10_000_sessions_do_not_drop_those_of_another_principal() -> None:
    sessions = ClientStates()
    alice, bob = (Principal(name, frozenset(Scope)) for name in ("alice", "bob"))
    kept = sessions.get(alice, "kept", no_notifications)
    for number in range(10_000):
        sessions.get(bob, f"s{number}", no_notifications)
    assert sessions.get(alice, "kept", no_notifications) is kept
    assert len(sessions) == 1_001


def test_attack_flood_of_sessions_while_a_request_waits(tmp_path: Path) -> None:
    with fixtures(tmp_path, ClientStates(most=20, most_per_principal=5)) as tools:
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"sampling": {}},
            "clientInfo": {"name": "t", "version": "1"},
        }
        assert tools.post(message("initialize", hello), Mcp_Session_Id="kept").status == 200
        call = message("tools/call", {"name": "test_sampling", "arguments": {"prompt": "?"}})
        with tools.posted(call, Mcp_Session_Id="kept") as stream:
            asked = stream.message()
            for number in range(40):
                assert tools.post(message("ping"), "bob", Mcp_Session_Id=f"s{number}").status == 200
            assert len(tools.sessions) == 6
            content = {"role": "assistant", "content": {"type": "text", "text": "mine"}, "model": "m"}
            tools.post({"jsonrpc": "2.0", "id": asked["id"], "result": content}, Mcp_Session_Id="kept")
            assert stream.message()["result"]["content"][0]["text"] == "LLM response: mine"


def test_attack_stream_exhaustion(tmp_path: Path) -> None:
    """Streams of every kind are counted for their principal and in all; a closed one makes room."""
    with fixtures(tmp_path, pushes=PushStreams(lambda: None, most=5, each=3)) as tools:
        listen = modern("subscriptions/listen", {"notifications": {}})
        held = [tools.stream(), tools.stream(path="/mcp"), tools.listen()]
        for refused in (
            tools.request("GET", Accept="text/event-stream"),
            tools.post(listen, **modern_headers("subscriptions/listen")),
        ):
            assert (refused.status, refused.json["error"]["data"]["reason"]) == (429, "too_many_streams")
            assert refused["retry-after"] == "5"
        held += [tools.stream("bob"), tools.listen("bob")]
        assert tools.request("GET", "/mcp", "bob", Accept="text/event-stream").status == 503
        assert tools.pushes.open == 5
        for stream in held[:2]:
            stream.close()
        wait_for(lambda: tools.pushes.open == 3, "closed streams to be noticed")
        held[:2] = [tools.stream("bob")]
        assert [stream.status for stream in held] == [200] * 4
        assert tools.post(message("ping")).status == 200
        for stream in held:
            stream.close()
        wait_for(lambda: tools.pushes.open == 0, "closed streams to be noticed")


def test_attack_resumed_responses_are_streams_too(tmp_path: Path) -> None:
    named = {"Mcp_Session_Id": "s", "MCP_Protocol_Version": "2025-11-25"}
    with fixtures(tmp_path, pushes=PushStreams(lambda: None, each=1)) as tools:
        with tools.posted(message("tools/call", {"name": "test_reconnection"}), **named) as stream:
            assert stream.frame()
            event = stream.event()["id"]
        with tools.stream():
            refused = tools.request("GET", Last_Event_ID=event, Accept="text/event-stream", **named)
            assert refused.status == 429


def test_attack_pipelined_requests_have_their_own_tokens(up: Up) -> None:
    first = up.bytes_of("POST", "/mcp", json.dumps(message("ping", None, "first")).encode(), "alice")
    second = up.bytes_of("POST", "/mcp", PING, None)
    third = up.bytes_of("POST", "/mcp", json.dumps(message("tools/call", {"name": "get_orders"}, 3)).encode(), "reader")
    with up.connect() as connection:
        connection.sendall(first + second + third)
        data = b""
        while b"insufficient_scope" not in data:
            more = connection.recv(65536)
            assert more, data
            data += more
    assert [int(part[:3]) for part in data.split(b"HTTP/1.1 ")[1:]] == [200, 401, 403]


def test_attack_requests_smuggled_in_a_body(up: Up) -> None:
    inner = up.bytes_of("POST", "/mcp", PING, "alice")
    with up.connect() as connection:
        connection.sendall(up.bytes_of("POST", "/mcp", inner, None))
        assert read(connection).status == 401
        connection.settimeout(0.2)
        try:
            later = connection.recv(65536)
        except TimeoutError:
            later = b""
        assert later == b""  # the body was not read as another request


def test_attack_half_closed_connections(up: Up) -> None:
    """A client that sends no more is gone: its slots are free again, and others are served."""
    waits = message("tools/call", {"name": "get_notifications", "arguments": {"wait_s": 20, "cursor": 0}})
    for _ in range(80):
        body = modern("tools/call", waits["params"])
        data = up.bytes_of(
            "POST", "/mcp", json.dumps(body).encode(), "bob", **modern_headers("tools/call", "get_notifications")
        )
        with up.connect() as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
    wait_for(lambda: up.post(message("ping"), "bob").status == 200, "the slots of one principal")
    assert up.post(message("ping")).status == 200


def test_attack_connections_reset_in_the_middle(up: Up) -> None:
    data = up.bytes_of("POST", "/mcp", PING + b" " * 50_000)
    for size in (1, 30, 200, len(data) - 1, len(data)):
        connection = up.connect()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.sendall(data[:size])
        connection.close()
    assert up.post(message("ping")).status == 200


def test_attack_expect_without_a_token_gets_no_continue(up: Up) -> None:
    for who, first in (("alice", 100), (None, 401)):
        head = up.bytes_of("POST", "/mcp", PING, who, Expect="100-continue").removesuffix(PING)
        with up.connect() as connection:
            connection.sendall(head)
            begin = connection.recv(13)
            assert int(begin.split()[1]) == first
            if who is not None:
                connection.sendall(PING)
                rest = b""
                while b'"result":{}' not in rest:
                    rest += connection.recv(65536)


def small_buffer(client: Client | Served) -> socket.socket:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    connection.connect(("127.0.0.1", client.port))
    return connection


def test_attack_large_responses_that_nobody_reads_block_no_other_client(up: Up) -> None:
    listed = up.bytes_of("POST", "/mcp", json.dumps(message("tools/list")).encode(), "bob")
    held = [small_buffer(up) for _ in range(4)]
    try:
        for connection in held:
            connection.setblocking(False)
            try:
                for _ in range(60):  # 20 kB each, pipelined
                    connection.send(listed)
            except BlockingIOError:
                continue
        for who in ("alice", "bob"):
            for _ in range(5):
                assert up.post(message("ping"), who).status == 200
    finally:
        for connection in held:
            connection.close()


def test_attack_response_that_is_never_read_is_cut_off(tmp_path: Path) -> None:
    """A client that reads slowly keeps its connection; one that reads nothing loses it."""
    ended: list[str] = []

    async def large(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(400):
            await send({"type": "http.response.body", "body": b"x" * 65_536, "more_body": True})
        gone = (await receive())["type"] if scope["path"] == "/stalled" else "read"
        while gone == "http.request":
            gone = (await receive())["type"]
        ended.append(gone)
        if gone == "read":
            await send({"type": "http.response.body", "body": b"end"})

    with Served(lambda _port: large, settings_of(tmp_path), read_seconds=0.2) as served:
        with small_buffer(served) as stalled:
            stalled.sendall(b"GET /stalled HTTP/1.1\r\nHost: x\r\n\r\n")
            wait_for(lambda: ended == ["http.disconnect"], "the connection to be cut off")
        with served.connect() as slow:
            slow.sendall(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
            size = 0
            while part := slow.recv(1_000_000):
                size += len(part)
                if part.endswith(b"0\r\n\r\n"):
                    break
            assert size > 400 * 65_536
            assert ended == ["http.disconnect", "read"]


def test_attack_responses_that_are_never_read_do_not_hold_the_end_of_the_process(tmp_path: Path) -> None:
    """A client that reads gets its whole response, although the gateway stops."""
    parts, part = 400, b"x" * 65_536
    begun: list[str] = []

    async def large(scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        begun.append(scope["path"])
        for _ in range(parts):
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    with (
        Served(lambda _port: large, settings_of(tmp_path), read_seconds=600, stopping_seconds=0.3) as served,
        small_buffer(served) as stalled,
        small_buffer(served) as slow,
    ):
        for connection, path in ((stalled, b"/stalled"), (slow, b"/slow")):
            connection.sendall(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path)
        wait_for(lambda: len(begun) == 2, "the responses to begin")
        served.server.should_exit = True
        size = 0
        while found := slow.recv(100_000):
            size += len(found)
        assert size > parts * len(part)
        wait_for(lambda: not served.server.server_state.connections, "the connections to be closed")


def test_attack_stream_that_is_never_read_holds_no_memory_without_bound(tmp_path: Path) -> None:
    """Pushes that wait for a client that does not read are bounded; its stream ends."""
    pushes = PushStreams(lambda: None)
    alice = Principal("alice", frozenset(Scope))

    async def attack() -> None:
        blocked, waiting = asyncio.Event(), asyncio.Event()

        async def send(_message: Any) -> None:
            waiting.set()
            await blocked.wait()

        async def receive() -> Any:
            await asyncio.Event().wait()

        serving = asyncio.create_task(pushes.serve(alice, {"notifications/x"}, None, None, receive, send))
        await waiting.wait()
        notify = pushes.sender(alice)
        for number in range(5_000):
            await notify("notifications/x", {"number": number})
        (channel,) = pushes._channels.values()
        (stream,) = channel.streams
        assert len(stream.pushes) <= 1_000
        assert stream.full
        blocked.set()
        await serving
        assert not pushes._channels

    asyncio.run(attack())
