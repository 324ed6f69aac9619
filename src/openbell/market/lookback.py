"""How far back to look for a number of bars, and where a bar of any timeframe begins and ends."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from openbell.market.bars import bucket_bounds
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.sessions import eastern, sessions_of
from openbell.market.timeframes import Timeframe

REGULAR_MINUTES = 390
_DAY = 86400


def floor(instrument: Instrument, timeframe: Timeframe, epoch: float) -> int:
    """The start of the bucket that holds `epoch`; for days of stocks outside the session, the minute itself."""
    minute = int(epoch // 60 * 60)
    start = int(bucket_bounds(instrument, timeframe, np.array([minute], dtype=np.int64))[0][0])
    return minute if start < 0 else start


def horizon(instrument: Instrument, timeframe: Timeframe, count: int, end: float) -> int:
    """A time early enough that [it, end) holds `count` bars of a liquid instrument, on a bucket's start.

    Crypto needs exactly that long, forex as many whole weeks as cover it. Stocks are counted as if only regular hours
    traded, so that thin extended hours do not cut the calculation short.
    """
    if instrument.asset_class is AssetClass.CRYPTO:
        return floor(instrument, timeframe, floor(instrument, timeframe, end) - count * timeframe.seconds)
    if instrument.asset_class is AssetClass.FOREX:
        weeks = -(-count * timeframe.seconds // (5 * _DAY)) + 1
        return floor(instrument, timeframe, end - weeks * 7 * _DAY)
    per_session = {Timeframe.D1: 1.0, Timeframe.W1: 0.2}.get(timeframe, REGULAR_MINUTES * 60 / timeframe.seconds)
    return floor(instrument, timeframe, _sessions_before(end, int(-(-count // per_session)) + 1))


def _sessions_before(end: float, count: int) -> int:
    """The premarket of the session `count` sessions before `end`."""
    year = eastern(end).year
    sessions = sessions_of(year)
    at = bisect_left([s.premarket for s in sessions], end)
    while at < count and (earlier := sessions_of(year - 1)):
        year -= 1
        at += len(earlier)
        sessions = earlier + sessions
    return sessions[max(0, at - count)].premarket if sessions else int(end)
