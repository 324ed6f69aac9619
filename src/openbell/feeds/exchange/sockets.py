"""The WebSocket connections to one exchange, which receive candles."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from math import inf
from typing import Any

from openbell.feeds.exchange.connection import MALFORMED, Connection, describe
from openbell.market.errors import FeedUnavailable

log = logging.getLogger(__name__)

TICK = 1.0
"""Seconds between two checks for messages; ccxt stores the candles in the background."""
_KEPT = 60
"""The number of candles of each pair that ccxt keeps."""
_GROUP = 100
"""Pairs in one subscription."""
MIN_LIFETIME = 60.0
"""Seconds. A socket that breaks earlier counts as short-lived."""
MAX_SHORT_LIVED = 3
"""The number of short-lived sockets in a row after which none is opened for `SOCKET_PAUSE`."""
SOCKET_PAUSE = 600.0
"""Seconds."""


class CandleSocket:
    """Receives the 1-minute candles of some pairs; the latest candle is still forming.

    The received candles can be read at any time. If the connection breaks, `failed` gets a `FeedUnavailable`. The socket
    does not reconnect; the caller fetches the gap.
    """

    def __init__(self, connection: Connection, exchange: Any, errors: Any, symbols: Sequence[str]) -> None:
        self._name = connection.exchange
        self._exchange = exchange
        self._errors = errors
        self.opened_at = self._last_message_at = time.monotonic()
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        exchange.options["OHLCVLimit"] = _KEPT
        # If the connection breaks while no call waits for a message, ccxt reconnects without raising an error.
        exchange.on_close = self._then_fail(exchange.on_close)
        exchange.on_error = self._then_fail(exchange.on_error)
        self._watchers = [asyncio.ensure_future(self._watch(call)) for call in _calls(exchange, symbols)]

    def candles(self, symbol: str) -> list[list[Any]]:
        """Returns the latest received candles, oldest first. Only one timeframe is subscribed."""
        received = self._exchange.ohlcvs.get(symbol) or {}
        rows = next(iter(received.values()), ())
        return sorted((list(row) for row in rows if isinstance(row[0], int)), key=lambda row: row[0])

    def silent_for(self) -> float:
        """Returns the seconds since the last message."""
        return time.monotonic() - self._last_message_at

    def check(self) -> None:
        """Raises `FeedUnavailable` if the connection is broken."""
        if self.failed.done():
            self.failed.result()

    async def close(self) -> None:
        """Unsubscribe and close the connection."""
        for watcher in self._watchers:
            watcher.cancel()
        await asyncio.gather(*self._watchers, return_exceptions=True)
        await self._exchange.close()
        if self.failed.done():
            self.failed.exception()  # retrieved, so that asyncio does not report it as never retrieved
        self.failed.cancel()

    async def _watch(self, call: Callable[[], Awaitable[Any]]) -> None:
        """Wait for messages. ccxt subscribes on the first call, and each call raises the errors of the subscription."""
        try:
            while True:
                await call()
                self._last_message_at = time.monotonic()
                await asyncio.sleep(TICK)
        except self._errors.NotSupported as error:
            log.warning("%s: %s; polling its candles every minute instead", self._name, describe(error))
            self._last_message_at = inf  # it never counts as silent
        except (self._errors.BaseError, OSError, *MALFORMED) as error:
            self._fail(error)

    def _then_fail(self, own: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
        def closed(client: Any, error: Any) -> None:
            own(client, error)
            self._fail(error)

        return closed

    def _fail(self, error: Any) -> None:
        if not self.failed.done():
            reason = describe(error) if isinstance(error, BaseException) else f"closed with code {error}"
            self.failed.set_exception(FeedUnavailable(f"The connection to {self._name} broke: {reason}"))


class Sockets:
    """Opens the sockets of one feed. Pauses if they keep breaking, because some networks block WebSockets."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._short_lived = 0
        self._paused_until = 0.0

    async def open(self, symbols: Sequence[str]) -> CandleSocket | None:
        """Returns a new socket; None if ccxt has none for these candles, or if the last sockets were short-lived.

        Raises `FeedUnavailable` while the exchange accepts no requests.
        """
        library = await self._connection.library()
        if library.sockets is None or not symbols or time.monotonic() < self._paused_until:
            return None
        await self._connection.wait_until_allowed()
        exchange = self._connection.make(library.sockets)
        if not _calls(exchange, symbols):
            return None
        return CandleSocket(self._connection, exchange, library.errors, symbols)

    async def close(self, socket: CandleSocket) -> None:
        """Close a socket and count it if it was short-lived."""
        broke = socket.failed.done()
        await socket.close()
        if not broke or time.monotonic() - socket.opened_at > MIN_LIFETIME:
            self._short_lived = 0
            return
        self._short_lived += 1
        if self._short_lived >= MAX_SHORT_LIVED:
            log.warning("%s: its sockets keep breaking; polling candles instead", self._connection.exchange)
            self._short_lived, self._paused_until = 0, time.monotonic() + SOCKET_PAUSE


def _calls(exchange: Any, symbols: Sequence[str]) -> list[Callable[[], Awaitable[Any]]]:
    """Returns the ccxt calls that subscribe to all symbols; empty if the exchange has no such stream."""
    if exchange.has.get("watchOHLCVForSymbols") is True:
        groups = [symbols[at : at + _GROUP] for at in range(0, len(symbols), _GROUP)]
        return [partial(exchange.watch_ohlcv_for_symbols, [[symbol, "1m"] for symbol in group]) for group in groups]
    if exchange.has.get("watchOHLCV") is True:
        return [partial(exchange.watch_ohlcv, symbol, "1m") for symbol in symbols]
    return []
