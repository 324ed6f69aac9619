"""Larger bars from stored minutes, newest first, so that a year is never in memory at once."""

from __future__ import annotations

from collections.abc import Callable

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.errors import StoreError
from openbell.market.instruments import Instrument
from openbell.market.timeframes import Timeframe

CHUNK = 43_200
"""Minutes that are read at once: thirty days."""

Tail = Callable[[Instrument, int, int], Bars]
"""The newest so many minute bars that opened before a time."""


def newest(tail: Tail, instrument: Instrument, timeframe: Timeframe, count: int, end: int, skip: int = 0) -> Bars:
    """The newest `count` closed bars of a timeframe, leaving out the `skip` newest of them."""
    wanted = count + skip
    if timeframe is Timeframe.M1:
        found = tail(instrument, wanted, end)
        return found.take(slice(max(0, len(found) - wanted), max(0, len(found) - skip))).copy()
    parts: list[Bars] = [barlib.empty(instrument, timeframe)]
    at, more = end, True
    while more and (missing := wanted - sum(map(len, parts))) > 0:
        # One more bucket than is missing: the first of a chunk may be cut.
        chunk = max(_LEAST, min(CHUNK, (missing + 1) * timeframe.seconds // 60)) if timeframe.intraday else CHUNK
        minutes = tail(instrument, chunk, at)
        more = len(minutes) == chunk
        if more:
            minutes, at = _whole_buckets(minutes, timeframe)
        parts.insert(1, barlib.resample(minutes, timeframe, end))
    found = barlib.merge(*parts)
    return found.take(slice(max(0, len(found) - wanted), max(0, len(found) - skip))).copy()


_LEAST = 3000


def _whole_buckets(minutes: Bars, timeframe: Timeframe) -> tuple[Bars, int]:
    """Minutes without those of the first bucket, which may be cut, and where the next read has to end."""
    start, _ = barlib.bucket_bounds(minutes.instrument, timeframe, minutes.time)
    inside = start[start >= 0]
    if not len(inside):
        return minutes.take(slice(0, 0)), int(minutes.time[0])
    whole = start > inside[0]
    if not whole.any():
        raise StoreError(f"{minutes.instrument}: more than {CHUNK} minutes in one bar of {timeframe.name}")
    return minutes.take(whole), int(minutes.time[int(whole.argmax())])
