"""Clients of the gateway as a process of their own: a JSON line in for each round, a JSON line out with what happened.

A round opens its connections, and each sends the next request when its response has arrived, until the time or the number
of calls is over. With `"streams": true`, the connections open event streams instead and stay open until the next line.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from collections import Counter
from typing import Any

SECONDS = 60.0
"""How long anything may take."""
VERSIONS = {"handshake": "2025-06-18", "modern": "2026-07-28"}
PREFIX = "io.modelcontextprotocol/"
CLIENT = {"name": "bench", "version": "1"}


class Round:
    """What all connections of a round share."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given
        self.left = given.get("calls", 10**9)
        self.until = float("inf")
        self.statuses: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.arrivals: list[float] = []
        self.connections: list[Connection] = []
        self.changed = asyncio.Event()
        self.running = 0

    def payload(self, number: int, method: str, params: dict[str, Any], session: str = "") -> bytes:
        """A whole HTTP request."""
        given, era = self.given, self.given.get("era", "handshake")
        headers = {
            "Host": f"127.0.0.1:{given['port']}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": VERSIONS[era],
        }
        if tokens := given.get("tokens"):
            headers["Authorization"] = f"Bearer {tokens[number % len(tokens)]}"
        if session:
            headers["Mcp-Session-Id"] = session
        if era == "modern":
            headers |= {"Mcp-Method": method, "Mcp-Name": params["name"]}
            meta = {f"{PREFIX}protocolVersion": VERSIONS[era], f"{PREFIX}clientInfo": CLIENT}
            params = {**params, "_meta": {**meta, f"{PREFIX}clientCapabilities": {}}}
        body = json.dumps({"jsonrpc": "2.0", "id": number + 1, "method": method, "params": params}).encode()
        return self.request("POST", {**headers, "Content-Length": str(len(body))}) + body

    def request(self, method: str, headers: dict[str, str]) -> bytes:
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"{method} {self.given['path']} HTTP/1.1\r\n{lines}\r\n".encode()

    def stream(self, number: int) -> bytes:
        """A GET that opens an event stream."""
        tokens = self.given["tokens"]
        headers = {"Host": f"127.0.0.1:{self.given['port']}", "Accept": "text/event-stream"}
        return self.request("GET", {**headers, "Authorization": f"Bearer {tokens[number % len(tokens)]}"})

    def ended(self) -> None:
        self.running -= 1
        self.changed.set()


class Connection(asyncio.Protocol):
    """One connection. Reads responses with a length, and counts events of streams."""

    def __init__(self, around: Round, number: int) -> None:
        self.round = around
        self.number = number
        self.session = ""
        self.call = b""
        self.shaking_hands = False
        self.busy = False
        self.waiting = b""
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.round.connections.append(self)

    def begin(self) -> None:
        """Send the first request."""
        given = self.round.given
        self.round.running += 1
        self.busy = True
        if given.get("streams"):
            self.transport.write(self.round.stream(self.number))
            return
        self.shaking_hands = given.get("era", "handshake") == "handshake"
        if self.shaking_hands:
            hello = {"protocolVersion": VERSIONS["handshake"], "capabilities": {}, "clientInfo": CLIENT}
            self.transport.write(self.round.payload(self.number, "initialize", hello))
        else:
            self.ready()

    def ready(self) -> None:
        """The handshake is over, if there is one."""
        given = self.round.given
        params = {"name": given.get("tool", ""), "arguments": given.get("arguments", {})}
        self.call = self.round.payload(self.number, "tools/call", params, self.session)
        self.rest()

    def rest(self) -> None:
        self.busy = False
        self.round.ended()

    def next(self) -> None:
        """Send a call, unless the round is over."""
        if self.round.left > 0 and time.perf_counter() < self.round.until:
            self.round.left -= 1
            if not self.busy:
                self.busy = True
                self.round.running += 1
            self.transport.write(self.call)
        elif self.busy:
            self.rest()

    def data_received(self, data: bytes) -> None:
        if self.round.given.get("streams"):
            self.streamed(data)
            return
        data = self.waiting + data
        end = data.find(b"\r\n\r\n")
        if end < 0:
            self.waiting = data
            return
        head = data[:end].lower()
        at = head.find(b"content-length:") + 15
        stop = head.find(b"\r\n", at)
        length = int(head[at:] if stop < 0 else head[at:stop]) if at >= 15 else -1
        if len(data) < end + 4 + length:
            self.waiting = data
            return
        self.waiting = b""
        self.answered(head, data, end + 4, length)

    def answered(self, head: bytes, data: bytes, begin: int, length: int) -> None:
        around = self.round
        status = head[9:12].decode()
        if self.shaking_hands:
            self.shaking_hands = False
            fields = dict(line.split(b": ", 1) for line in data[: begin - 4].split(b"\r\n")[1:])
            self.session = next((v.decode() for k, v in fields.items() if k.lower() == b"mcp-session-id"), "")
            around.statuses[f"handshake {status}"] += 1
            self.ready()
            return
        around.statuses[status] += 1
        if length < 0 or len(data) != begin + length:
            around.faults["not one whole response"] += 1
        elif status == "200":
            if b'"isError":true' in data or b'"result"' not in data:
                around.faults[data[begin : begin + 200].decode()] += 1
        elif status in {"429", "503"} and (b"retry-after:" not in head or b'"error"' not in data):
            around.faults[f"{status} without Retry-After"] += 1
        self.next()

    def streamed(self, data: bytes) -> None:
        if self.busy:  # the response's head
            self.round.statuses[data[9:12].decode()] += 1
            self.rest()
        for _ in range(data.count(b"event: message")):
            self.round.arrivals.append(time.monotonic())
            self.round.changed.set()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.round.given.get("over"):
            self.round.faults[f"connection lost: {error!r}"] += 1
            if self.busy:
                self.rest()


