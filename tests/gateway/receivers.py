"""An HTTP server on loopback that receives requests and answers as planned: in time, late, too much, or not at all."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

Answering = Callable[["asyncio.StreamWriter"], Awaitable[None]]


@dataclass(frozen=True)
class Seen:
    """A request that arrived whole."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    server_name: str | None = None

    def json(self) -> Any:
        """The body, parsed."""
        return json.loads(self.body)


@dataclass
class Receiver:
    """Use as a context manager. `plan` holds the answers of the next requests; all others get 204."""

    host: str = "127.0.0.1"
    tls: ssl.SSLContext | None = None
    plan: deque[Answering] = field(default_factory=deque)
    otherwise: Answering | None = None
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    port: int = 0

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._serving: dict[asyncio.Task[Any], asyncio.StreamWriter] = {}
        self._names: dict[object, str | None] = {}
        if self.tls:
            self.tls.sni_callback = lambda connection, name, _: self._names.__setitem__(connection, name)
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        starting = asyncio.start_server(self._serve, self.host, self.port, ssl=self.tls)
        self._server = asyncio.run_coroutine_threadsafe(starting, self._loop).result(10)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    @property
    def url(self) -> str:
        """Its origin."""
        return f"{'https' if self.tls else 'http'}://{self.host}:{self.port}"

    async def _stop(self) -> None:
        self._server.close()
        for _ in range(5):  # connections that were accepted just now get their tasks
            await asyncio.sleep(0)
        for task, writer in self._serving.items():
            task.cancel()
            writer.transport.abort()
        await asyncio.gather(*self._serving, return_exceptions=True)
        for _ in range(5):  # transports close their sockets
            await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task
        self._serving[task] = writer  # asyncio itself keeps no task that waits for nothing alive
        with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError, asyncio.CancelledError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, path, _ = head[0].split(" ")
            pairs = (line.split(": ", 1) for line in head[1:] if line)
            headers = {name.lower(): value for name, value in pairs}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            name = self._names.get(writer.get_extra_info("ssl_object"))
            self.seen.append(Seen(method, path, headers, body, name))
            answer = self.plan.popleft() if self.plan else self.otherwise or status(204)
            await answer(writer)
        writer.close()


def status(code: int, body: bytes = b"", **headers: str) -> Answering:
    """A complete answer."""
    extra = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    length = "" if code == 204 else f"content-length: {len(body)}\r\n"
    return _raw(f"HTTP/1.1 {code} x\r\n{length}{extra}connection: close\r\n\r\n".encode() + body)


def hang_up() -> Answering:
    """The connection is closed without an answer."""
    return _raw(b"")


def half_a_body() -> Answering:
    """The connection is closed in the middle of the body."""
    return _raw(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nhalf")


def garbage() -> Answering:
    """An answer that is not HTTP."""
    return _raw(b"\x00\x01SSH-2.0-OpenSSH\r\n\r\n")


def silence() -> Answering:
    """No answer; the connection stays open."""

    async def answer(_: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    return answer


def endless_body() -> Answering:
    """A body that never ends, as fast as it is read."""
    return _endless(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n", b"x" * 65_536)


def endless_head() -> Answering:
    """Headers that never end."""
    return _endless(b"HTTP/1.1 200 OK\r\n", b"x-more: " + b"y" * 1_000 + b"\r\n")


def endless_interim_answers() -> Answering:
    """Status 103 again and again, never a final one."""
    return _endless(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n")


def dripping_body() -> Answering:
    """A byte at a time, each well within a read timeout."""
    return _endless(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n", b"x", pause=0.01)


def _raw(data: bytes) -> Answering:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()

    return answer


def _endless(first: bytes, then: bytes, pause: float = 0) -> Answering:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        while True:
            writer.write(then)
            await writer.drain()
            await asyncio.sleep(pause)

    return answer
