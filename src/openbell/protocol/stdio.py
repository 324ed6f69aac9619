"""The stdio transport: one JSON-RPC message per line, without a thread between the pipe and the server.

A line that is not a message gets a JSON-RPC error, and the server continues. A notification never gets a reply. Only
protocol messages are written to standard output; anything else that the process prints goes to standard error. When the
input ends, the server answers the open requests before it stops.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from openbell.protocol.replies import Replies
from openbell.protocol.sdk import Server, SessionMessage, types

log = logging.getLogger(__name__)

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
LONGEST_LINE = 8 * 1024 * 1024
_CHUNK = 256 * 1024
_ID = rb'"id"\s*:\s*(?P<id>"[^"\\]{0,200}"|-?\d{1,15})\s*'
_HEAD = re.compile(rb'\s*\{(\s*"(jsonrpc|method)"\s*:\s*"[^"\\]{0,200}"\s*,)*\s*' + _ID + b",")
"""The beginning of a message up to its id."""
_TAIL = re.compile(rb",\s*" + _ID + rb"\}\s*\Z")
"""The end of a message from its id on; the brace after the id closes the message."""
_TAIL_BYTES = 1024
_FINISH_S = 60.0
"""Seconds in which open requests must finish after the input has ended."""
_STOP_S = 5.0
"""The same after `stop` was set; also the seconds in which the last output must be read by the client."""


async def serve(server: Server[Any], stop: asyncio.Event, replies: Replies) -> None:
    """Serve one client on standard input and output until the input ends or `stop` is set, which counts as its end.

    Raises `OSError` if the output cannot be written for another reason than a client that has closed it.
    """
    source, sink = _claim_standard_streams()
    async with _reader(source, stop) as read, _writer(sink) as write:
        pending = _Pending(stop)
        output = _Output(write, pending, replies, stop)
        await server.run(_Input(read, output, pending), output, server.create_initialization_options())
    if output.failure is not None:
        raise output.failure


def _claim_standard_streams() -> tuple[int, int]:
    """Reserve both pipes for the protocol: other reads return the end of input, other prints go to standard error."""
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return source, sink


def _can_wait(fd: int) -> bool:
    """Returns True if the event loop can wait for the descriptor: pipes, sockets and terminals, not files."""
    mode = os.fstat(fd).st_mode
    return os.name != "nt" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd))


@asynccontextmanager
async def _reader(fd: int, stop: asyncio.Event) -> AsyncIterator[Any]:
    """Yields a coroutine function that reads bytes; a file is read in a thread."""
    if not _can_wait(fd):

        async def read_file() -> bytes:
            return b"" if stop.is_set() else await asyncio.to_thread(os.read, fd, _CHUNK)

        yield read_file
        return
    loop = asyncio.get_running_loop()
    stream = asyncio.StreamReader(limit=_CHUNK)
    file = os.fdopen(os.dup(fd), "rb", 0)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stream), file)

    async def end() -> None:
        await stop.wait()
        stream.feed_eof()

    ending = asyncio.create_task(end())
    try:
        yield lambda: stream.read(_CHUNK)
    finally:
        ending.cancel()
        transport.close()
        os.set_blocking(fd, True)  # the shell shares the terminal and expects it to block


@asynccontextmanager
async def _writer(fd: int) -> AsyncIterator[Any]:
    """Yields a coroutine function that writes bytes; it waits while the client does not read."""
    if not _can_wait(fd):

        async def write_all(data: bytes) -> None:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]

        yield write_all
        return
    loop = asyncio.get_running_loop()
    file = os.fdopen(os.dup(fd), "wb", 0)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, file)
    stream = asyncio.StreamWriter(transport, protocol, None, loop)

    async def write(data: bytes) -> None:
        stream.write(data)
        await stream.drain()

    try:
        yield write
    finally:
        # Flush the buffer to the client before the pipe closes.
        deadline = loop.time() + _STOP_S
        while not transport.is_closing() and transport.get_write_buffer_size() and loop.time() < deadline:
            await asyncio.sleep(0.005)
        if not transport.is_closing():  # a client that has closed its end has closed it already
            transport.abort()
        os.set_blocking(fd, True)


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


class _Output:
    """The SDK's write stream: writes each message as a line."""

    def __init__(self, write: Any, pending: _Pending, replies: Replies, stop: asyncio.Event) -> None:
        self._write = write
        self._pending = pending
        self._replies = replies
        self._stop = stop
        self.failure: OSError | None = None
        """Why the output cannot be written, such as a full disk; the server stops then."""

    async def send(self, item: SessionMessage, /) -> None:
        message = item.message
        answered = message.id if isinstance(message, types.JSONRPCResponse | types.JSONRPCError) else None
        try:
            await self._write(_line(message))
            await self._replies.sent(answered)
        except (BrokenPipeError, ConnectionResetError):
            self._replies.discard(answered)
            if isinstance(message, types.JSONRPCNotification):
                raise  # the sender of a notification must see that it was not sent; no code waits for a response
        except OSError as error:
            self._replies.discard(answered)
            self._fail(error)
        finally:
            self._pending.end(answered)

    async def refuse(self, code: int, message: str, request: Any = None) -> None:
        """Write an error response. Its id is null if an unanswered request has the same id."""
        if self._pending.uses(request):
            message = f"{message}; the id {json.dumps(request)} is in use by a request that is not yet answered"
            request = None
        error = {"jsonrpc": "2.0", "id": request, "error": {"code": code, "message": message}}
        try:
            await self._write(to_json(error) + b"\n")
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

    async def _refuse_long(self, head: bytes, tail: bytes) -> None:
        """Answer a line that is too long, with its id if that is found at its beginning or end."""
        found = _HEAD.match(head[:_TAIL_BYTES]) or _TAIL.search(tail[-_TAIL_BYTES:])
        text = f"Invalid Request: longer than {LONGEST_LINE} bytes"
        await self._output.refuse(INVALID_REQUEST, text, json.loads(found["id"]) if found else None)

    async def receive(self) -> SessionMessage:
        """Returns the next message."""
        async for line in self._lines:
            if line.strip() and (message := await self._message(line)) is not None:
                return SessionMessage(message)
        await self._pending.wait_until_answered()
        raise StopAsyncIteration

    async def _message(self, line: bytes) -> types.JSONRPCMessage | None:
        """Returns the message in a line, or None if the line was answered with an error."""
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError:
            await self._explain(line)
            return None
        if isinstance(message, types.JSONRPCNotification) and "id" in from_json(line):
            # The SDK's types accept a request with an invalid id as a notification, which would get no reply.
            await self._explain(line)
            return None
        if isinstance(message, types.JSONRPCRequest):
            if self._pending.uses(message.id):
                await self._output.refuse(INVALID_REQUEST, "Invalid Request: not processed", message.id)
                return None
            self._pending.begin(message.id)
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            # A cancelled request gets no response.
            self._pending.end((message.params or {}).get("requestId"))
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
        text = "Invalid Request: a string with half a surrogate pair, a number that is too long, or too deep nesting"
        await self._output.refuse(INVALID_REQUEST, text, json.loads(head["id"]))

    async def _explain(self, line: bytes) -> None:
        """Answer a line that is not a message with an error that names the reason."""
        try:
            value = from_json(line)
        except ValueError:
            await self._refuse_unread(line)
            return
        if isinstance(value, list):
            await self._output.refuse(INVALID_REQUEST, "Invalid Request: batches are not part of this protocol")
            return
        if isinstance(value, dict) and "method" in value and "id" not in value:
            # It was meant as a notification, and notifications never get a reply.
            log.warning("dropped a malformed notification")
            return
        given = value.get("id") if isinstance(value, dict) else None
        request = given if isinstance(given, str | int) and not isinstance(given, bool) else None
        await self._output.refuse(INVALID_REQUEST, "Invalid Request: not a JSON-RPC 2.0 message", request)

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
