"""A stream of minute bars: from the socket if it has received them completely, otherwise by HTTP."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import partial
from math import inf
from typing import Any

import numpy as np

from openbell.feeds.ccxt_exchange.candles import fetch, to_bars
from openbell.feeds.ccxt_exchange.connection import MALFORMED, ExchangeConnection, describe, together
from openbell.feeds.port import Batch
from openbell.market.bars import MINUTE, Bars, merge
from openbell.market.clock import Clock
from openbell.market.errors import FeedUnavailable
from openbell.market.instruments import Instrument
from openbell.market.series import Series

SETTLE = 3.0
"""Seconds after a minute's end at which its bar is read, because the last update of its candle arrives late."""
SILENCE = 90.0
"""Seconds without a message on the socket, while the exchange trades, after which the socket counts as broken."""
_DAY = 86400
OVERLAP = 10 * MINUTE
"""How far back delivered bars are compared with new ones, in seconds."""
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


class CandleStream:
    """One stream. Minutes that the socket did not receive, or all minutes without a socket, are fetched by HTTP."""

    def __init__(
        self, connection: ExchangeConnection, clock: Clock, recent: RecentBars, socket: CandleSocket | None, since: int
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._recent = recent
        self._socket = socket
        self._since = since
        self._began = clock.epoch()

    async def batches(self, instruments: Sequence[Instrument]) -> AsyncGenerator[Batch, None]:
        """Yields the bars closed since the start, at most a day at a time, then each minute. Raises `FeedUnavailable`."""
        done = self._since
        while True:
            until = min(int((self._clock.epoch() - SETTLE) // MINUTE * MINUTE), done + _DAY)
            if until > done:
                found = await together(self._closed(instrument, done, until) for instrument in instruments)
                self._check()
                for bars in found:
                    self._recent.record(bars)
                yield Batch(tuple(bars for bars in found if len(bars)), until)
                done = until
            else:
                await self._wait(done + MINUTE + SETTLE)

    async def _closed(self, instrument: Instrument, done: int, until: int) -> Bars:
        """Returns the bars of [done, until), and earlier bars that have changed."""
        bars = self._from_socket(instrument, done, until)
        if bars is None:
            now = self._clock.epoch()
            bars = await fetch(self._connection, Series(instrument), done - OVERLAP, until, now)
            if self._socket_is_silent() and bars.between(max(done, self._began), until).volume.any():
                raise FeedUnavailable(f"{self._connection.exchange} trades, but its socket is silent")
        bars = bars.between(done - OVERLAP, until)
        earlier = self._recent.changed(bars.between(0, done), self._since)
        return bars.take(np.isin(bars.time, earlier.time) | (bars.time >= done))

    def _from_socket(self, instrument: Instrument, done: int, until: int) -> Bars | None:
        """Returns the socket's bars if it has received all minutes of [done, until) completely, otherwise None.

        A candle is complete when a newer one has arrived. The socket's first candle is not used, because on some exchanges
        it contains only the trades since the subscription.
        """
        candles = self._socket.candles(instrument.symbol) if self._socket else []
        if not candles or candles[0][0] >= done * 1000 or candles[-1][0] < until * 1000:
            return None
        bars = to_bars(Series(instrument), candles, self._clock.epoch()).between(0, until)
        return bars if len(bars.between(done, until)) == (until - done) // MINUTE else None

    def _socket_is_silent(self) -> bool:
        return self._socket is not None and self._socket.silent_for() > SILENCE

    def _check(self) -> None:
        if self._socket is not None:
            self._socket.check()

    async def _wait(self, epoch: float) -> None:
        """Wait until the clock shows `epoch`, or raise the socket's error if it fails before."""
        waiting = asyncio.ensure_future(self._clock.sleep_until(epoch))
        try:
            await asyncio.wait(
                {waiting, *((self._socket.failed,) if self._socket else ())}, return_when="FIRST_COMPLETED"
            )
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        self._check()


class RecentBars:
    """The latest delivered bars of each instrument, of all streams and histories."""

    def __init__(self) -> None:
        self._delivered: dict[Instrument, Bars] = {}

    def record(self, bars: Bars) -> None:
        """Record delivered bars."""
        delivered = self._delivered.get(bars.instrument)
        if len(bars) and (delivered is None or bars.time[-1] > delivered.time[-1] - 2 * OVERLAP):
            joined = bars if delivered is None else merge(delivered, bars)
            self._delivered[bars.instrument] = joined.between(joined.time[-1] - 2 * OVERLAP, np.inf).copy()

    def changed(self, bars: Bars, since: int) -> Bars:
        """Returns the bars that differ from the delivered ones, and from `since` on also bars not delivered yet."""
        delivered = self._delivered.get(bars.instrument)
        if delivered is None:
            return bars.between(since, np.inf)
        row = np.minimum(np.searchsorted(delivered.time, bars.time), len(delivered) - 1)
        same_time = delivered.time[row] == bars.time
        pairs = zip(bars.columns()[1:], delivered.columns()[1:], strict=True)
        equal = np.all([now == then[row] for now, then in pairs], axis=0)
        return bars.take(np.where(same_time, ~equal, bars.time >= since))


class CandleSocket:
    """Receives the 1-minute candles of some pairs; the latest candle is still forming.

    The received candles can be read at any time. If the connection breaks, `failed` gets a `FeedUnavailable`. The socket
    does not reconnect; the caller fetches the gap.
    """

    def __init__(self, connection: ExchangeConnection, exchange: Any, errors: Any, symbols: Sequence[str]) -> None:
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

    def __init__(self, connection: ExchangeConnection) -> None:
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
