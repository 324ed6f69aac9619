"""Where the bucket of a time begins, and how far back a given number of bars reaches."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from openbell.market.bars import bucket_bounds
from openbell.market.calendar_months import number_of, opens_at
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.session_table import table_of_years
from openbell.market.sessions import FIRST_YEAR, eastern
from openbell.market.timeframes import Timeframe
from openbell.market.trading_days import by_trading_day, trading_days_between

_DAY = 86400
_SESSION = 23_400
"""Seconds of regular hours, except on half days."""
_SESSIONS_A_YEAR = 250
_HOLIDAYS = 50
"""Of so many days of forex, at most one is a holiday on which a pair has no bars."""
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

    A stock's week or month also contains the nights between its sessions, and a month of forex its weekends, although no
    minute bar of a night belongs to a bucket: reading from a night on would build a bar from the remaining days only.
    """
    minute = int(epoch // 60 * 60)
    inside = _last_open(instrument, minute) if by_trading_day(instrument, timeframe) else minute
    start, end = (int(bound[0]) for bound in bucket_bounds(instrument, timeframe, np.array([inside], dtype=np.int64)))
    return start if start <= minute < end else minute


def _last_open(instrument: Instrument, minute: int) -> int:
    """Returns the open of the latest trading day at or before `minute`; `minute` if there is none."""
    opens = trading_days_between(instrument, minute - 7 * _DAY, minute).open
    row = int(opens.searchsorted(minute, side="right")) - 1
    return minute if row < 0 else int(opens[row])


@lru_cache(maxsize=256)  # a question asks for it several times
def lookback_start(instrument: Instrument, timeframe: Timeframe, count: int, end: float) -> int:
    """Returns the start of a bucket such that [start, end) holds `count` closed bars of a liquid instrument.

    Crypto needs exactly `count` buckets, none of them before 1970. Forex needs the number of whole weeks that cover bars
    within a day, a few more days than asked for because of holidays, and exactly `count` weeks or months. For stocks only
    regular hours count, because extended hours may have few bars.
    """
    if instrument.asset_class is AssetClass.CRYPTO:
        if timeframe.months:
            return opens_at(timeframe, max(0, number_of(timeframe, end) - count))
        return bucket_start(instrument, timeframe, bucket_start(instrument, timeframe, end) - count * timeframe.seconds)
    if instrument.asset_class is AssetClass.FOREX:
        if by_trading_day(instrument, timeframe):
            return _forex_lookback_start(instrument, timeframe, count, end)
        weeks = -(-count * timeframe.seconds // (5 * _DAY)) + 1
        return bucket_start(instrument, timeframe, end - weeks * 7 * _DAY)
    return bucket_start(instrument, timeframe, _stock_lookback_start(timeframe, count, end))


def _forex_lookback_start(instrument: Instrument, timeframe: Timeframe, count: int, end: float) -> int:
    """Returns the start of the first of the last `count` buckets of days that have closed, or of the first that exists."""
    holidays = 0 if timeframe.months or timeframe is Timeframe.W1 else 2 + count // _HOLIDAYS
    table = trading_days_between(instrument, max(0.0, end - (count + holidays + 1) * 1.5 * timeframe.seconds), end)
    bucket = table.bucket(timeframe)
    closed = np.flatnonzero(np.append(bucket[1:] != bucket[:-1], True) & (table.close <= end))
    first = np.searchsorted(bucket, bucket[closed[max(0, len(closed) - count - holidays)]]) if len(closed) else 0
    return int(table.open[first]) if len(table.open) else int(end)


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
