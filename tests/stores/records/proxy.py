"""A proxy to PostgreSQL that cuts the connection during a commit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Line:
    """Forwards everything until it cuts: `before` the server receives a commit, or `after` the server has committed."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self.cut = ""
        self.connections = 0

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.connections += 1
        there, away = await asyncio.open_connection("127.0.0.1", self._server_port)
        committing = asyncio.Event()
        tasks = [
            asyncio.create_task(self._ask(reader, away, committing)),
            asyncio.create_task(self._answer(there, writer, committing)),
        ]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        for end in (writer, away):
            end.transport.abort()

    async def _ask(self, reader: asyncio.StreamReader, away: asyncio.StreamWriter, committing: asyncio.Event) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if b"COMMIT;" in data and self.cut:
                    if self.cut == "before":
                        return
                    committing.set()
                away.write(data)

    async def _answer(
        self, there: asyncio.StreamReader, writer: asyncio.StreamWriter, committing: asyncio.Event
    ) -> None:
        with suppress(OSError):
            while data := await there.read(65536):
                if committing.is_set():
                    return
                writer.write(data)


@asynccontextmanager
async def line_to(server_port: int) -> AsyncIterator[tuple[Line, int]]:
    """A proxy, and the port on which it listens."""
    line = Line(server_port)
    listening = await asyncio.start_server(line.carry, "127.0.0.1", 0)
    try:
        yield line, listening.sockets[0].getsockname()[1]
    finally:
        listening.close()
