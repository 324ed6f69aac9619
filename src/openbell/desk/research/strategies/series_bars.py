"""The bars that strategies of a series are computed from, and what was traded of them in regular hours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from zlib import crc32

from openbell.desk.bars.service import BarService
from openbell.market.bars import Bars, closed_at
from openbell.market.instruments import AssetClass, parse
from openbell.market.lookback import MOST_SESSIONS, lookback_start
from openbell.market.series import Series
from openbell.market.timeframes import SHORT, Timeframe
from openbell.market.trading_time import trading_seconds
from openbell.stores.port import BarStore, Version

SEARCHED = {Timeframe.D1: 3000, Timeframe.H1: 6000}
"""The timeframes that are searched for strategies, and the bars that are used: years of both."""
_SESSION = 23_400
"""Seconds of a regular session."""
_GRACE = 900
"""Seconds in which a bar may arrive late."""


@dataclass(frozen=True, slots=True)
class SeriesBars:
    """Closed bars of a series since a fixed first one."""

    bars: Bars
    digest: int
    """See `digest_of`."""

    @property
    def until(self) -> int:
        """When the last bar closed; 0 if there is none."""
        return closed_at(self.bars) if len(self.bars) else 0


def series_named(symbol: str, timeframe: str) -> Series:
    """Returns the series of an implementation."""
    return Series(parse(symbol), SHORT[timeframe])


async def newest_bars(service: BarService, series: Series) -> SeriesBars:
    """Returns the newest closed bars, as many as a search uses, fetched as needed. Raises as `BarService.span` does."""
    count, last = SEARCHED[series.timeframe], await service.newest(series.instrument, series.timeframe, 1)
    until = closed_at(last) if len(last) else service.closed_until()  # a file may end years ago
    first = lookback_start(series.instrument, series.timeframe, count, until)
    # Stocks have more bars than that, because extended hours are not counted.
    bars = (await service.span(series, first, None)).tail(count)
    if len(bars) < count:  # bars may be missing in that time, and earlier ones stored
        bars = (await service.span(series, None, None)).tail(count)
    return SeriesBars(bars, await service.threads.run(digest_of, bars))


async def bars_since(service: BarService, series: Series, first: int) -> SeriesBars:
    """Returns the closed bars since a time, fetched as needed. Raises as `BarService.span` does."""
    bars = await service.span(series, first, None)
    return SeriesBars(bars, await service.threads.run(digest_of, bars))


@dataclass(frozen=True, slots=True)
class SeenBars:
    """The state of the stored bars that a series is made of, when they were used up to a time."""

    versions: Mapping[Series, Version]
    until: int


def seen_bars(store: BarStore, series: Series, until: int) -> SeenBars:
    """Returns the current state of the bars of a series before a time; to be taken before they are read. May block."""
    return SeenBars({each: store.versions.of(each) for each in _sources(store, series)}, until)


def corrected(store: BarStore, seen: Mapping[Series, SeenBars]) -> set[Series]:
    """Returns the series whose bars before that time may have changed since they were seen. May block."""
    touched = store.versions.changed(
        {each: version for some in seen.values() for each, version in some.versions.items()}
    )
    return {
        series
        for series, some in seen.items()
        if _sources(store, series) != some.versions.keys()
        or any(
            (at := store.versions.changed_since(each, some.versions[each])) is not None and at < some.until
            for each in touched & some.versions.keys()
        )
    }


def _sources(store: BarStore, series: Series) -> set[Series]:
    finer = (each for each in store.timeframes(series.instrument) if each.seconds <= series.timeframe.seconds)
    return {Series(series.instrument), *map(series.at, finer)}


def digest_of(bars: Bars) -> int:
    """Returns a number that differs if any of the bars differs."""
    found = 0
    for column in bars.columns():
        found = crc32(column.tobytes(), found)
    return found


def is_current(series: Series, until: int, now: float) -> bool:
    """Returns False if the market has traded for more than two bars since the last bar closed: its signals are old."""
    instrument, timeframe = series.instrument, series.timeframe
    bar = timeframe.seconds
    if not timeframe.intraday and instrument.asset_class is AssetClass.STOCK:
        bar = _SESSION * MOST_SESSIONS[timeframe]
    return trading_seconds(instrument, until, now) <= 2 * bar + _GRACE
