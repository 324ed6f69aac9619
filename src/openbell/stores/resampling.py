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
    if timeframe.of_days and series.timeframe.intraday:

        def days(_: Series, count: int, end: int) -> Bars:
            return latest(tail, series, Timeframe.D1, count, end)

        return latest_of_days(days, series, timeframe, count, end, skip)

    def chunk(missing: int) -> int:
        parts_of_one = timeframe.seconds // series.timeframe.seconds
        return max(_LEAST, min(CHUNK, missing * parts_of_one)) if timeframe.intraday else CHUNK

    return _page(_collected(tail, series, timeframe, wanted, end, chunk), count, skip)


def latest_of_days(days: Tail, series: Series, timeframe: Timeframe, count: int, end: int, skip: int = 0) -> Bars:
    """The same of a timeframe that is made of days, which are themselves made of a series: as few days as needed."""
    most = timeframe.seconds // Timeframe.D1.seconds + 1
    made = _collected(days, series.at(Timeframe.D1), timeframe, count + skip, end, lambda missing: missing * most)
    return _page(made, count, skip)


def _collected(
    tail: Tail, series: Series, timeframe: Timeframe, wanted: int, end: int, chunk: Callable[[int], int]
) -> Bars:
    """At least the latest `wanted` closed bars. `chunk` returns how many bars are read at once to make some of them."""
    parts: list[Bars] = [barlib.empty(series.instrument, timeframe)]
    at, more = end, True
    while more and (missing := wanted - sum(map(len, parts))) > 0:
        # One more bucket than is missing: the first bucket of a chunk may be incomplete.
        size = chunk(missing + 1)
        bars = tail(series, size, at)
        more = len(bars) == size
        if more:
            bars, at = _whole_buckets(bars, timeframe)
        parts.insert(1, barlib.resample(bars, timeframe, end))
    return barlib.merge(*parts)


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
