"""Yahoo as a feed. Its stream of minute bars polls every chart once a minute."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing

import numpy as np

from openbell.feeds.port import Batch, Feed
from openbell.feeds.yahoo.candles import DELAY, Fetched, Moment, fetch, natives_of
from openbell.feeds.yahoo.connection import YahooConnection
from openbell.market.bars import MINUTE, Bars, empty, empty_of
from openbell.market.clock import Clock, SystemClock, bounded
from openbell.market.errors import NoSuchSeries, UnknownSymbol
from openbell.market.extras import Extra
from openbell.market.instruments import Instrument
from openbell.market.provenance import Adjustment, Origin, Source
from openbell.market.series import Series
from openbell.market.series_plan import Native
from openbell.market.sessions import Phase, phase
from openbell.market.timeframes import Timeframe

log = logging.getLogger(__name__)

MACHINE: Clock = SystemClock()
"""The machine's clock, from which Yahoo counts how far back its charts reach."""
_UNLISTED_FOR = 3600.0
"""Seconds for which a symbol counts as unknown; then it is requested again, because new symbols are added."""
SETTLE = 5.0
"""Seconds after a minute's end at which it is polled."""
_OVERLAP = int(DELAY)
"""Seconds of delivered minutes that are polled again, because Yahoo adds and changes bars afterwards."""

Fetch = Callable[[Instrument, int, int], Awaitable[Fetched]]
"""Returns the minutes of an instrument that opened in [start, end)."""


