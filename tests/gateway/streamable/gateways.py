"""Gateways as clients see them: `openbell up` as a process, or the same application in a thread, and a client of them."""

from __future__ import annotations

import asyncio
import http.client
import json
import queue
import signal
import socket
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Connection

from openbell.desk.desk import Desk
from openbell.desk.settings import load
from openbell.desk.settings.access import make_access
from openbell.gateway.app import Gateway
from openbell.gateway.oauth.secret_texts import STATIC, digest, new_secret
from openbell.gateway.serving import bind, serving
from openbell.stores.access import static_tokens
from openbell.stores.access.static_tokens import StaticToken
from tests.client import OPENBELL, PATIENCE, environment
from tests.gateway.guard.serving import Answer, read
from tests.prefork import Process

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
BOTH = "application/json, text/event-stream"
UNLIMITED = {"RATE_READ": "0", "RATE_WRITE": "0", "RATE_TRADE": "0", "RATE_ADMIN": "0"}
TOKENS = {
    "alice": ("alice", "read,trade"),
    "bob": ("bob", "read,trade"),
    "reader": ("alice", "read"),
    "writer": ("alice", "read,write"),
    "keeper": ("alice", "admin"),
}
"""Subject and scopes of each token."""


def add_tokens(home: Path, tokens: Mapping[str, tuple[str, str]] = TOKENS, database: str = "") -> dict[str, str]:
    """Adds tokens to the store of a home, as `openbell token add` does; returns them by name."""

    async def work() -> dict[str, str]:
        store = make_access(load({"OPENBELL_HOME": str(home), "OPENBELL_DATABASE_URL": database}))
        made = {}
        try:
            for name, (subject, scopes) in tokens.items():
                made[name] = new_secret(STATIC)
                allowed = frozenset(scopes.split(",")) - {""}
                token = StaticToken(name, subject, allowed, digest(made[name]), 1.0, None)
                await store.write(partial(_add, token))
        finally:
            await store.close()
        return made

    return asyncio.run(work())


def _add(token: StaticToken, connection: Connection) -> None:
    static_tokens.add(connection, token)


def message(method: str, params: Any = None, number: Any = 1) -> dict[str, Any]:
    """A JSON-RPC request."""
    return {"jsonrpc": "2.0", "id": number, "method": method, **({} if params is None else {"params": params})}


def notification(method: str, params: Any = None) -> dict[str, Any]:
    """A JSON-RPC notification."""
    return {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})}


def modern(method: str, params: Mapping[str, Any] | None = None, number: Any = 1) -> dict[str, Any]:
    """A JSON-RPC request of the revision without handshake."""
    meta = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}}
    return message(method, {**(params or {}), "_meta": meta}, number)


def modern_headers(method: str, name: str | None = None) -> dict[str, str]:
    """The headers of a request of the revision without handshake."""
    named = {} if name is None else {"Mcp-Name": name}
    return {"Accept": BOTH, "MCP-Protocol-Version": MODERN, "Mcp-Method": method, **named}


class Stream:
    """An open stream of events. Use as a context manager."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection
        self._response = connection.getresponse()
        self.status = self._response.status
        self.headers = {name.lower(): value for name, value in self._response.getheaders()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._response.close()
        self._connection.close()

    def frame(self) -> dict[str, str] | None:
        """The fields of the next event or comment (`:`); None at the end of the stream."""
        fields: dict[str, str] = {}
        while line := self._response.readline().decode():
            if line == "\n":
                return fields
            name, _, value = line.rstrip("\n").partition(":")
            fields[name or ":"] = value.removeprefix(" ")
        return None

    def event(self) -> dict[str, str]:
        """The next event with a message; comments and priming events are skipped."""
        deadline = time.monotonic() + PATIENCE / 2  # comments keep the connection alive
        while (found := self.frame()) is not None:
            if found.get("data"):
                return found
            assert time.monotonic() < deadline, "no event has come"
        raise AssertionError("the stream has ended")

    def message(self) -> dict[str, Any]:
        """The next message."""
        found: dict[str, Any] = json.loads(self.event()["data"])
        return found

    def rest(self) -> list[dict[str, Any]]:
        """The messages until the end of the stream."""
        found = []
        while (frame := self.frame()) is not None:
            if frame.get("data"):
                found.append(json.loads(frame["data"]))
        return found


class Client:
    """Requests to a gateway at a port of this machine."""

    def __init__(self, port: int, tokens: Mapping[str, str]) -> None:
        self.port = port
        self.tokens = dict(tokens)
        self.host = f"127.0.0.1:{port}"

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def send(self, data: bytes) -> Answer:
        """The answer to some bytes, on a connection of their own."""
        with self.connect() as connection:
            connection.sendall(data)
            return read(connection)

    def bytes_of(
        self, method: str, path: str, body: bytes | None = None, who: str | None = "alice", **headers: str | None
    ) -> bytes:
        """A request. `who` names the token; headers are named with underscores, and None leaves one out."""
        named: dict[str, str | None] = {"Host": self.host}
        if who is not None:
            named["Authorization"] = f"Bearer {self.tokens[who]}"
        if body is not None:
            named |= {"Content-Length": str(len(body)), "Content-Type": "application/json", "Accept": BOTH}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [f"{name}: {value}" for name, value in named.items() if value is not None]
        return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode("latin-1") + (body or b"")

    def request(self, method: str, path: str = "/mcp", who: str | None = "alice", **headers: str | None) -> Answer:
        """The answer to a request without a body."""
        return self.send(self.bytes_of(method, path, None, who, **headers))

    def post(self, body: Any, who: str | None = "alice", path: str = "/mcp", **headers: Any) -> Answer:
        """The answer to a message; bytes are sent as they are."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.send(self.bytes_of("POST", path, data, who, **headers))

    def call(self, tool: str, who: str = "alice", path: str = "/mcp", **arguments: Any) -> dict[str, Any]:
        """The result of a tool."""
        answer = self.post(message("tools/call", {"name": tool, "arguments": arguments}), who, path)
        assert answer.status == 200 and "result" in answer.json, (answer.status, answer.body)
        found: dict[str, Any] = answer.json["result"]
        return found

    def ask(self, tool: str, who: str = "alice", path: str = "/mcp", **arguments: Any) -> Any:
        """The payload of a tool that succeeds."""
        found = self.call(tool, who, path, **arguments)
        assert found["isError"] is False, found
        return found["structuredContent"]

    def _authorization(self, who: str | None) -> dict[str, str]:
        return {} if who is None else {"Authorization": f"Bearer {self.tokens[who]}"}

    def stream(self, who: str | None = "alice", path: str = "/mcp", **headers: str) -> Stream:
        """A stream of pushes."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        named = {"Accept": "text/event-stream", **self._authorization(who)}
        connection.request(
            "GET", path, headers=named | {name.replace("_", "-"): value for name, value in headers.items()}
        )
        return Stream(connection)

    def posted(self, body: Any, who: str | None = "alice", path: str = "/mcp", **headers: str) -> Stream:
        """The stream that answers a message."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        named = {"Accept": BOTH, "Content-Type": "application/json", **self._authorization(who)}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("POST", path, json.dumps(body), named)
        return Stream(connection)

    def listen(self, who: str | None = "alice", path: str = "/mcp", number: Any = 1) -> Stream:
        """The stream of subscriptions/listen, after its acknowledgement."""
        body = modern("subscriptions/listen", {"notifications": {}}, number)
        made = self.posted(body, who, path, **modern_headers("subscriptions/listen"))
        assert made.status == 200, made.status
        assert made.message()["method"] == "notifications/subscriptions/acknowledged"
        return made


