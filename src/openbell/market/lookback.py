"""How far back to look for a number of bars, and where a bar of any timeframe begins and ends."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from openbell.market.bars import bucket_bounds
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.session_table import table_for
from openbell.market.sessions import Session, eastern, sessions_of
from openbell.market.timeframes import Timeframe

_DAY = 86400


def floor(instrument: Instrument, timeframe: Timeframe, epoch: float) -> int:
    """The start of the bucket that `epoch` falls into, or its minute where no bucket is under way.

    A stock's week is under way in the nights between its sessions too, although their minutes belong to no bucket: a
    reader that began there would build the week of the sessions that are left.
    """
    minute = int(epoch // 60 * 60)
    by_session = instrument.asset_class is AssetClass.STOCK and not timeframe.intraday
    inside = _last_open(minute) if by_session else minute
    start, end = (int(bound[0]) for bound in bucket_bounds(instrument, timeframe, np.array([inside], dtype=np.int64)))
    return start if start <= minute < end else minute


def _last_open(minute: int) -> int:
    """When the newest session up to that minute opened; the minute itself if there was none."""
    opens = table_for(minute - 7 * _DAY, minute).open
    row = int(opens.searchsorted(minute, side="right")) - 1
    return minute if row < 0 else int(opens[row])


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
    return floor(instrument, timeframe, _stock_horizon(timeframe, count, end))


def _stock_horizon(timeframe: Timeframe, count: int, end: float) -> int:
    """The premarket of the session from which on regular hours hold `count` closed bars.

    Hours are added up session by session, since half days have fewer. A bucket that `end` cuts has less than a bar's time,
    so it never stands for a closed one; a week that `end` cuts has four closed sessions at most.
    """
    sessions = {Timeframe.D1: 1, Timeframe.W1: 5}.get(timeframe)
    left = float(count * (sessions or timeframe.seconds))
    start = int(end)
    for session in _sessions_before(end):
        start = session.premarket
        left -= session.close <= end if sessions else min(session.close, end) - session.open
        if left <= 0:
            break
    return start


def _sessions_before(end: float) -> Iterator[Session]:
    """The sessions that opened before `end`, newest first."""
    year = eastern(end).year
    while sessions := sessions_of(year):
        yield from (session for session in reversed(sessions) if session.open < end)
        year -= 1
