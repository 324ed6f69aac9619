"""Trading days of currencies: each begins at 17:00 in New York, when the banks there close, and ends a day later.

A day has the date of its end: Monday's begins on Sunday at 17:00. There are five days in a week and none at the weekend,
from Friday 17:00 to Sunday 17:00. New York changes its clocks on Sundays at 2:00, between two days: each day has 24 hours,
and begins at 21:00 UTC in summer and at 22:00 UTC in winter. Holidays are days too, because some currencies trade on them.
"""

from __future__ import annotations

from datetime import date
from functools import lru_cache

import numpy as np

from openbell.market.session_table import SessionTable, Times
from openbell.market.sessions import eastern, midnight
from openbell.market.us_holidays import FIRST_YEAR, LAST_YEAR

_DAY = 86400
_CLOSE = 17 * 3600
"""Seconds after midnight in New York."""
_EPOCH = date(1970, 1, 1).toordinal()
_FIRST_WEEK = 53
"""The week of 4 January 1971, from which days are counted, in weeks since 29 December 1969."""
_WEEKEND = 4 * _DAY
"""Seconds. Every span of this length holds the end of a day."""


def days_between(first: float, last: float) -> SessionTable:
    """Returns the days of all years that overlap [first, last], and of the years of the days before and after it."""
    return _of_years(eastern(first - _WEEKEND).year, eastern(last + _WEEKEND).year)


@lru_cache(maxsize=32)
def _of_years(first_year: int, last_year: int) -> SessionTable:
    years = range(max(first_year, FIRST_YEAR), min(last_year, LAST_YEAR) + 1)
    day, start = (
        np.concatenate([np.empty(0, dtype=np.int64), *(column[n] for column in map(_year, years))]) for n in (0, 1)
    )
    opens, closes = start + _CLOSE - _DAY, start + _CLOSE
    week, weekday = np.divmod(day + 3, 7)  # 1970-01-01 was a Thursday
    return SessionTable(opens, opens, closes, closes, day, (week - _FIRST_WEEK) * 5 + weekday)


@lru_cache(maxsize=128)
def _year(year: int) -> tuple[Times, Times]:
    """Returns the dates of a year's days, as days since 1970, and the times at which these dates begin in New York."""
    first, last = (date(each, 1, 1).toordinal() - _EPOCH for each in (year, year + 1))
    day = np.arange(first, last, dtype=np.int64)
    day = day[(day + 3) % 7 < 5]
    # All days of a week have the same distance from UTC.
    _, at, week = np.unique((day + 3) // 7, return_index=True, return_inverse=True)
    offset = [midnight(date.fromordinal(int(day[each]) + _EPOCH)) - int(day[each]) * _DAY for each in at]
    return day, day * _DAY + np.array(offset, dtype=np.int64)[week]


def days_at(times: Times, length: int = 1) -> Times:
    """Returns for bars that open at sorted times the date of the trading day of each, as days since 1970.

    It is the day in which a bar opens or, if it opens at a weekend, the day that begins before its end, `length` seconds
    later; −1 if none does.
    """
    if not len(times):
        return times.copy()
    table = days_between(int(times[0]), int(times[-1]))
    row = np.searchsorted(table.close, times, side="right")
    inside = row < len(table.close)
    row = np.where(inside, row, -1)
    opens, day = np.append(table.open, 0), np.append(table.day, -1)
    return np.where(inside & (opens[row] < times + length), day[row], -1)


def opens_on(days: Times) -> Times:
    """Returns when the trading days with these dates (days since 1970) begin; −1 for dates at weekends."""
    if not len(days):
        return days.copy()
    table = days_between(int(days.min()) * _DAY, int(days.max()) * _DAY)
    if not len(table.day):
        return np.full(len(days), -1, dtype=np.int64)
    row = np.minimum(np.searchsorted(table.day, days), len(table.day) - 1)
    return np.where(table.day[row] == days, table.open[row], -1)
