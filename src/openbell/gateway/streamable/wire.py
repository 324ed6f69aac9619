"""The bytes of the transport: media types, JSON-RPC messages, event frames and whole responses."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic_core import to_json
from starlette import types as asgi

from openbell.gateway.guard.headers import RequestHeaders

Scope = asgi.Scope
Receive = asgi.Receive
Send = asgi.Send
Message = asgi.Message
Headers = tuple[tuple[bytes, bytes], ...]

JSON = b"application/json"
EVENTS = b"text/event-stream"
VERSION = b"mcp-protocol-version"
LAST_EVENT = b"last-event-id"
EVENT_HEADERS = (
    (b"content-type", EVENTS),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
KEEP_ALIVE = b": keep-alive\n\n"


def accepts(headers: RequestHeaders, wanted: bytes, *, missing: bool) -> bool:
    """Returns True if the Accept headers allow a media type; `missing` is the result without such a header."""
    given = headers.all(b"accept")
    return _allows(b",".join(given), wanted) if given else missing


@lru_cache(maxsize=64)  # a client sends the same with each request
def _allows(given: bytes, wanted: bytes) -> bool:
    """Returns True if a value of Accept allows a media type.

    The most specific range decides: "application/json;q=0, */*" excludes JSON.
    """
    ranges: dict[bytes, bool] = {}
    for part in given.lower().split(b","):
        kind, *parameters = (each.strip() for each in part.split(b";"))
        ranges[kind] = ranges.get(kind, False) or not any(_is_zero(each) for each in parameters)
    group = wanted.partition(b"/")[0] + b"/*"
    return next((ranges[kind] for kind in (wanted, group, b"*/*") if kind in ranges), False)


def _is_zero(parameter: bytes) -> bool:
    """Returns True for q=0, which excludes a media type."""
    name, _, value = parameter.partition(b"=")
    return name.strip() == b"q" and value.strip(b" 0.") == b"" and value.strip() != b""


def response(request: Any, result: Any) -> bytes:
    """Returns a JSON-RPC response."""
    return to_json({"jsonrpc": "2.0", "id": request, "result": result}, inf_nan_mode="null")


def tool_response(request: Any, result: dict[str, Any]) -> bytes:
    """Returns the response to a call of a tool whose first text block is its structured content as JSON.

    That JSON is written once, because it takes most of the time of a large result.
    """
    if "structuredContent" not in result:
        return response(request, result)
    before = {name: value for name, value in result.items() if name not in {"structuredContent", "resultType"}}
    payload = next(block["text"] for block in result["content"] if block["type"] == "text").encode()
    kind = result.get("resultType")
    after = b"" if kind is None else b',"resultType":%s' % to_json(kind)
    return b'%s,"structuredContent":%s%s}}' % (response(request, before)[:-2], payload, after)


def error(request: Any, code: int, message: str, data: Any = None) -> bytes:
    """Returns a JSON-RPC error response."""
    body = {"code": code, "message": message, **({} if data is None else {"data": data})}
    return to_json({"jsonrpc": "2.0", "id": request, "error": body}, inf_nan_mode="null")


def notification(method: str, params: Mapping[str, Any] | None) -> bytes:
    """Returns a JSON-RPC notification."""
    body = {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": dict(params)})}
    return to_json(body, inf_nan_mode="null")


def request(number: str, method: str, params: Mapping[str, Any] | None) -> bytes:
    """Returns a JSON-RPC request."""
    body = {"jsonrpc": "2.0", "id": number, "method": method, **({} if params is None else {"params": dict(params)})}
    return to_json(body, inf_nan_mode="null")


def event(message: bytes, number: str | None = None) -> bytes:
    """Returns a message as an event; JSON has no line breaks."""
    head = b"" if number is None else b"id: %s\n" % number.encode()
    return b"%sevent: message\ndata: %s\n\n" % (head, message)


def priming_event(number: str, retry_ms: int = 1000) -> bytes:
    """Returns the first event of a stream that can be resumed: it has an id and no message."""
    return b"id: %s\nretry: %d\ndata: \n\n" % (number.encode(), retry_ms)


async def answer(send: Send, status: int, body: bytes = b"", headers: Headers = (), kind: bytes = JSON) -> None:
    """Send a whole response."""
    length = (b"content-length", b"%d" % len(body))
    content = ((b"content-type", kind), length) if body else (length,)
    await send({"type": "http.response.start", "status": status, "headers": [*content, *headers]})
    await send({"type": "http.response.body", "body": body})


async def begin_events(send: Send) -> None:
    """Begin a response that is a stream of events."""
    await send({"type": "http.response.start", "status": 200, "headers": [*EVENT_HEADERS]})


async def part(send: Send, body: bytes, *, last: bool = False) -> None:
    """Send a part of a stream."""
    await send({"type": "http.response.body", "body": body, "more_body": not last})


async def read_body(receive: Receive) -> bytes | None:
    """Returns the body of a request; None if the client disconnects before its end."""
    parts = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts) if len(parts) > 1 else parts[0]


async def disconnected(receive: Receive) -> None:
    """Wait until the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass
