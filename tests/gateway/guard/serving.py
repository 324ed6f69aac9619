"""A small application behind the guard, served by uvicorn on a real socket, and a client that sends bytes as they are."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from openbell.desk.settings import Settings, load
from openbell.gateway.guard.connections import TimedProtocol, server_options
from tests.waiting import PATIENCE, wait_for


@dataclass
class Answer:
    """A response."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def __getitem__(self, name: str) -> str | None:
        """The value of a header; None if it is missing."""
        found = [value for key, value in self.headers if key == name]
        assert len(found) <= 1, found
        return found[0] if found else None

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Echo:
    """Answers with what it was sent, and keeps every scope that reached it."""

    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    seen: list[Scope] = field(default_factory=list)
    bodies: list[int] = field(default_factory=list)
    cut: int = 0
    """Requests whose body ended early."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        self.seen.append(scope)
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.cut += 1
                raise RuntimeError("the client has gone")
            size += len(message.get("body", b""))
            if not message.get("more_body"):
                break
        self.bodies.append(size)
        body = json.dumps(
            {"path": scope["path"], "id": scope.get("state", {}).get("request_id"), "size": size}
        ).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *self.headers]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def settings_of(home: Path, **settings: Any) -> Settings:
    """Settings of a new home."""
    texts = {f"OPENBELL_{name.upper()}": str(value) for name, value in settings.items()}
    return load({"OPENBELL_HOME": str(home), **texts})


class Served:
    """uvicorn in a thread. Use as a context manager. `make` gets the bound port."""

    def __init__(
        self,
        make: Callable[[int], ASGIApp],
        settings: Settings,
        *,
        header_seconds: float = 10.0,
        read_seconds: float = 30.0,
        stopping_seconds: float = 2.0,
    ) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.host = f"127.0.0.1:{self.port}"
        options = server_options(settings)
        limits = {"seconds": header_seconds, "read_seconds": read_seconds, "stopping_seconds": stopping_seconds}
        options["http"] = type("Timed", (TimedProtocol,), limits)
        config = uvicorn.Config(make(self.port), lifespan="off", **options)
        self.server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        asyncio.run(self.server.serve(sockets=[self._socket]))

    def __enter__(self) -> Self:
        self._thread.start()
        wait_for(lambda: self.server.started, "uvicorn")
        return self

    def __exit__(self, *_: object) -> None:
        self.server.should_exit = True
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def send(self, data: bytes) -> Answer:
        """The answer to some bytes, on a connection of their own."""
        with self.connect() as connection:
            connection.sendall(data)
            return read(connection)

    def get(self, path: str = "/mcp", *headers: str, host: str | None = None, method: str = "GET") -> Answer:
        """The answer to a request; `host` is the Host header, the right one if left out."""
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self.host if host is None else host}", *headers]
        return self.send("\r\n".join([*lines, "", ""]).encode("latin-1"))

    def post(self, body: bytes, *headers: str, path: str = "/mcp") -> Answer:
        lines = [f"POST {path} HTTP/1.1", f"Host: {self.host}", f"Content-Length: {len(body)}", *headers, "", ""]
        return self.send("\r\n".join(lines).encode() + body)


def read(connection: socket.socket) -> Answer:
    """Read one response."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        assert more, f"the connection was closed after {data!r}"
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines[1:])]
    length = int(dict(headers).get("content-length", "-1"))
    while length < 0 or len(body) < length:
        more = connection.recv(65536)
        if not more:
            break
        body += more
    return Answer(int(lines[0].split()[1]), headers, body)


def is_closed(connection: socket.socket) -> bool:
    """Waits until the server closes the connection; what it still sends is dropped."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionResetError:
        pass
    return True
