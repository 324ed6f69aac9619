"""The HTTP client: opened on first use, shared while it is used, closed by itself when it is not; and keys for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING

from openbell.market.errors import SettingsError

if TYPE_CHECKING:
    import ssl

    import httpx2

IDLE = 10.0
"""Seconds without a request after which the connections are closed."""
AT_ONCE = 5
CONNECT, READ = 3.0, 10.0


class _Line:
    """One client and the task that closes it: when idle, when told to, or when the event loop ends and cancels it."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.loop = asyncio.get_running_loop()
        self.client = client
        self.gate = asyncio.Semaphore(AT_ONCE)
        self.users = 0
        self.open = True
        self.used = asyncio.Event()
        self.keeper = asyncio.create_task(self._keep(), name="alpaca: close the idle client")

    async def _keep(self) -> None:
        try:
            while self.open:
                self.used.clear()
                try:
                    async with asyncio.timeout(IDLE):
                        await self.used.wait()
                except TimeoutError:
                    # Said before anything is awaited: nobody gets a client that is closing.
                    self.open = self.users > 0
        finally:
            await self.client.aclose()


class Session:
    """Gives out the client of the running event loop. A feed outlives loops: the command line runs one per call."""

    def __init__(self, headers: Mapping[str, str], read: float | None = None) -> None:
        self._headers = dict(headers)
        self._read = READ if read is None else read
        self._line: _Line | None = None

    @asynccontextmanager
    async def client(self) -> AsyncIterator[httpx2.AsyncClient]:
        """The client, for one request; at most five at once."""
        line = self._line
        if line is None or not line.open or line.loop is not asyncio.get_running_loop():
            line = self._line = _Line(self._make())
        line.users += 1
        try:
            async with line.gate:
                yield line.client
        finally:
            line.users -= 1
            line.used.set()

    async def close(self) -> None:
        """Close the connections now; the next request opens new ones."""
        line, self._line = self._line, None
        if line and line.open and line.loop is asyncio.get_running_loop():
            line.keeper.cancel()
            await asyncio.wait([line.keeper])

    def _make(self) -> httpx2.AsyncClient:
        import httpx2

        return httpx2.AsyncClient(
            headers=self._headers,
            verify=_certificates(),
            timeout=httpx2.Timeout(self._read, connect=min(CONNECT, self._read)),
        )


@cache
def _certificates() -> ssl.SSLContext:
    """For all clients: reading them takes longer than a request."""
    import httpx2

    return httpx2.create_ssl_context()


def header_key(variable: str, value: str, who: str) -> str:
    """A key that can stand in a header. Any other is refused here, unsaid: the HTTP client would quote it in its error."""
    key = value.strip()
    if not key:
        raise SettingsError(f"{variable} is not set: {who} needs the keys of an account, from app.alpaca.markets")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise SettingsError(f"{variable} holds characters that no key has: copy it again from app.alpaca.markets")
    return key
