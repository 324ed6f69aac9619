"""Yahoo as a feed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing

from openbell.feeds.port import Batch, Feed
from openbell.feeds.yahoo.candles import DELAY, Fetched, Moment, fetch, natives_of
from openbell.feeds.yahoo.connection import YahooConnection
from openbell.feeds.yahoo.stream import batches
from openbell.market.bars import MINUTE, Bars, empty_of
from openbell.market.clock import Clock, SystemClock, bounded
from openbell.market.errors import NoSuchSeries, UnknownSymbol
from openbell.market.extras import Extra
from openbell.market.instruments import Instrument
from openbell.market.provenance import Adjustment, Origin, Source
from openbell.market.series import Series
from openbell.market.series_plan import Native
from openbell.market.timeframes import Timeframe

log = logging.getLogger(__name__)

MACHINE: Clock = SystemClock()
"""The machine's clock, from which Yahoo counts how far back its charts reach."""
_UNLISTED_FOR = 3600.0
"""Seconds for which a symbol counts as unknown; then it is requested again, because new symbols are added."""


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

    def count(self, instrument: Instrument, timeframe: Timeframe, start: int, end: int) -> int | None:  # noqa: ARG002
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
