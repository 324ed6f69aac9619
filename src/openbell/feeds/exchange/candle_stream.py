"""A stream of minute bars: from the socket if it has received them completely, otherwise by HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

import numpy as np

from openbell.feeds.exchange.candles import fetch, to_bars
from openbell.feeds.exchange.connection import Connection, together
from openbell.feeds.exchange.recent import OVERLAP, RecentBars
from openbell.feeds.exchange.sockets import CandleSocket
from openbell.feeds.port import Batch
from openbell.market.bars import MINUTE, Bars
from openbell.market.clock import Clock
from openbell.market.errors import FeedUnavailable
from openbell.market.instruments import Instrument
from openbell.market.series import Series

SETTLE = 3.0
"""Seconds after a minute's end at which its bar is read, because the last update of its candle arrives late."""
SILENCE = 90.0
"""Seconds without a message on the socket, while the exchange trades, after which the socket counts as broken."""
_DAY = 86400


class CandleStream:
    """One stream. Minutes that the socket did not receive, or all minutes without a socket, are fetched by HTTP."""

    def __init__(
        self, connection: Connection, clock: Clock, recent: RecentBars, socket: CandleSocket | None, since: int
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
