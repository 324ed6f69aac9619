"""Resampled bars from stored minutes, read in chunks from the latest back, so that a year is never in memory at once."""

from __future__ import annotations

from collections.abc import Callable

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.errors import StoreError
from openbell.market.instruments import Instrument
from openbell.market.timeframes import Timeframe

CHUNK = 43_200
"""The most minutes that are read at once: thirty days."""
_LEAST = 3000
"""The fewest minutes that are read at once."""

Tail = Callable[[Instrument, int, int], Bars]
"""Returns the latest `count` minute bars that opened before `end`."""


def latest(tail: Tail, instrument: Instrument, timeframe: Timeframe, count: int, end: int, skip: int = 0) -> Bars:
    """The latest `count` closed bars of a timeframe, after leaving out the latest `skip` of them."""
    wanted = count + skip
    if timeframe is Timeframe.M1:
        return _page(tail(instrument, wanted, end), count, skip)
    parts: list[Bars] = [barlib.empty(instrument, timeframe)]
    at, more = end, True
    while more and (missing := wanted - sum(map(len, parts))) > 0:
        # One more bucket than is missing: the first bucket of a chunk may be incomplete.
        chunk = max(_LEAST, min(CHUNK, (missing + 1) * timeframe.seconds // 60)) if timeframe.intraday else CHUNK
        minutes = tail(instrument, chunk, at)
        more = len(minutes) == chunk
        if more:
            minutes, at = _whole_buckets(minutes, timeframe)
        parts.insert(1, barlib.resample(minutes, timeframe, end))
    return _page(barlib.merge(*parts), count, skip)


def _page(found: Bars, count: int, skip: int) -> Bars:
    return found.take(slice(max(0, len(found) - count - skip), max(0, len(found) - skip))).copy()


def _whole_buckets(minutes: Bars, timeframe: Timeframe) -> tuple[Bars, int]:
    """The minutes without the first bucket, which may be incomplete, and the `end` of the next read."""
    start, _ = barlib.bucket_bounds(minutes.instrument, timeframe, minutes.time)
    inside = start[start >= 0]
    if not len(inside):
        return minutes.take(slice(0, 0)), int(minutes.time[0])
    whole = start > inside[0]
    if not whole.any():
        raise StoreError(f"{minutes.instrument}: more than {CHUNK} minutes in one bar of {timeframe.name}")
    return minutes.take(whole), int(minutes.time[int(whole.argmax())])
