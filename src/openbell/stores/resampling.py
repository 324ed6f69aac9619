"""Bars of a larger timeframe from stored bars, read in chunks from the latest back: a year of minutes is never in memory."""

from __future__ import annotations

from collections.abc import Callable

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.errors import StoreError
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe

CHUNK = 43_200
"""The most bars that are read at once; of minutes, thirty days."""
_LEAST = 3000
"""The fewest bars that are read at once."""

Tail = Callable[[Series, int, int], Bars]
"""Returns the latest `count` bars of a series that opened before `end`."""


def latest(tail: Tail, series: Series, timeframe: Timeframe, count: int, end: int, skip: int = 0) -> Bars:
    """The latest `count` closed bars of a timeframe, made of a series, after leaving out the latest `skip` of them."""
    wanted = count + skip
    if timeframe is series.timeframe:
        # The bars of the last bucket may not have closed at `end`; minutes that opened before it have.
        spare = 0 if timeframe is Timeframe.M1 else 1
        return _page(barlib.resample(tail(series, wanted + spare, end), timeframe, end), count, skip)
    parts: list[Bars] = [barlib.empty(series.instrument, timeframe)]
    at, more = end, True
    while more and (missing := wanted - sum(map(len, parts))) > 0:
        # One more bucket than is missing: the first bucket of a chunk may be incomplete.
        parts_of_one = timeframe.seconds // series.timeframe.seconds
        chunk = max(_LEAST, min(CHUNK, (missing + 1) * parts_of_one)) if timeframe.intraday else CHUNK
        bars = tail(series, chunk, at)
        more = len(bars) == chunk
        if more:
            bars, at = _whole_buckets(bars, timeframe)
        parts.insert(1, barlib.resample(bars, timeframe, end))
    return _page(barlib.merge(*parts), count, skip)


def _page(found: Bars, count: int, skip: int) -> Bars:
    return found.take(slice(max(0, len(found) - count - skip), max(0, len(found) - skip))).copy()


def _whole_buckets(bars: Bars, timeframe: Timeframe) -> tuple[Bars, int]:
    """The bars without the first bucket, which may be incomplete, and the `end` of the next read."""
    start, _ = barlib.bucket_bounds(bars.instrument, timeframe, bars.time)
    inside = start[start >= 0]
    if not len(inside):
        return bars.take(slice(0, 0)), int(bars.time[0])
    whole = start > inside[0]
    if not whole.any():
        raise StoreError(f"{bars.series}: more than {CHUNK} bars in one bar of {timeframe.name}")
    return bars.take(whole), int(bars.time[int(whole.argmax())])
