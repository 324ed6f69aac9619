"""Trading days: what bars from one day on are made of, unless the market never closes.

A stock's trading day is its regular session, a currency's begins at 17:00 in New York on the day before. Days of crypto are
UTC days and need no table.
"""

from __future__ import annotations

from datetime import date

import numpy as np

from openbell.market import currency_days
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.session_table import SessionTable, Times, table_for
from openbell.market.timeframes import Timeframe

_DAY = 86400


def by_trading_day(instrument: Instrument, timeframe: Timeframe) -> bool:
    """Returns True if a bar of a timeframe is made of whole trading days of the instrument."""
    return not timeframe.intraday and instrument.asset_class is not AssetClass.CRYPTO


def by_currency_day(instrument: Instrument, timeframe: Timeframe) -> bool:
    """Returns True if these trading days are those of a currency, which cross midnight UTC."""
    return not timeframe.intraday and instrument.asset_class is AssetClass.FOREX


def trading_days_between(instrument: Instrument, first: float, last: float) -> SessionTable:
    """Returns the trading days of all years that overlap [first, last]."""
    if instrument.asset_class is AssetClass.FOREX:
        return currency_days.days_between(first, last)
    return table_for(first, last)


def begin_of_date(instrument: Instrument, timeframe: Timeframe, at: int) -> int:
    """Returns the time from which bars belong to a date or to later ones, if `at` is midnight UTC; else `at`.

    Callers write a date, or midnight, for the first day that they want. A currency's day of that date has begun on the
    evening before.
    """
    if at % _DAY or not by_currency_day(instrument, timeframe):
        return at
    table = currency_days.days_between(at, at)
    row = int(table.day.searchsorted(at // _DAY))
    return int(table.open[row]) if row < len(table.day) else at


def date_of(instrument: Instrument, timeframe: Timeframe, opened: int) -> date:
    """Returns the date of a bar: of its first trading day for days of currencies, else of its open in UTC."""
    return dates_of(instrument, timeframe, np.array([opened]))[0]


def dates_of(instrument: Instrument, timeframe: Timeframe, opened: Times) -> list[date]:
    """Returns the dates of bars by their opens."""
    days = currency_days.days_at(opened) if by_currency_day(instrument, timeframe) else opened // _DAY
    found: list[date] = days.astype("datetime64[D]").tolist()
    return found


def trading_day(instrument: Instrument, times: Times) -> Times:
    """Returns a number for each minute that is equal for all minutes of a trading day; −1 outside all trading days."""
    if instrument.asset_class is AssetClass.CRYPTO:
        return times // 86400
    if not len(times):
        return times.copy()
    return trading_days_between(instrument, int(times[0]), int(times[-1])).regular(times)
