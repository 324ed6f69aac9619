"""The WebSocket side of one exchange: listens to candles, and says when it no longer can."""

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
"""Seconds between two looks at whether something was heard: ccxt takes the candles in without being watched."""
_KEPT = 60
"""Candles of each pair that ccxt holds."""
_GROUP = 100
"""Pairs in one subscription."""
SHORT = 60.0
"""Seconds that a socket must hold to be worth opening another."""
CHANCES = 3
"""Sockets in a row that may break sooner, before none is opened for `RESPITE`."""
RESPITE = 600.0


class CandleSocket:
    """Listens to the 1-minute candles of some pairs. Every candle is as it stands: the newest is still forming.

    What it has heard is read at any time; when the connection breaks, `failed` holds a `FeedUnavailable`. It never
    connects again: what would be missed in between is for the caller to fetch.
    """

    def __init__(self, connection: Connection, exchange: Any, errors: Any, symbols: Sequence[str]) -> None:
        self._name = connection.exchange
        self._exchange = exchange
        self._errors = errors
        self.opened_at = self._heard_at = time.monotonic()
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        exchange.options["OHLCVLimit"] = _KEPT
        # ccxt dials again without a word when nobody waits for a message while the connection breaks.
        exchange.on_close = self._then_fail(exchange.on_close)
        exchange.on_error = self._then_fail(exchange.on_error)
        self._watchers = [asyncio.ensure_future(self._watch(call)) for call in _calls(exchange, symbols)]

    def candles(self, symbol: str) -> list[list[Any]]:
        """The newest candles that were heard of, oldest first; one timeframe only is listened to."""
        heard = self._exchange.ohlcvs.get(symbol) or {}
        rows = next(iter(heard.values()), ())
        return sorted((list(row) for row in rows if isinstance(row[0], int)), key=lambda row: row[0])

    def silent_for(self) -> float:
        """Seconds since anything was heard."""
        return time.monotonic() - self._heard_at

    def check(self) -> None:
        """Raise what has broken the connection, if anything has."""
        if self.failed.done():
            self.failed.result()

    async def close(self) -> None:
        """Stop listening and close the connection."""
        for watcher in self._watchers:
            watcher.cancel()
        await asyncio.gather(*self._watchers, return_exceptions=True)
        await self._exchange.close()
        if self.failed.done():
            self.failed.exception()  # looked at, so that it is not reported as lost
        self.failed.cancel()

    async def _watch(self, call: Callable[[], Awaitable[Any]]) -> None:
        """Wait for messages: ccxt subscribes on the first call and raises here what goes wrong with it."""
        try:
            while True:
                await call()
                self._heard_at = time.monotonic()
                await asyncio.sleep(TICK)
        except self._errors.NotSupported as error:
            log.warning("%s: %s; its candles are asked for every minute instead", self._name, describe(error))
            self._heard_at = inf  # its silence means nothing
        except (self._errors.BaseError, OSError, *MALFORMED) as error:
            self._fail(error)

    def _then_fail(self, own: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
        def closed(client: Any, error: Any) -> None:
            own(client, error)
            self._fail(error)

        return closed

    def _fail(self, error: Any) -> None:
        if not self.failed.done():
            said = describe(error) if isinstance(error, BaseException) else f"closed with code {error}"
            self.failed.set_exception(FeedUnavailable(f"The connection to {self._name} broke: {said}"))


class Sockets:
    """Opens the sockets of one feed, while they hold: not every network lets them through."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._short_lived = 0
        self._none_before = 0.0

    async def open(self, symbols: Sequence[str]) -> CandleSocket | None:
        """Begin to listen; None where ccxt has no socket for these candles, or the last ones kept breaking.

        Raises `FeedUnavailable` while the exchange wants no requests at all.
        """
        library = await self._connection.library()
        if library.sockets is None or not symbols or time.monotonic() < self._none_before:
            return None
        await self._connection.hold()
        exchange = self._connection.make(library.sockets)
        if not _calls(exchange, symbols):
            return None
        return CandleSocket(self._connection, exchange, library.errors, symbols)

    async def close(self, socket: CandleSocket) -> None:
        """Close a socket, and remember whether it held."""
        broke = socket.failed.done()
        await socket.close()
        if not broke or time.monotonic() - socket.opened_at > SHORT:
            self._short_lived = 0
            return
        self._short_lived += 1
        if self._short_lived >= CHANCES:
            log.warning("%s: its sockets keep breaking; candles are asked for instead", self._connection.exchange)
            self._short_lived, self._none_before = 0, time.monotonic() + RESPITE


def _calls(exchange: Any, symbols: Sequence[str]) -> list[Callable[[], Awaitable[Any]]]:
    """The calls that together listen to all symbols; none if the exchange has no such stream."""
    if exchange.has.get("watchOHLCVForSymbols") is True:
        groups = [symbols[at : at + _GROUP] for at in range(0, len(symbols), _GROUP)]
        return [partial(exchange.watch_ohlcv_for_symbols, [[symbol, "1m"] for symbol in group]) for group in groups]
    if exchange.has.get("watchOHLCV") is True:
        return [partial(exchange.watch_ohlcv, symbol, "1m") for symbol in symbols]
    return []
