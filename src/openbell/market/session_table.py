"""Sessions as numpy columns, to find the session of many bar times at once.

The trading days of currencies have the same columns (`market.trading_days`); a day of theirs is regular from end to end.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from openbell.market.sessions import (
    CLOSE,
    END,
    FIRST_YEAR,
    HALF_CLOSE,
    HALF_END,
    LAST_YEAR,
    OPEN,
    PREMARKET,
    eastern,
    half_days,
    midnight,
    trading_days,
)
from openbell.market.timeframes import Timeframe

_EPOCH = date(1970, 1, 1).toordinal()
Times = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SessionTable:
    """The sessions of some whole years, one row per session, times in epoch seconds."""

    premarket: Times
    open: Times
    close: Times
    end: Times
    day: Times
    """The session's date, as days since 1970."""
    number: Times
    """How many sessions came before each one since 4 January 1971, the first Monday of the calendar.

    It is the anchor of bars of several days, and it is the same for every table: the count does not depend on the years in
    question. No session of stocks comes before it, so that every bar has a whole number of sessions."""

    @property
    def week(self) -> Times:
        """The date of the Monday of each session's week, as days since 1970."""
        return self.day - (self.day + 3) % 7

    def bucket(self, timeframe: Timeframe) -> Times:
        """Returns for each session a number that is equal for all sessions of a bar, and greater for later bars."""
        if timeframe.months:
            return (
                np.asarray(self.day.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64))
                // timeframe.months
            )
        if timeframe is Timeframe.W1:
            return self.week
        return self.number // (timeframe.seconds // 86400)

    def regular(self, times: Times) -> Times:
        """Returns for each time the row of the session whose regular hours contain it, or −1."""
        return self._within(times, self.open, self.close)

    def extended(self, times: Times) -> Times:
        """Returns for each time the row of the session whose regular or extended hours contain it, or −1."""
        return self._within(times, self.premarket, self.end)

    @staticmethod
    def _within(times: Times, starts: Times, ends: Times) -> Times:
        if not len(starts):
            return np.full(len(times), -1, dtype=np.int64)
        row = np.searchsorted(starts, times, side="right").astype(np.int64) - 1
        inside = (row >= 0) & (times < ends[np.maximum(row, 0)])
        return np.where(inside, row, -1)


@lru_cache(maxsize=32)
def table_of_years(first_year: int, last_year: int) -> SessionTable:
    """Returns the sessions of these years and those between them."""
    years = range(max(first_year, FIRST_YEAR), min(last_year, LAST_YEAR) + 1)
    columns = zip(*(_year(year) for year in years), strict=True) if years else [[np.empty(0, dtype=np.int64)]] * 5
    premarket, opens, close, end, day = (np.concatenate(column) for column in columns)
    number = np.arange(len(day), dtype=np.int64) + (_sessions_before(years.start) if years else 0)
    return SessionTable(premarket, opens, close, end, day, number)


@lru_cache(maxsize=256)
def _sessions_before(year: int) -> int:
    """Returns the number of sessions of the calendar before a year."""
    return 0 if year <= FIRST_YEAR else _sessions_before(year - 1) + len(trading_days(year - 1))


@lru_cache(maxsize=128)
def _year(year: int) -> tuple[Times, ...]:
    """Returns the columns of one year. Not from `sessions_of`: twenty years of its objects take 50 ms."""
    days, halves = trading_days(year), half_days(year)
    day = np.array([each.toordinal() for each in days], dtype=np.int64) - _EPOCH
    # Clocks change on Sundays: all sessions of a week have the same distance from UTC.
    _, first, week = np.unique(day - (day + 3) % 7, return_index=True, return_inverse=True)
    start = day * 86400 + np.array([midnight(days[at]) - day[at] * 86400 for at in first], dtype=np.int64)[week]
    half = np.array([each in halves for each in days], dtype=bool)
    return (
        start + PREMARKET,
        start + OPEN,
        start + np.where(half, HALF_CLOSE, CLOSE),
        start + np.where(half, HALF_END, END),
        day,
    )


def table_for(first: float, last: float) -> SessionTable:
    """Returns the sessions of all years that overlap [first, last]."""
    return table_of_years(eastern(first).year, eastern(last).year)
