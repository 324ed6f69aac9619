"""A quotes API on a real socket that answers as a test has planned, however wrong that is."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple, Self

Work = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Seen(NamedTuple):
    """A request that arrived."""

    target: str
    headers: dict[str, str]


def reply(status: int, body: object, kind: str = "application/json", **headers: str) -> bytes:
    """A whole response; a body that is not bytes is sent as JSON. Headers are named with underscores."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {"Content-Type": kind, "Content-Length": str(len(data)), "Connection": "close"}
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    return f"HTTP/1.1 {status} Whatever\r\n{lines}\r\n".encode() + data


def failure(status: int, code: object = None, message: object = "because", **headers: str) -> bytes:
    """An error envelope."""
    fields = {"code": code, "http_status": status, "message": message, "details": [], "trace_id": "trace-1"}
    return reply(status, {"error": fields}, **headers)


class QuotesServer:
    """The server, in a thread. Use as a context manager."""

    def __init__(self) -> None:
        self.plan: bytes | Work = b""
        """What is sent to each request: bytes, or what a function writes. The connection is closed then."""
        self.seen: list[Seen] = []
        self.port = 0
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._loop: asyncio.AbstractEventLoop
        self._end: asyncio.Event

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(30)
        assert not self._thread.is_alive()

    async def _serve(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._end.wait()
        server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
            self.seen.append(Seen(head[0].split()[1], headers))
            if isinstance(self.plan, bytes):
                writer.write(self.plan)
                await writer.drain()
            else:
                await self.plan(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client has gone
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


async def silent(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Never answers, until the client gives up."""
    await reader.read()


def forever(head: bytes, part: bytes, pause: float = 0.0) -> Work:
    """A response whose body never ends."""

    async def work(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while not writer.is_closing():
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause)

    return work


QUOTE: dict[str, Any] = {
    "ticker": "AAPL",
    "price": "225.12",
    "currency": "USD",
    "as_of": "2025-11-21T15:30:05Z",
    "volume": 15300432,
}
BAR: dict[str, Any] = {
    "ticker": "AAPL",
    "timestamp": "2025-11-21T00:00:00Z",
    "open": "1.5",
    "high": "2",
    "low": "1",
    "close": "1.75",
    "volume": "100",
    "interval": "1d",
}
LIVE: dict[str, Any] = {"data": {"items": [QUOTE]}}
PAGE: dict[str, Any] = {"page": 1, "page_size": 50, "total": 1, "items": [BAR]}
