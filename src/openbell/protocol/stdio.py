"""The stdio transport: one JSON-RPC message per line, without a thread between the pipe and the server.

A line that is not a message gets a JSON-RPC error, and the server continues. A notification never gets a reply. Only
protocol messages are written to standard output; anything else that the process prints goes to standard error. When the
input ends, the server answers the open requests before it stops. A client may leave the handshake out: if its first request
is not `initialize`, the server handles one of its own before it, whose response is not written.

Clients of revision 2025-03-26 may send a batch: its messages are handled like any others, and its responses are written
together, as one array, after the last of them is known.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcp_types import PROTOCOL_VERSION_META_KEY
from pydantic import ValidationError
from pydantic_core import to_json

from openbell.protocol.argument_limits import MOST_VALUES, Size, size_of, wrong_batch
from openbell.protocol.json_text import parse
from openbell.protocol.pipes import claim_standard_streams, reader, writer
from openbell.protocol.sdk import Server, SessionMessage, types
from openbell.protocol.session import Replies

log = logging.getLogger(__name__)

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
LONGEST_LINE = 8 * 1024 * 1024
_ID = rb'"id"\s*:\s*(?P<id>"[^"\\]{0,200}"|-?\d{1,15})\s*'
_HEAD = re.compile(rb'\s*\{(\s*"(jsonrpc|method)"\s*:\s*"[^"\\]{0,200}"\s*,)*\s*' + _ID + b",")
"""The beginning of a message up to its id."""
_TAIL = re.compile(rb",\s*" + _ID + rb"\}\s*\Z")
"""The end of a message from its id on; the brace after the id closes the message."""
_TAIL_BYTES = 1024
_ASSUMED_REVISION = "2025-06-18"
"""The revision that a client without a handshake gets."""
_ASSUMED_ID = f"openbell:{secrets.token_hex(16)}"
"""The id of the handshake that the server handles itself: no client can guess it."""
_FINISH_S = 60.0
"""Seconds in which open requests must finish after the input has ended."""
_STOP_S = 5.0
"""The same after `stop` was set."""


async def serve(server: Server[Any], stop: asyncio.Event, replies: Replies) -> None:
    """Serve one client on standard input and output until the input ends or `stop` is set, which counts as its end.

    Raises `OSError` if the output cannot be written for another reason than a client that has closed it.
    """
    source, sink = claim_standard_streams()
    async with reader(source, stop) as read, writer(sink) as write:
        pending = _Pending(stop)
        output = _Output(write, pending, replies, stop)
        await server.run(_Input(read, output, pending), output, server.create_initialization_options())
    if output.failure is not None:
        raise output.failure


class _Pending:
    """Requests that have been read and not yet answered."""

    def __init__(self, stop: asyncio.Event) -> None:
        self._stop = stop
        self._ids: set[tuple[str, Any]] = set()
        self._none = asyncio.Event()
        self._none.set()

    def begin(self, request: types.RequestId) -> None:
        """Add a request."""
        self._ids.add((type(request).__name__, request))
        self._none.clear()

    def uses(self, request: Any) -> bool:
        """Returns True if an unanswered request has this id."""
        return isinstance(request, str | int) and (type(request).__name__, request) in self._ids

    def end(self, request: Any) -> None:
        if not isinstance(request, str | int):
            return
        self._ids.discard((type(request).__name__, request))
        if not self._ids:
            self._none.set()

    async def wait_until_answered(self) -> None:
        try:
            await asyncio.wait_for(self._none.wait(), _STOP_S if self._stop.is_set() else _FINISH_S)
        except TimeoutError:
            return


def _line(message: types.JSONRPCMessage) -> bytes:
    """Returns a message as a line of JSON."""
    if isinstance(message, types.JSONRPCResponse):  # a third faster than the model's own method, for the same bytes
        response = {"jsonrpc": message.jsonrpc, "id": message.id, "result": message.result}
        return to_json(response, inf_nan_mode="null") + b"\n"
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"


@dataclass(slots=True)
class _Batch:
    """The responses of a batch that are known so far."""

    waiting: set[types.RequestId] = field(default_factory=set)
    """The ids of its requests that have no response yet."""
    bodies: list[bytes] = field(default_factory=list)
    answered: list[types.RequestId] = field(default_factory=list)
    """The ids of the requests whose responses are among `bodies`."""


class _Output:
    """The SDK's write stream: writes each message as a line."""

    def __init__(self, write: Any, pending: _Pending, replies: Replies, stop: asyncio.Event) -> None:
        self._write = write
        self._pending = pending
        self._replies = replies
        self._stop = stop
        self._batches: list[_Batch] = []
        self.failure: OSError | None = None
        """Why the output cannot be written, such as a full disk; the server stops then."""

    async def send(self, item: SessionMessage, /) -> None:
        message = item.message
        if isinstance(message, types.JSONRPCResponse) and message.id == _ASSUMED_ID:
            return
        answered = message.id if isinstance(message, types.JSONRPCResponse | types.JSONRPCError) else None
        batch = next((each for each in self._batches if answered in each.waiting), None)
        try:
            if batch is None or answered is None:
                await self._write_line(_line(message), [answered])
            else:
                batch.bodies.append(_line(message).rstrip(b"\n"))
                batch.answered.append(answered)
                await self.settle(answered)
        except (BrokenPipeError, ConnectionResetError):
            if isinstance(message, types.JSONRPCNotification):
                raise  # the sender of a notification must see that it was not sent; no code waits for a response
        finally:
            self._pending.end(answered)

    async def expect(self, batch: _Batch) -> None:
        """Hold the responses of a batch until the last of them is known."""
        self._batches.append(batch)
        await self.settle(None)

    async def settle(self, request: types.RequestId | None) -> None:
        """Note that a request of a batch waits no longer; one that was cancelled gets no response."""
        for batch in self._batches:
            batch.waiting -= {request}
        for batch in [each for each in self._batches if not each.waiting]:
            self._batches.remove(batch)
            if batch.bodies:
                await self._write_line(b"[%s]\n" % b",".join(batch.bodies), batch.answered)

    async def _write_line(self, line: bytes, answered: Sequence[types.RequestId | None]) -> None:
        """Write a line with the responses of some requests. Raises `OSError` if the client reads no more."""
        try:
            await self._write(line)
        except OSError as error:
            for each in answered:
                self._replies.discard(each)
            if isinstance(error, BrokenPipeError | ConnectionResetError):
                raise
            self._fail(error)
            return
        for each in answered:
            await self._replies.sent(each)

    async def refuse(self, code: int, message: str, request: Any = None, batch: _Batch | None = None) -> None:
        """Write an error response, or add it to a batch's. Its id is null if an unanswered request has the same id."""
        if self._pending.uses(request):
            message = f"{message}; the id {json.dumps(request)} is in use by a request that is not yet answered"
            request = None
        error = to_json({"jsonrpc": "2.0", "id": request, "error": {"code": code, "message": message}})
        if batch is not None:
            batch.bodies.append(error)
            return
        try:
            await self._write(error + b"\n")
        except (BrokenPipeError, ConnectionResetError):
            return
        except OSError as failure:
            self._fail(failure)

    def _fail(self, error: OSError) -> None:
        self.failure = error
        self._stop.set()

    async def aclose(self) -> None:
        """Does nothing: the pipe closes with the process."""

    async def __aenter__(self) -> _Output:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class _Input:
    """The SDK's read stream: returns the lines that are messages and answers the others."""

    def __init__(self, read: Any, output: _Output, pending: _Pending) -> None:
        self._read = read
        self._output = output
        self._pending = pending
        self._lines = self._split()
        self._opened = False
        """True after `initialize`, and for clients of a revision without one."""
        self._held: types.JSONRPCMessage | None = None
        """The first request of a client that has left out the handshake, until that is done."""
        self._revision = ""
        """The revision that the client has asked for in its last handshake."""
        self._batched: deque[types.JSONRPCMessage] = deque()
        """Messages of a batch that were not returned yet."""

    async def _split(self) -> AsyncIterator[bytes]:
        """Yields lines of bounded length; a longer line is skipped and answered with an error."""
        buffer = bytearray()
        head: bytes | None = None  # the beginning of a line that is too long
        while chunk := await self._read():
            buffer += chunk
            while (end := buffer.find(b"\n")) >= 0:
                line = bytes(buffer[:end])
                del buffer[: end + 1]
                if head is not None or len(line) > LONGEST_LINE:
                    await self._refuse_long(line if head is None else head, line)
                    head = None
                else:
                    yield line
            if len(buffer) > LONGEST_LINE:
                head = bytes(buffer[:_TAIL_BYTES]) if head is None else head
            if head is not None:
                del buffer[:-_TAIL_BYTES]
        if head is not None:
            await self._refuse_long(head, bytes(buffer))
        elif buffer:
            yield bytes(buffer)

    async def _refuse_long(self, head: bytes, tail: bytes, why: str = f"longer than {LONGEST_LINE} bytes") -> None:
        """Answer a line that is too long, with its id if that is found at its beginning or end."""
        found = _HEAD.match(head[:_TAIL_BYTES]) or _TAIL.search(tail[-_TAIL_BYTES:])
        number = json.loads(found["id"]) if found else None
        await self._output.refuse(INVALID_REQUEST, f"Invalid Request: {why}", number)

    async def receive(self) -> SessionMessage:
        """Returns the next message."""
        if self._held is not None:
            held, self._held = self._held, None
            return SessionMessage(held)
        while not self._batched:
            try:
                line = await anext(self._lines)
            except StopAsyncIteration:
                break
            if line.strip():
                await self._take(line)
        if self._batched:
            return SessionMessage(self._after_handshake(self._batched.popleft()))
        await self._pending.wait_until_answered()
        raise StopAsyncIteration

    def _after_handshake(self, message: types.JSONRPCMessage) -> types.JSONRPCMessage:
        """Returns the message, or a handshake that must come before it."""
        if not isinstance(message, types.JSONRPCRequest) or message.method == "ping":
            return message
        if begins := message.method == "initialize":
            self._revision = str((message.params or {}).get("protocolVersion"))
        envelope = (message.params or {}).get("_meta")
        opened, self._opened = self._opened, True
        if opened or begins or (isinstance(envelope, dict) and PROTOCOL_VERSION_META_KEY in envelope):
            return message
        self._held = message
        client = {"name": "unknown", "version": "0"}
        params = {"protocolVersion": _ASSUMED_REVISION, "capabilities": {}, "clientInfo": client}
        return types.JSONRPCRequest(jsonrpc="2.0", id=_ASSUMED_ID, method="initialize", params=params)

    async def _take(self, line: bytes) -> None:
        """Take the messages in a line; what is none is answered with an error."""
        size = size_of(line)
        if size is Size.TOO_LARGE:
            await self._refuse_long(line, line, f"more than {MOST_VALUES} values")
            return
        try:
            value = parse(line, nan=True) if size is Size.QUICK else await asyncio.to_thread(parse, line, nan=True)
        except ValueError:
            await self._refuse_unread(line)
            return
        if not isinstance(value, list):
            self._batched.extend(filter(None, [await self._message(value)]))
        elif refusal := wrong_batch(value, self._revision):
            await self._output.refuse(INVALID_REQUEST, refusal)
        else:
            batch = _Batch()
            found = [each for part in value if (each := await self._message(part, batch)) is not None]
            requests = [each.id for each in found if isinstance(each, types.JSONRPCRequest)]
            batch.waiting |= {
                each for each in requests if self._pending.uses(each)
            }  # not what the batch itself cancels
            await self._output.expect(batch)
            self._batched.extend(found)

    async def _message(self, value: Any, batch: _Batch | None = None) -> types.JSONRPCMessage | None:
        """Returns JSON as a message, alone or of a batch; None if it was answered with an error."""
        try:
            message = types.jsonrpc_message_adapter.validate_python(value, by_name=False)
        except ValidationError:
            await self._explain(value, batch)
            return None
        if isinstance(message, types.JSONRPCNotification) and "id" in value:
            # The SDK's types accept a request with an invalid id as a notification, which would get no reply.
            await self._explain(value, batch)
            return None
        if isinstance(message, types.JSONRPCRequest):
            if self._pending.uses(message.id):
                await self._output.refuse(INVALID_REQUEST, "Invalid Request: not processed", message.id, batch)
                return None
            self._pending.begin(message.id)
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            # A cancelled request gets no response.
            cancelled = (message.params or {}).get("requestId")
            self._pending.end(cancelled)
            if isinstance(cancelled, str | int):
                await self._output.settle(cancelled)
        return message

    async def _refuse_unread(self, line: bytes) -> None:
        """Answer a line that the parser cannot read, with its id if the line is JSON that only this parser refuses."""
        head = _HEAD.match(line)
        try:
            # Numbers stay strings, because Python refuses to parse an integer of thousands of digits.
            json.loads(line, parse_int=str)
        except RecursionError:
            pass
        except ValueError:
            head = None
        if head is None:
            await self._output.refuse(PARSE_ERROR, "Parse error: not JSON")
            return
        text = (
            "Invalid Request: half a surrogate pair, a number over 4,300 digits, a key given twice, or too deep nesting"
        )
        await self._output.refuse(INVALID_REQUEST, text, json.loads(head["id"]))

    async def _explain(self, value: Any, batch: _Batch | None) -> None:
        """Answer JSON that is not a message with an error that names the reason."""
        if isinstance(value, dict) and "method" in value and "id" not in value:
            # It was meant as a notification, and notifications never get a reply.
            log.warning("dropped a malformed notification")
            return
        given = value.get("id") if isinstance(value, dict) else None
        request = given if isinstance(given, str | int) and not isinstance(given, bool) else None
        await self._output.refuse(INVALID_REQUEST, "Invalid Request: not a JSON-RPC 2.0 message", request, batch)

    async def aclose(self) -> None:
        """Does nothing: the reader closes itself."""

    def __aiter__(self) -> _Input:
        return self

    async def __anext__(self) -> SessionMessage:
        return await self.receive()

    async def __aenter__(self) -> _Input:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