async def until(around: Round, done: Any) -> None:
    async with asyncio.timeout(SECONDS):
        while not done():
            around.changed.clear()
            await around.changed.wait()


async def opened(around: Round) -> None:
    """Open all connections, 100 at a time, and wait until each is ready."""
    loop, count, port = asyncio.get_running_loop(), around.given["clients"], around.given["port"]
    for first in range(0, count, 100):
        numbers = range(first, min(first + 100, count))
        made = [loop.create_connection(lambda n=n: Connection(around, n), "127.0.0.1", port) for n in numbers]  # type: ignore[misc]
        for found in await asyncio.gather(*made, return_exceptions=True):
            if isinstance(found, BaseException):
                around.faults[f"no connection: {found!r}"] += 1
            else:
                found[1].begin()
        await until(around, lambda: around.running == 0)


def closed(around: Round) -> None:
    around.given["over"] = True
    for each in around.connections:
        each.transport.abort() if around.given.get("abort") else each.transport.close()


async def line() -> dict[str, Any] | None:
    text = await asyncio.to_thread(sys.stdin.readline)
    return json.loads(text) if text else None


def told(**figures: Any) -> None:
    print(json.dumps(figures), flush=True)


async def streams(around: Round) -> None:
    """Hold streams; each line `{"events": n}` waits for so many, and any other ends them."""
    await opened(around)
    told(statuses=around.statuses, faults=around.faults)
    while "events" in (wanted := await line() or {}):
        try:
            await until(around, lambda: len(around.arrivals) >= wanted["events"])
        except TimeoutError:
            around.faults["events are missing"] += 1
        arrivals, around.arrivals = around.arrivals, []
        told(events=len(arrivals), first=min(arrivals, default=0), last=max(arrivals, default=0), faults=around.faults)
    closed(around)
    told(faults=around.faults)


async def calls(around: Round) -> None:
    await opened(around)
    began = time.perf_counter()
    around.until = began + around.given.get("seconds", SECONDS * 10)
    for each in around.connections:
        each.next()
    await asyncio.wait_for(until_over(around), around.given.get("seconds", SECONDS * 10) + SECONDS)
    seconds = time.perf_counter() - began
    closed(around)
    told(statuses=around.statuses, faults=around.faults, seconds=seconds)


async def until_over(around: Round) -> None:
    while around.running:
        around.changed.clear()
        await around.changed.wait()


async def main() -> None:
    while (given := await line()) is not None:
        around = Round(given)
        await (streams if given.get("streams") else calls)(around)


hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
try:
    import uvloop

    uvloop.run(main())
except ImportError:
    asyncio.run(main())
