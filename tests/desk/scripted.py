"""A scripted feed that fails on purpose, as a vendor does on a bad day."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence

from openbell.desk.bars.watchlist import WatchlistFile
from openbell.desk.event_sources import WatchlistSource
from openbell.desk.events.hub import WATCHLIST, Hub
from openbell.feeds.port import Batch, Feed
from openbell.market.bars import Bars, make
from openbell.market.errors import FeedUnavailable, NoSuchSeries
from openbell.market.extras import Extra
from openbell.market.instruments import Instrument, parse
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.series_plan import Native
from openbell.market.timeframes import Timeframe

BTC = parse("BTC/USD")


def bars(*rows: tuple[int, float], instrument: Instrument = BTC) -> Bars:
    """Returns minute bars with these closes."""
    times, closes = zip(*rows, strict=True) if rows else ((), ())
    return make(instrument, Timeframe.M1, times, closes, closes, closes, closes, [1.0] * len(rows))


class ScriptedFeed:
    """Reads history from a table; streams scripted batches and failures in order, then waits."""

    name = "scripted"
    origin = Origin.LIVE
    source: Source | None = Source(Origin.LIVE, "scripted")

    def __init__(self, *script: Batch | Exception, known: Sequence[Instrument] = (BTC,)) -> None:
        self.script = list(script)
        self.known = set(known)
        self.table: dict[Instrument, dict[int, float]] = {}
        self.down = False
        self.mark: float | None = None
        self.asked: list[tuple[Instrument, int, int]] = []
        self.streams: list[int] = []
        self.gate: asyncio.Event | None = None

    def route(self, instrument: Instrument) -> Feed:
        return self

    def supports(self, instrument: Instrument) -> bool:
        return instrument in self.known

    def listed(self) -> Iterable[Instrument]:
        return sorted(self.known)

    async def natives(self, instrument: Instrument) -> Mapping[Timeframe, Native]:
        return {Timeframe.M1: Native()}

    async def count(self, instrument: Instrument, timeframe: Timeframe, start: int, end: int) -> int | None:
        return None

    def watermark(self, now: float) -> float:
        return now if self.mark is None else self.mark

    async def history(self, series: Series, start: int, end: int) -> Bars:
        instrument = series.instrument
        self.asked.append((instrument, start, end))
        if self.gate:
            await self.gate.wait()
        if self.down:
            raise FeedUnavailable("the vendor does not answer")
        rows = [(t, close) for t, close in sorted(self.table.get(instrument, {}).items()) if start <= t < end]
        return bars(*rows, instrument=instrument)

    async def extra(self, kind: str, instrument: Instrument, start: int, end: int) -> Extra:
        raise NoSuchSeries(self.name, kind, instrument.symbol, "ask another feed")

    async def close(self) -> None: ...

    async def stream(self, instruments: Sequence[Instrument], since: int) -> AsyncGenerator[Batch, None]:
        self.streams.append(since)
        while self.script:
            step = self.script.pop(0)
            if isinstance(step, Exception):
                raise step
            yield step
        await asyncio.Event().wait()


def watching_hub(watchlist: WatchlistFile) -> Hub:
    """Returns an event hub that watches a watchlist file."""
    return Hub({WATCHLIST: lambda: WatchlistSource(watchlist)})
