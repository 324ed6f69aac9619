"""Delivers stored bars as the clock reaches them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence

from openbell.feeds.port import Batch, Feed
from openbell.market.bars import MINUTE, Bars, resample
from openbell.market.clock import Clock, bounded
from openbell.market.errors import NoSuchSeries
from openbell.market.extras import Extra
from openbell.market.instruments import Instrument
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.series_plan import Native
from openbell.market.timeframes import Timeframe
from openbell.stores.port import BarStore
from openbell.stores.threads import Threads


class ReplayFeed:
    """Delivers the bars of the store when the clock reaches their end. Its bars are not stored again."""

    name = "replay"
    origin = Origin.REPLAY
    source: Source | None = None

    def __init__(self, store: BarStore, clock: Clock, threads: Threads | None = None) -> None:
        self._store = store
        self._threads = threads or Threads()
        self._clock = bounded(clock)

    def route(self, instrument: Instrument) -> Feed:  # noqa: ARG002 - the port's signature
        """Returns itself."""
        return self

    def supports(self, instrument: Instrument) -> bool:
        """Returns True if the store has bars of this instrument."""
        return any(series.instrument == instrument for series in self._store.stored())

    def listed(self) -> Iterable[Instrument]:
        """Returns none: the store has them."""
        return ()

    async def natives(self, instrument: Instrument) -> Mapping[Timeframe, Native]:
        """Returns minutes and the timeframes that are stored."""
        stored = await self._threads.run(self._store.timeframes, instrument)
        return dict.fromkeys((Timeframe.M1, *stored), Native())

    async def count(self, instrument: Instrument, timeframe: Timeframe, start: int, end: int) -> int | None:  # noqa: ARG002
        """Returns None: the store counts its bars."""
        return None

    def watermark(self, now: float) -> float:
        """Returns `now`: the stored bars are complete."""
        return now

    async def history(self, series: Series, start: int, end: int) -> Bars:
        """Returns the stored bars that are closed at the clock's time."""
        closed = int(self._clock.epoch() // MINUTE * MINUTE)
        bars = await self._threads.run(self._store.read, series, start, min(end, closed))
        return resample(bars, series.timeframe, closed)

    async def extra(self, kind: str, instrument: Instrument, start: int, end: int) -> Extra:  # noqa: ARG002
        """Raises `NoSuchSeries`: only bars are stored."""
        hint = "it delivers stored bars only; set OPENBELL_FEED to a feed that has it, such as sim"
        raise NoSuchSeries(self.name, kind, instrument.symbol, hint)

    async def close(self) -> None:
        """Does nothing: there are no connections."""

    async def stream(self, instruments: Sequence[Instrument], since: int) -> AsyncGenerator[Batch, None]:
        """Yields the stored bars of each minute when the clock reaches its end."""
        at = since
        while True:
            await self._clock.sleep_until(at + MINUTE)
            until = int(self._clock.epoch() // MINUTE * MINUTE)
            parts = [await self.history(Series(instrument), at, until) for instrument in instruments]
            yield Batch(tuple(part for part in parts if len(part)), until)
            at = until
