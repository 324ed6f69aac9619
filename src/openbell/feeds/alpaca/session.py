"""The HTTP client, which is opened on first use, shared, and closed when idle; and the check of its keys."""

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
MAX_CONCURRENT = 5
"""Requests at the same time."""
CONNECT, READ = 3.0, 10.0
"""Timeouts in seconds."""


class _SharedClient:
    """One client, and the task that closes it when it is idle or when the task is cancelled."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.loop = asyncio.get_running_loop()
        self.client = client
        self.gate = asyncio.Semaphore(MAX_CONCURRENT)
        self.users = 0
        self.open = True
        self.used = asyncio.Event()
        self.closer = asyncio.create_task(self._close_when_idle(), name="alpaca: close the idle client")

    async def _close_when_idle(self) -> None:
        try:
            while self.open:
                self.used.clear()
                try:
                    async with asyncio.timeout(IDLE):
                        await self.used.wait()
                except TimeoutError:
                    # Set before the next await, so that no caller gets a client that is closing.
                    self.open = self.users > 0
        finally:
            await self.client.aclose()


class Session:
    """Provides one client per event loop. A feed outlives event loops: the command line runs one per call."""

    def __init__(self, headers: Mapping[str, str], read: float | None = None) -> None:
        self._headers = dict(headers)
        self._read = READ if read is None else read
        self._shared: _SharedClient | None = None

    @asynccontextmanager
    async def client(self) -> AsyncIterator[httpx2.AsyncClient]:
        """Provides the client for one request; waits while `MAX_CONCURRENT` requests are running."""
        shared = self._shared
        if shared is None or not shared.open or shared.loop is not asyncio.get_running_loop():
            shared = self._shared = _SharedClient(self._make())
        shared.users += 1
        try:
            async with shared.gate:
                yield shared.client
        finally:
            shared.users -= 1
            shared.used.set()

    async def close(self) -> None:
        """Close all connections now; the next request opens new ones."""
        shared, self._shared = self._shared, None
        if shared and shared.open and shared.loop is asyncio.get_running_loop():
            shared.closer.cancel()
            await asyncio.wait([shared.closer])

    def _make(self) -> httpx2.AsyncClient:
        import httpx2

        return httpx2.AsyncClient(
            headers=self._headers,
            verify=_certificates(),
            timeout=httpx2.Timeout(self._read, connect=min(CONNECT, self._read)),
        )


@cache
def _certificates() -> ssl.SSLContext:
    """Returns the certificates for all clients; loading them takes longer than a request."""
    import httpx2

    return httpx2.create_ssl_context()


def header_key(variable: str, value: str, who: str) -> str:
    """Returns a key that is valid in a header.

    Raises `SettingsError` without the key otherwise; the HTTP client's own error would contain it.
    """
    key = value.strip()
    if not key:
        raise SettingsError(f"{variable} is not set: {who} needs the keys of an account, from app.alpaca.markets")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise SettingsError(f"{variable} has characters that no key has: copy it again from app.alpaca.markets")
    return key
