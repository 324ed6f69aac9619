"""Trading days: what bars from one day on are made of, unless the market never closes.

A stock's trading day is its regular session. A currency's begins at 17:00 in New York, when the banks there close, and ends
a day later. It has the date of its end: Monday's begins on Sunday at 17:00. There are five days in a week and none at the
weekend, from Friday 17:00 to Sunday 17:00. New York changes its clocks on Sundays at 2:00, between two days: each day has 24
hours, and begins at 21:00 UTC in summer and at 22:00 UTC in winter. Holidays are days too, because some currencies trade on
them. Days of crypto are UTC days and need no table.
"""

from __future__ import annotations

from datetime import date
from functools import lru_cache

import numpy as np

from openbell.market.instruments import AssetClass, Instrument
from openbell.market.session_table import SessionTable, Times, table_for
from openbell.market.sessions import FIRST_YEAR, LAST_YEAR, eastern, midnight
from openbell.market.timeframes import Timeframe

_DAY = 86400
_CURRENCY_CLOSE = 17 * 3600
"""Seconds after midnight in New York."""
_EPOCH = date(1970, 1, 1).toordinal()
_FIRST_WEEK = 53
"""The week of 4 January 1971, from which days are counted, in weeks since 29 December 1969."""
_WEEKEND = 4 * _DAY
"""Seconds. Every span of this length holds the end of a day."""


def by_trading_day(instrument: Instrument, timeframe: Timeframe) -> bool:
    """Returns True if a bar of a timeframe is made of whole trading days of the instrument."""
    return not timeframe.intraday and instrument.asset_class is not AssetClass.CRYPTO


def by_currency_day(instrument: Instrument, timeframe: Timeframe) -> bool:
    """Returns True if these trading days are those of a currency, which cross midnight UTC."""
    return not timeframe.intraday and instrument.asset_class is AssetClass.FOREX


def trading_days_between(instrument: Instrument, first: float, last: float) -> SessionTable:
    """Returns the trading days of all years that overlap [first, last]."""
    if instrument.asset_class is AssetClass.FOREX:
        return currency_days_between(first, last)
    return table_for(first, last)


def begin_of_date(instrument: Instrument, timeframe: Timeframe, at: int) -> int:
    """Returns the time from which bars belong to a date or to later ones, if `at` is midnight UTC; else `at`.

    Callers write a date, or midnight, for the first day that they want. A currency's day of that date has begun on the
    evening before.
    """
    if at % _DAY or not by_currency_day(instrument, timeframe):
        return at
    table = currency_days_between(at, at)
    row = int(table.day.searchsorted(at // _DAY))
    return int(table.open[row]) if row < len(table.day) else at


def date_of(instrument: Instrument, timeframe: Timeframe, opened: int) -> date:
    """Returns the date of a bar: of its first trading day for days of currencies, else of its open in UTC."""
    return dates_of(instrument, timeframe, np.array([opened]))[0]


def dates_of(instrument: Instrument, timeframe: Timeframe, opened: Times) -> list[date]:
    """Returns the dates of bars by their opens."""
    days = currency_days_at(opened) if by_currency_day(instrument, timeframe) else opened // _DAY
    found: list[date] = days.astype("datetime64[D]").tolist()
    return found


def currency_days_between(first: float, last: float) -> SessionTable:
    """Returns the days of all years that overlap [first, last], and of the years of the days before and after it."""
    return _currency_years(eastern(first - _WEEKEND).year, eastern(last + _WEEKEND).year)


@lru_cache(maxsize=32)
def _currency_years(first_year: int, last_year: int) -> SessionTable:
    years = range(max(first_year, FIRST_YEAR), min(last_year, LAST_YEAR) + 1)
    day, start = (
        np.concatenate([np.empty(0, dtype=np.int64), *(column[n] for column in map(_currency_year, years))])
        for n in (0, 1)
    )
    opens, closes = start + _CURRENCY_CLOSE - _DAY, start + _CURRENCY_CLOSE
    week, weekday = np.divmod(day + 3, 7)  # 1970-01-01 was a Thursday
    return SessionTable(opens, opens, closes, closes, day, (week - _FIRST_WEEK) * 5 + weekday)


@lru_cache(maxsize=128)
def _currency_year(year: int) -> tuple[Times, Times]:
    """Returns the dates of a year's days, as days since 1970, and the times at which these dates begin in New York."""
    first, last = (date(each, 1, 1).toordinal() - _EPOCH for each in (year, year + 1))
    day = np.arange(first, last, dtype=np.int64)
    day = day[(day + 3) % 7 < 5]
    # All days of a week have the same distance from UTC.
    _, at, week = np.unique((day + 3) // 7, return_index=True, return_inverse=True)
    offset = [midnight(date.fromordinal(int(day[each]) + _EPOCH)) - int(day[each]) * _DAY for each in at]
    return day, day * _DAY + np.array(offset, dtype=np.int64)[week]


def currency_days_at(times: Times, length: int = 1) -> Times:
    """Returns for bars that open at sorted times the date of the trading day of each, as days since 1970.

    It is the day in which a bar opens or, if it opens at a weekend, the day that begins before its end, `length` seconds
    later; −1 if none does.
    """
    if not len(times):
        return times.copy()
    table = currency_days_between(int(times[0]), int(times[-1]))
    row = np.searchsorted(table.close, times, side="right")
    inside = row < len(table.close)
    row = np.where(inside, row, -1)
    opens, day = np.append(table.open, 0), np.append(table.day, -1)
    return np.where(inside & (opens[row] < times + length), day[row], -1)


def currency_opens_on(days: Times) -> Times:
    """Returns when the trading days with these dates (days since 1970) begin; −1 for dates at weekends."""
    if not len(days):
        return days.copy()
    table = currency_days_between(int(days.min()) * _DAY, int(days.max()) * _DAY)
    if not len(table.day):
        return np.full(len(days), -1, dtype=np.int64)
    row = np.minimum(np.searchsorted(table.day, days), len(table.day) - 1)
    return np.where(table.day[row] == days, table.open[row], -1)
