"""A live feed of many symbols that trade every minute, at the pace of the desk's clock."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence

from openbell.feeds.port import Batch, Feed
from openbell.market.bars import MINUTE, Bars
from openbell.market.clock import Clock
from openbell.market.errors import NoSuchSeries
from openbell.market.extras import Extra
from openbell.market.instruments import Instrument
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.series_plan import Native
from openbell.market.timeframes import Timeframe
from tests.operations.path import Path


class PathFeed:
    """Delivers a minute of every symbol when the clock reaches its end."""

    name = "path"
    origin = Origin.LIVE
    source: Source | None = Source(Origin.LIVE, "path")

    def __init__(self, clock: Clock, instruments: Sequence[Instrument], since: int) -> None:
        """`since`: the feed has no bars before this time."""
        self._clock = clock
        self._paths = {each: Path(number) for number, each in enumerate(instruments)}
        self._since = since
        self._complete_until: float | None = None
        """How far the stream has delivered; None before its first batch."""

    def route(self, instrument: Instrument) -> Feed:
        return self

    def supports(self, instrument: Instrument) -> bool:
        return instrument in self._paths

    def listed(self) -> Iterable[Instrument]:
        return self._paths

    async def natives(self, instrument: Instrument) -> Mapping[Timeframe, Native]:
        return {Timeframe.M1: Native(since=self._since)}

    async def count(self, instrument: Instrument, timeframe: Timeframe, start: int, end: int) -> int | None:
        return None

    def watermark(self, now: float) -> float:
        return now if self._complete_until is None else self._complete_until

    async def history(self, series: Series, start: int, end: int) -> Bars:
        closed = int(self._clock.epoch() // MINUTE * MINUTE)
        path = self._paths[series.instrument]
        return path.bars(series.instrument, max(start, self._since), min(end, closed))

    async def extra(self, kind: str, instrument: Instrument, start: int, end: int) -> Extra:
        raise NoSuchSeries(self.name, kind, instrument.symbol, "ask another feed")

    async def close(self) -> None: ...

    async def stream(self, instruments: Sequence[Instrument], since: int) -> AsyncGenerator[Batch, None]:
        at = since
        while True:
            await self._clock.sleep_until(at + MINUTE)
            until = int(self._clock.epoch() // MINUTE * MINUTE)
            bars = tuple(self._paths[each].bars(each, at, until) for each in instruments)
            self._complete_until = at = until
            yield Batch(bars, until)
