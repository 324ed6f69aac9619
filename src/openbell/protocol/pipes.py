"""Standard input and output as pipes of the event loop, for a transport that has both to itself."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

CHUNK = 256 * 1024
FLUSH_SECONDS = 5.0
"""Seconds in which the last output must be read by the client."""


def claim_standard_streams() -> tuple[int, int]:
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
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)


@asynccontextmanager
async def reader(fd: int, stop: asyncio.Event) -> AsyncIterator[Any]:
    """Yields a coroutine function that reads bytes; a file is read in a thread."""
    if not _can_wait(fd):

        async def read_file() -> bytes:
            return b"" if stop.is_set() else await asyncio.to_thread(os.read, fd, CHUNK)

        yield read_file
        return
    loop = asyncio.get_running_loop()
    stream = asyncio.StreamReader(limit=CHUNK)
    file = os.fdopen(os.dup(fd), "rb", 0)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stream), file)

    async def end() -> None:
        await stop.wait()
        stream.feed_eof()

    ending = asyncio.create_task(end())
    try:
        yield lambda: stream.read(CHUNK)
    finally:
        ending.cancel()
        transport.close()
        os.set_blocking(fd, True)  # the shell shares the terminal and expects it to block


@asynccontextmanager
async def writer(fd: int) -> AsyncIterator[Any]:
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
        deadline = loop.time() + FLUSH_SECONDS
        while not transport.is_closing() and transport.get_write_buffer_size() and loop.time() < deadline:
            await asyncio.sleep(0.005)
        if not transport.is_closing():  # a client that has closed its end has closed it already
            transport.abort()
        os.set_blocking(fd, True)
