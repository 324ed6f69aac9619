"""How many bars of a series make a year, by the time in which its instrument trades."""

from __future__ import annotations

import numpy as np

from openbell.market.bars import Bars
from openbell.market.instruments import AssetClass
from openbell.market.session_table import table_for
from openbell.market.timeframes import Timeframe

DAYS = {AssetClass.STOCK: 252.0, AssetClass.CRYPTO: 365.0, AssetClass.FOREX: 260.0}
"""Trading days in a year."""
_WEEK = {AssetClass.STOCK: 5.0, AssetClass.CRYPTO: 7.0, AssetClass.FOREX: 5.0}
_DAY = 86400
_REGULAR_HOURS = 6.5


def bars_per_year(bars: Bars) -> float:
    """Returns the number of bars in a year of trading; more than 0.

    A year has 252 days for stocks, 365 for crypto and 260 for forex; a week has 5, 7 and 5. Crypto and forex trade around
    the clock. Of stocks, the number of intraday bars in a day is the mean over the sessions that the bars touch, so that it
    is right with and without extended hours.
    """
    kind, timeframe = bars.instrument.asset_class, bars.timeframe
    if timeframe.months:
        return 12 / timeframe.months
    if timeframe.of_days:
        return DAYS[kind] * _DAY / timeframe.seconds
    if timeframe is Timeframe.W1:
        return DAYS[kind] / _WEEK[kind]
    if not timeframe.intraday:
        return DAYS[kind]
    if kind is AssetClass.STOCK:
        return DAYS[kind] * _bars_per_session(bars)
    return DAYS[kind] * _DAY / timeframe.seconds


def _bars_per_session(bars: Bars) -> float:
    if len(bars):
        table = table_for(int(bars.time[0]) - _DAY, int(bars.time[-1]) + _DAY)
        session = table.extended(bars.time)
        touched = len(np.unique(session[session >= 0]))
        if touched:
            return len(bars) / touched
    return _REGULAR_HOURS * 3600 / bars.timeframe.seconds
