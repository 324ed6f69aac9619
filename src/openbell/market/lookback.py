"""Where the bucket of a time begins, and how far back a given number of bars reaches."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from openbell.market.bars import bucket_bounds
from openbell.market.calendar_months import number_of, opens_at
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.session_table import table_for, table_of_years
from openbell.market.sessions import eastern
from openbell.market.timeframes import Timeframe
from openbell.market.us_holidays import FIRST_YEAR

_DAY = 86400
_SESSION = 23_400
"""Seconds of regular hours, except on half days."""
_SESSIONS_A_YEAR = 250
MOST_SESSIONS = {
    Timeframe.D1: 1,
    Timeframe.D2: 2,
    Timeframe.D3: 3,
    Timeframe.W1: 5,
    Timeframe.MONTH: 23,
    Timeframe.QUARTER: 64,
    Timeframe.HALF: 128,
    Timeframe.YEAR: 254,
}
"""The most sessions that a stock's bar of a timeframe holds."""


def bucket_start(instrument: Instrument, timeframe: Timeframe, epoch: float) -> int:
    """Returns the start of the bucket that contains `epoch`; its minute if it is outside all buckets.

    A stock's week or month also contains the nights between its sessions, although no minute bar of a night belongs to a
    bucket: reading from a night on would build a bar from the remaining sessions only.
    """
    minute = int(epoch // 60 * 60)
    by_session = instrument.asset_class is AssetClass.STOCK and not timeframe.intraday
    inside = _last_open(minute) if by_session else minute
    start, end = (int(bound[0]) for bound in bucket_bounds(instrument, timeframe, np.array([inside], dtype=np.int64)))
    return start if start <= minute < end else minute


def _last_open(minute: int) -> int:
    """Returns the open of the latest session at or before `minute`; `minute` if there is none."""
    opens = table_for(minute - 7 * _DAY, minute).open
    row = int(opens.searchsorted(minute, side="right")) - 1
    return minute if row < 0 else int(opens[row])


@lru_cache(maxsize=256)  # a question asks for it several times
def lookback_start(instrument: Instrument, timeframe: Timeframe, count: int, end: float) -> int:
    """Returns the start of a bucket such that [start, end) holds `count` closed bars of a liquid instrument.

    Crypto needs exactly `count` buckets, forex the number of whole weeks that cover them, and both need `count` calendar
    periods, none of them before 1970. For stocks only regular hours count, because extended hours may have few bars.
    """
    if timeframe.months and instrument.asset_class is not AssetClass.STOCK:
        return opens_at(timeframe, max(0, number_of(timeframe, end) - count))
    if instrument.asset_class is AssetClass.CRYPTO:
        return bucket_start(instrument, timeframe, bucket_start(instrument, timeframe, end) - count * timeframe.seconds)
    if instrument.asset_class is AssetClass.FOREX:
        weeks = -(-count * timeframe.seconds // (5 * _DAY)) + 1
        return bucket_start(instrument, timeframe, end - weeks * 7 * _DAY)
    return bucket_start(instrument, timeframe, _stock_lookback_start(timeframe, count, end))


def _stock_lookback_start(timeframe: Timeframe, count: int, end: float) -> int:
    """Returns the premarket start of the session from which the regular hours hold `count` closed bars.

    Hours are added up session by session, because half days are shorter. A bucket that is unfinished at `end` adds less
    than one bar's time, and an unfinished week at most four closed sessions, so neither counts as a closed bar.
    """
    sessions = MOST_SESSIONS.get(timeframe)
    wanted = count * (sessions or timeframe.seconds)
    last = eastern(end).year
    first = last - int(wanted / (1 if sessions else _SESSION) / _SESSIONS_A_YEAR) - 1
    while True:
        first = max(first // 5 * 5, FIRST_YEAR)  # few different tables are built
        table = table_of_years(first, last)
        begun = int(np.searchsorted(table.open, end))
        opens, closes = table.open[:begun], table.close[:begun]
        added = np.asarray(closes <= end if sessions else np.minimum(closes, end) - opens, dtype=float)
        reached = np.cumsum(added[::-1]) >= wanted
        if reached.any():
            return int(table.premarket[begun - 1 - int(reached.argmax())])
        if first <= FIRST_YEAR:
            return int(table.premarket[0]) if begun else int(end)
        first -= 10
