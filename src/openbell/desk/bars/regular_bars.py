"""Bars without extended hours: what a chart or an indicator with `session: regular` is computed from.

Only stocks have extended hours. Bars of up to 30 minutes lie entirely inside or outside regular hours; of longer bars the
part that was traded in regular hours is computed from minutes, which are fetched as needed. Bars of a day and more hold
regular hours only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from openbell.desk.bars.service import MOST_CACHED, BarService
from openbell.indicators.regular_hours import partly_regular, regular_part_from_minutes, session_days
from openbell.market.bars import Bars, bucket_bounds, closed_at, empty, merge
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.lookback import lookback_start
from openbell.market.series import Series
from openbell.market.session_table import Times
from openbell.market.timeframes import Timeframe
from openbell.stores.port import BarStore, Span

_DAY = 86400
_PIECE = 30 * _DAY


@dataclass(frozen=True, slots=True)
class RegularBars:
    """Bars without extended hours, or with them if they were not to be left out."""

    bars: Bars
    missing: Times = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """The times of bars that are left out although they hold regular hours, because no minutes of them are stored."""
    from_minutes: bool = False
    """True if the bars were computed from minutes."""

    def note(self, count: int) -> str | None:
        """Returns a note if bars are left out that would be among the latest `count`."""
        first = self.bars.time[-count] if count < len(self.bars) else 0
        left_out = int((self.missing >= first).sum())
        if not left_out:
            return None
        return f"session regular: {left_out} bars are left out, because they have no minutes to compute them from"


def has_extended_hours(instrument: Instrument, timeframe: Timeframe) -> bool:
    """Returns True if bars of this timeframe may hold extended hours."""
    return instrument.asset_class is AssetClass.STOCK and timeframe.intraday


def why_unchanged(instrument: Instrument) -> str | None:
    """Returns why `session: regular` changes nothing for an instrument; None for a stock."""
    if instrument.asset_class is AssetClass.STOCK:
        return None
    return f"session regular changes nothing: {instrument} has no extended hours"


async def newest_regular(service: BarService, instrument: Instrument, timeframe: Timeframe, count: int) -> RegularBars:
    """Returns at least the newest `count` closed bars without extended hours, if there are so many, at most `MOST_CACHED`.

    Raises as `BarService.latest` does.
    """
    count = min(MOST_CACHED, count)
    if not has_extended_hours(instrument, timeframe):
        return RegularBars(await service.newest(instrument, timeframe, count))
    latest = await service.newest(instrument, timeframe, 1)
    if not len(latest):
        return RegularBars(latest)
    end = closed_at(latest)
    # One more: the newest bucket of the regular hours may not have closed.
    start = lookback_start(instrument, timeframe, count + 1, end)
    found = await without_extended_hours(service, await service.span(Series(instrument, timeframe), start, end))
    if len(found.bars) >= count:
        return found
    # A symbol that trades seldom, or whose history has gaps, has its bars further back.
    older = await without_extended_hours(service, await service.newest(instrument, timeframe, MOST_CACHED))
    return max(found, older, key=lambda each: len(each.bars))


async def without_extended_hours(service: BarService, bars: Bars) -> RegularBars:
    """Returns a stock's bars without extended hours; bars that have none are returned unchanged."""
    if not has_extended_hours(bars.instrument, bars.timeframe) or not len(bars):
        return RegularBars(bars)
    inside = session_days(bars) >= 0
    if not partly_regular(bars).any():
        return RegularBars(bars.take(inside))
    span = Span(int(bars.time[0]), int(bars.time[-1]) + bars.timeframe.seconds)
    part = await regular_part_of(service, bars, span)
    missing = bars.time[inside & ~part.has_minutes]
    return RegularBars(part.bars.take(np.isfinite(part.bars.close)), missing, from_minutes=True)


@dataclass(frozen=True, slots=True)
class RegularPart:
    """The part of each bar that was traded in regular hours, and which of the bars have minutes to compute it from."""

    bars: Bars
    has_minutes: npt.NDArray[np.bool_]

    def missing(self, count: int) -> tuple[int, int]:
        """Of the latest `count` bars: how many overlap regular hours without minutes, and how many overlap them at all."""
        overlapping = session_days(self.bars.tail(count)) >= 0
        return int((overlapping & ~self.has_minutes[-count:]).sum()), int(overlapping.sum())

    def note(self, count: int) -> str | None:
        """Returns a note if some of the latest `count` bars overlap regular hours and have no minutes."""
        missing, overlapping = self.missing(count)
        if not missing:
            return None
        return f"computed from minutes of regular hours; {missing} of {overlapping} bars have no minutes"


async def regular_part_of(service: BarService, bars: Bars, span: Span) -> RegularPart:
    """Returns the regular-hours part of bars, from the minutes of a span.

    Minutes that the store lacks are fetched. A failure of the feed is logged, and the bars then have no minutes.
    """
    await service.fill(bars.instrument, span)
    return await service.threads.run(_read, service.store, bars, span)


def _read(store: BarStore, bars: Bars, span: Span) -> RegularPart:
    start, end = span.start, span.end
    # In pieces, so that a year of minutes is never in memory at once; bars within a day do not cross midnight.
    edges = [start, *range(start - start % _DAY + _PIECE, end, _PIECE), end]
    pieces, with_minutes = [], [bars.time[:0]]
    for a, b in pairwise(edges):
        minutes = store.read(Series(bars.instrument), a, b)
        pieces.append(regular_part_from_minutes(bars.between(a, b), minutes))
        with_minutes.append(np.unique(bucket_bounds(bars.instrument, bars.timeframe, minutes.time)[0]))
    part = merge(regular_part_from_minutes(bars.between(0, start), empty(bars.instrument)), *pieces)
    return RegularPart(part, np.isin(bars.time, np.concatenate(with_minutes)))
