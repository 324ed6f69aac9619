"""A TCP proxy between the desk and a server: it forwards, forwards nothing, or refuses connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Proxy:
    """Connections to one port. Bytes that arrive while it is stalled are forwarded when it goes on."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._forwarding = asyncio.Event()
        self._forwarding.set()
        self._connections: set[asyncio.Task[None]] = set()
        self._listening: asyncio.Server | None = None
        self.port = 0

    async def listen(self) -> None:
        """Accept connections, on the same port as before."""
        self._listening = await asyncio.start_server(self._carry, "127.0.0.1", self.port)
        self.port = self._listening.sockets[0].getsockname()[1]

    async def refuse(self) -> None:
        """End all connections and refuse new ones, as the port of a stopped server does."""
        if self._listening:
            self._listening.close()
            self._listening = None
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def stall(self) -> None:
        """Keep all connections open, accept new ones, and forward nothing."""
        self._forwarding.clear()

    def go_on(self) -> None:
        """Forward again."""
        self._forwarding.set()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection until one of its ends closes it."""
        task = asyncio.current_task()
        assert task
        self._connections.add(task)
        away: asyncio.StreamWriter | None = None
        try:
            await self._forwarding.wait()
            there, away = await asyncio.open_connection("127.0.0.1", self._server_port)
            both = [asyncio.create_task(self._pump(*ends)) for ends in ((reader, away), (there, writer))]
            try:
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in both:
                    each.cancel()
        except (OSError, asyncio.CancelledError):
            pass  # the server is stopped, or the proxy ends
        finally:
            self._connections.discard(task)
            for end in (writer, away):
                if end:
                    end.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                await self._forwarding.wait()
                writer.write(data)
                await writer.drain()


@asynccontextmanager
async def proxy_to(server_port: int) -> AsyncIterator[Proxy]:
    """A proxy that listens on a port of its own."""
    proxy = Proxy(server_port)
    await proxy.listen()
    try:
        yield proxy
    finally:
        proxy.go_on()
        await proxy.refuse()
