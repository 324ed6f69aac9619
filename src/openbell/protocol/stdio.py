"""The stdio transport: one JSON-RPC message a line, without a thread between the pipe and the server.

A line that is no message gets a JSON-RPC error and the server lives on; a notification never gets a reply; only protocol
goes to standard output (whatever else prints ends up on standard error); and when the input ends, requests that are still
being worked on are answered before the server stops.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from openbell.protocol.replies import Replies
from openbell.protocol.sdk import Server, SessionMessage, types

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
LONGEST_LINE = 8 * 1024 * 1024
_CHUNK = 256 * 1024
_ID = rb'"id"\s*:\s*(?P<id>"[^"\\]{0,200}"|-?\d{1,15})\s*'
_HEAD = re.compile(rb'\s*\{(\s*"(jsonrpc|method)"\s*:\s*"[^"\\]{0,200}"\s*,)*\s*' + _ID + b",")
"""The beginning of a message up to its id."""
_TAIL = re.compile(rb",\s*" + _ID + rb"\}\s*\Z")
"""The end of a message from its id on: the one brace after it closes the message itself."""
_TAIL_BYTES = 1024
_LAST_WORDS = 60.0
"""Seconds that open requests have to finish after the input has ended."""
_FAREWELL = 5.0
"""The same after being told to stop, and for a client that no longer reads."""


async def serve(server: Server[Any], stop: asyncio.Event, replies: Replies) -> None:
    """Serve one client on standard input and output until the input ends or `stop` is set, which counts as its end."""
    source, sink = _claim_standard_streams()
    async with _reader(source, stop) as read, _writer(sink) as write:
        pending = _Pending(stop)
        output = _Output(write, pending, replies)
        await server.run(_Input(read, output, pending), output, server.create_initialization_options())


def _claim_standard_streams() -> tuple[int, int]:
    """Keep the two pipes for the protocol; stray reads see the end of input, stray prints go to standard error."""
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return source, sink


def _can_wait(fd: int) -> bool:
    """Whether the event loop can tell when the descriptor is ready: pipes, sockets and terminals, not files."""
    mode = os.fstat(fd).st_mode
    return os.name != "nt" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd))


@asynccontextmanager
async def _reader(fd: int, stop: asyncio.Event) -> AsyncIterator[Any]:
    """Something to await bytes from; a file is read in a thread."""
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
        os.set_blocking(fd, True)  # a terminal is shared with the shell, which expects it as it was


@asynccontextmanager
async def _writer(fd: int) -> AsyncIterator[Any]:
    """Something to await the writing of bytes from; it waits while the client does not read."""
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
        # Let what is buffered reach the client before the pipe closes, if it still reads.
        deadline = loop.time() + _FAREWELL
        while not transport.is_closing() and transport.get_write_buffer_size() and loop.time() < deadline:
            await asyncio.sleep(0.005)
        transport.abort()
        os.set_blocking(fd, True)


class _Pending:
    """Requests that were read and not yet answered."""

    def __init__(self, stop: asyncio.Event) -> None:
        self._stop = stop
        self._ids: set[tuple[str, Any]] = set()
        self._none = asyncio.Event()
        self._none.set()

    def begin(self, request: types.RequestId) -> None:
        """Note a request."""
        self._ids.add((type(request).__name__, request))
        self._none.clear()

    def uses(self, request: Any) -> bool:
        """Whether an unanswered request has this id."""
        return isinstance(request, str | int) and (type(request).__name__, request) in self._ids

    def end(self, request: Any) -> None:
        if not isinstance(request, str | int):
            return
        self._ids.discard((type(request).__name__, request))
        if not self._ids:
            self._none.set()

    async def settled(self) -> None:
        try:
            await asyncio.wait_for(self._none.wait(), _FAREWELL if self._stop.is_set() else _LAST_WORDS)
        except TimeoutError:
            return


class _Output:
    """The SDK's write stream: each message becomes a line."""

    def __init__(self, write: Any, pending: _Pending, replies: Replies) -> None:
        self._write = write
        self._pending = pending
        self._replies = replies

    async def send(self, item: SessionMessage, /) -> None:
        message = item.message
        line = message.model_dump_json(by_alias=True, exclude_unset=True)
        answered = message.id if isinstance(message, types.JSONRPCResponse | types.JSONRPCError) else None
        try:
            await self._write(line.encode() + b"\n")
            await self._replies.left(answered)
        except (BrokenPipeError, ConnectionResetError):
            self._replies.lost(answered)
            if isinstance(message, types.JSONRPCNotification):
                raise  # whoever sends a notification must know that it did not leave; nobody waits for a response
        finally:
            self._pending.end(answered)

    async def refuse(self, code: int, message: str, request: Any = None) -> None:
        """Answer what cannot be passed on. An id in use belongs to the request that has it: the answer's is null then."""
        if self._pending.uses(request):
            message = f"{message}; the id {json.dumps(request)} is in use by a request that is not yet answered"
            request = None
        error = {"jsonrpc": "2.0", "id": request, "error": {"code": code, "message": message}}
        try:
            await self._write(to_json(error) + b"\n")
        except (BrokenPipeError, ConnectionResetError):
            return

    async def aclose(self) -> None:
        """The pipe closes with the process."""

    async def __aenter__(self) -> _Output:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class _Input:
    """The SDK's read stream: each line that is a message."""

    def __init__(self, read: Any, output: _Output, pending: _Pending) -> None:
        self._read = read
        self._output = output
        self._pending = pending
        self._lines = self._split()

    async def _split(self) -> AsyncIterator[bytes]:
        """Lines of bounded length; the rest of one that is too long is skipped."""
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
        """Answer a line that is too long, under its id if that stands at its beginning or at its end."""
        found = _HEAD.match(head[:_TAIL_BYTES]) or _TAIL.search(tail[-_TAIL_BYTES:])
        said = f"Invalid Request: longer than {LONGEST_LINE} bytes"
        await self._output.refuse(INVALID_REQUEST, said, json.loads(found["id"]) if found else None)

    async def receive(self) -> SessionMessage:
        """The next message."""
        async for line in self._lines:
            if line.strip() and (message := await self._message(line)) is not None:
                return SessionMessage(message)
        await self._pending.settled()
        raise StopAsyncIteration

    async def _message(self, line: bytes) -> types.JSONRPCMessage | None:
        """A message, or None after the line was answered with an error."""
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError:
            await self._explain(line)
            return None
        if isinstance(message, types.JSONRPCNotification) and "id" in from_json(line):
            # The types let a request with an impossible id pass as a notification, which nobody would answer.
            await self._explain(line)
            return None
        if isinstance(message, types.JSONRPCRequest):
            if self._pending.uses(message.id):
                await self._output.refuse(INVALID_REQUEST, "Invalid Request: not worked on", message.id)
                return None
            self._pending.begin(message.id)
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            # A cancelled request is not answered.
            self._pending.end((message.params or {}).get("requestId"))
        return message

    async def _refuse_unread(self, line: bytes) -> None:
        """What cannot be read may still be JSON, of a kind that nothing here takes: then its id is answered."""
        head = _HEAD.match(line)
        try:
            # Numbers stay text: one of thousands of digits is no reason to lose the id.
            json.loads(line, parse_int=str)
        except RecursionError:
            pass
        except ValueError:
            head = None
        if head is None:
            await self._output.refuse(PARSE_ERROR, "Parse error: not JSON")
            return
        said = "Invalid Request: text with half a character, a number too long, or nested too deep"
        await self._output.refuse(INVALID_REQUEST, said, json.loads(head["id"]))

    async def _explain(self, line: bytes) -> None:
        """Say what is wrong with a line."""
        try:
            value = from_json(line)
        except ValueError:
            await self._refuse_unread(line)
            return
        if isinstance(value, list):
            await self._output.refuse(INVALID_REQUEST, "Invalid Request: batches are not part of this protocol")
            return
        if isinstance(value, dict) and "method" in value and "id" not in value:
            # It was meant as a notification: those get no reply, not even a bad one.
            print("dropped a malformed notification", file=sys.stderr)  # noqa: T201
            return
        known = value.get("id") if isinstance(value, dict) else None
        request = known if isinstance(known, str | int) and not isinstance(known, bool) else None
        await self._output.refuse(INVALID_REQUEST, "Invalid Request: not a JSON-RPC 2.0 message", request)

    async def aclose(self) -> None:
        """Nothing to let go of: the reader closes itself."""

    def __aiter__(self) -> _Input:
        return self

    async def __anext__(self) -> SessionMessage:
        return await self.receive()

    async def __aenter__(self) -> _Input:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