class YahooFeed:
    """US stocks, crypto and forex from Yahoo Finance, delayed, without an account. Prices are adjusted for splits.

    `proxy` is put before the URLs of requests. `pause` is the function that waits between two tries. yfinance is loaded on
    first use, which raises `SettingsError` if it is not installed.
    """

    name = "yahoo"
    origin = Origin.LIVE

    def __init__(
        self, clock: Clock, *, proxy: str = "", pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self.source: Source | None = Source(Origin.LIVE, "yahoo", Adjustment.SPLIT.value)
        self._clock = bounded(clock)
        self._connection = YahooConnection(proxy, pause)
        self._unlisted: dict[Instrument, float] = {}
        self._completed: dict[object, int] = {}

    def route(self, instrument: Instrument) -> Feed:  # noqa: ARG002 - the port's signature
        """Returns itself."""
        return self

    def supports(self, instrument: Instrument) -> bool:
        """Returns True, unless Yahoo has recently refused the symbol."""
        refused_at = self._unlisted.get(instrument)
        return refused_at is None or time.monotonic() - refused_at >= _UNLISTED_FOR

    def listed(self) -> Iterable[Instrument]:
        """Returns none: Yahoo has no list."""
        return ()

    async def natives(self, instrument: Instrument) -> Mapping[Timeframe, Native]:
        """Returns minutes to 15 minutes, hours of crypto and forex, and days of stocks and crypto."""
        return natives_of(instrument.asset_class, MACHINE.epoch())

    async def count(self, instrument: Instrument, timeframe: Timeframe, start: int, end: int) -> int | None:  # noqa: ARG002
        """Returns None: the number of bars is only known after they are fetched."""
        return None

    def watermark(self, now: float) -> float:
        """Returns the time up to which all running streams are complete; without a stream, 20 minutes ago."""
        return min(now, max(now - DELAY, min(self._completed.values(), default=0)))

    async def history(self, series: Series, start: int, end: int) -> Bars:
        """Returns the closed bars that opened in [start, end). Raises `FeedUnavailable` and `UnknownSymbol`."""
        now = self._clock.epoch()
        native = natives_of(series.instrument.asset_class, MACHINE.epoch())[series.timeframe]
        start = -(-max(start, native.earliest(now)) // MINUTE) * MINUTE
        end = min(-(-end // MINUTE) * MINUTE, int(now // MINUTE) * MINUTE)
        if start >= end:
            return empty_of(series)
        return (await self._fetch(series, start, end, now)).bars

    async def extra(self, kind: str, instrument: Instrument, start: int, end: int) -> Extra:  # noqa: ARG002
        """Raises `NoSuchSeries`: Yahoo's charts have prices and volumes only."""
        hint = "set OPENBELL_FEED to a feed that has it, such as sim or ccxt:binance"
        raise NoSuchSeries(self.name, kind, instrument.symbol, hint)

    async def stream(self, instruments: Sequence[Instrument], since: int) -> AsyncGenerator[Batch, None]:
        """Yields the bars closed since `since`, then new and changed bars of the last 20 minutes, once a minute.

        Raises `FeedUnavailable` if Yahoo does not respond, and `UnknownSymbol`.
        """

        async def minutes(instrument: Instrument, start: int, end: int) -> Fetched:
            return await self._fetch(Series(instrument), start, end, self._clock.epoch())

        earliest = natives_of(instruments[0].asset_class, MACHINE.epoch())[Timeframe.M1].since if instruments else 0
        first = -(-max(since, earliest) // MINUTE) * MINUTE
        this = object()
        try:
            async with aclosing(batches(self._clock, minutes, instruments, first)) as found:
                async for batch in found:
                    self._completed[this] = batch.complete_until
                    yield batch
        finally:
            self._completed.pop(this, None)

    async def close(self) -> None:
        """Close all connections; the next call opens them again."""
        await self._connection.close()

    async def _fetch(self, series: Series, start: int, end: int, now: float) -> Fetched:
        if not self.supports(series.instrument):
            raise UnknownSymbol(series.instrument.symbol, "Yahoo does not list it")
        try:
            moment = Moment(now, max(now, MACHINE.epoch()) - DELAY)
            fetched = await fetch(self._connection, series, start, end, moment)
        except UnknownSymbol:
            self._unlisted[series.instrument] = time.monotonic()
            raise
        return fetched


class PolledMinutes:
    """The minutes of one instrument: what was delivered, and up to which time they are complete."""

    def __init__(self, instrument: Instrument, since: int) -> None:
        self.instrument = instrument
        self.complete_until = since
        self._since = since
        self._polled = empty(instrument)
        """The bars of the last poll."""

    async def poll(self, fetch: Fetch, until: int, now: float) -> Bars:
        """Returns the bars before `until` that are new or have changed since the last poll."""
        if not self._may_change(now):
            self.complete_until = max(self.complete_until, until)
            return empty(self.instrument)
        start = max(self._since, min(self.complete_until, until - _OVERLAP))
        fetched = await fetch(self.instrument, start, int(now) + MINUTE)
        bars = fetched.bars.between(start, until)
        # Yahoo has all minutes before its newest row. Without a newer row, late minutes are possible for DELAY.
        reached = max(fetched.reached, now - DELAY) // MINUTE * MINUTE
        self.complete_until = max(self.complete_until, min(until, int(reached)))
        before, self._polled = set(_rows(self._polled)), bars
        return bars.take(np.array([row not in before for row in _rows(bars)], dtype=bool))

    def _may_change(self, now: float) -> bool:
        """Returns False if the market has been closed for longer than `DELAY` and its last minutes were polled."""
        if self.complete_until < now - DELAY - 2 * MINUTE:
            return True
        return any(phase(self.instrument, at) is not Phase.CLOSED for at in (now, now - DELAY))


async def batches(
    clock: Clock, fetch: Fetch, instruments: Sequence[Instrument], since: int
) -> AsyncGenerator[Batch, None]:
    """Yields the bars closed since `since`, then those of each minute. Raises `FeedUnavailable` and `UnknownSymbol`."""
    minutes = [PolledMinutes(instrument, since) for instrument in instruments]
    polled, complete = since, since
    while True:
        now = clock.epoch()
        until = int((now - SETTLE) // MINUTE * MINUTE)
        if until <= polled:
            await clock.sleep_until(polled + MINUTE + SETTLE)
            continue
        found = await _poll_all(minutes, fetch, until, now)
        polled = until
        reached = min((each.complete_until for each in minutes), default=until)
        if reached > complete or any(len(bars) for bars in found):
            complete = reached
            yield Batch(tuple(bars for bars in found if len(bars)), complete)


async def _poll_all(minutes: Sequence[PolledMinutes], fetch: Fetch, until: int, now: float) -> list[Bars]:
    """Returns the new bars of all instruments. If one poll fails, the others are cancelled and its error is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            polls = [group.create_task(each.poll(fetch, until, now)) for each in minutes]
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [poll.result() for poll in polls]


def _rows(bars: Bars) -> list[tuple[float, ...]]:
    return list(zip(*(column.tolist() for column in bars.columns()), strict=True))