class Up(Client):
    """`openbell up --port 0 --trade` as a process. Use as a context manager."""

    def __init__(
        self, home: Path, *words: str, tokens: Mapping[str, str] | None = None, port: int = 0, **settings: str
    ) -> None:
        given = {**UNLIMITED, "FEED": "sim", **settings}
        known = add_tokens(home, database=given.get("DATABASE_URL", "")) if tokens is None else tokens
        command = [*OPENBELL, "up", "--port", str(port), *(words or ("--trade",))]
        self.home = home
        self.process = Process(
            command, env=environment(home, **given), text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        self._errors: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._follow, daemon=True)
        self._reader.start()
        self.errors: list[str] = []
        super().__init__(self._bound_port(), known)

    def _follow(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self._errors.put(line)
        self._errors.put(None)

    def _bound_port(self) -> int:
        while (line := self._errors.get(timeout=PATIENCE)) is not None:
            if line.startswith("MCP over HTTP: "):
                return int(line.split()[3].removesuffix("/mcp").rpartition(":")[2])
            self.errors.append(line)
        raise AssertionError("".join(self.errors))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        if self.process.stderr:
            self.process.stderr.close()

    def stop(self) -> int:
        """End it with a signal; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def log(self) -> str:
        """Everything that it has written to standard error after its address; call it after its end."""
        self._reader.join(PATIENCE)
        while (line := self._errors.get(timeout=PATIENCE)) is not None:
            self.errors.append(line)
        return "".join(self.errors)


class Inside(Client):
    """The gateway in a thread of this process, on a real socket. Use as a context manager."""

    def __init__(
        self,
        home: Path,
        tokens: Mapping[str, tuple[str, str]] = TOKENS,
        prepare: Callable[[Gateway], None] = lambda _gateway: None,
        **settings: str,
    ) -> None:
        """`prepare` may change the gateway before it serves."""
        given = {"HOME": str(home), "FEED": "sim", "TRADE": "1", "PORT": "0", **UNLIMITED, **settings}
        self.settings = load({f"OPENBELL_{name}": value for name, value in given.items()})
        known = add_tokens(home, tokens, given.get("DATABASE_URL", ""))
        self._prepare = prepare
        self._listener = bind(self.settings)
        self._started, self._ended = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self.desk: Desk
        self.gateway: Gateway
        self.loop: asyncio.AbstractEventLoop
        super().__init__(self._listener.getsockname()[1], known)

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        async with self._desk() as self.desk, serving(self.desk, self._listener) as self.gateway:
            self._prepare(self.gateway)
            self._started.set()
            await self._ended.wait()

    @asynccontextmanager
    async def _desk(self) -> AsyncIterator[Desk]:
        desk = Desk(self.settings)
        try:
            yield desk
        finally:
            await desk.close()

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(PATIENCE)
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(PATIENCE)
        self._listener.close()
        assert not self._thread.is_alive()

    def run(self, work: Callable[[], Any]) -> Any:
        """The result of a function in the gateway's loop; a coroutine is awaited."""

        async def done() -> Any:
            found = work()
            return await found if asyncio.iscoroutine(found) else found

        return asyncio.run_coroutine_threadsafe(done(), self.loop).result(PATIENCE)
