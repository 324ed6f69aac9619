"""Minute bars as they close: heard on the socket where it can be relied on, asked for where it cannot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from openbell.feeds.exchange.candles import fetch, to_bars
from openbell.feeds.exchange.connection import Connection
from openbell.feeds.exchange.recent import OVERLAP, Recent
from openbell.feeds.exchange.sockets import CandleSocket
from openbell.feeds.port import Batch
from openbell.market.bars import MINUTE, Bars
from openbell.market.clock import Clock
from openbell.market.errors import FeedUnavailable
from openbell.market.instruments import Instrument

T = TypeVar("T")

SETTLE = 3.0
"""Seconds after a minute's end at which it is taken: its last candle is under way until then."""
SILENCE = 90.0
"""Seconds without a word on the socket, while the exchange trades, after which it counts as broken."""
_DAY = 86400


class Live:
    """One stream. Without a socket every minute of every pair is asked for; with one, those that it left open."""

    def __init__(
        self, connection: Connection, clock: Clock, recent: Recent, socket: CandleSocket | None, since: int
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._recent = recent
        self._socket = socket
        self._since = since
        self._began = clock.epoch()

    async def batches(self, instruments: Sequence[Instrument]) -> AsyncGenerator[Batch, None]:
        """What closed since the beginning, at most a day at a time, then each minute. Raises `FeedUnavailable`."""
        done = self._since
        while True:
            until = min(int((self._clock.epoch() - SETTLE) // MINUTE * MINUTE), done + _DAY)
            if until > done:
                found = await _together(self._closed(instrument, done, until) for instrument in instruments)
                self._check()
                for bars in found:
                    self._recent.note(bars)
                yield Batch(tuple(bars for bars in found if len(bars)), until)
                done = until
            else:
                await self._wait(done + MINUTE + SETTLE)

    async def _closed(self, instrument: Instrument, done: int, until: int) -> Bars:
        """The bars of [done, until), and those before it that have changed."""
        bars = self._heard(instrument, done, until)
        if bars is None:
            now = self._clock.epoch()
            bars = await fetch(self._connection, instrument, done - OVERLAP, until, now)
            if self._deaf() and bars.between(max(done, self._began), until).volume.any():
                raise FeedUnavailable(f"{self._connection.exchange} trades, but its socket is silent")
        bars = bars.between(done - OVERLAP, until)
        earlier = self._recent.news(bars.between(0, done), self._since)
        return bars.take(np.isin(bars.time, earlier.time) | (bars.time >= done))

    def _heard(self, instrument: Instrument, done: int, until: int) -> Bars | None:
        """What the socket told, if it told every minute of [done, until) to its end.

        A candle is at its end when a newer one has come. The first one that was heard of does not count: it may have been
        told, on some exchanges, from the moment of subscription only.
        """
        candles = self._socket.candles(instrument.symbol) if self._socket else []
        if not candles or candles[0][0] >= done * 1000 or candles[-1][0] < until * 1000:
            return None
        bars = to_bars(instrument, candles, self._clock.epoch()).between(0, until)
        return bars if len(bars.between(done, until)) == (until - done) // MINUTE else None

    def _deaf(self) -> bool:
        return self._socket is not None and self._socket.silent_for() > SILENCE

    def _check(self) -> None:
        if self._socket is not None:
            self._socket.check()

    async def _wait(self, epoch: float) -> None:
        """Wait for a time, but no longer than the socket holds."""
        waiting = asyncio.ensure_future(self._clock.sleep_until(epoch))
        try:
            await asyncio.wait(
                {waiting, *((self._socket.failed,) if self._socket else ())}, return_when="FIRST_COMPLETED"
            )
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        self._check()


async def _together(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """All results; when one call fails the others are cancelled, and its error is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]
