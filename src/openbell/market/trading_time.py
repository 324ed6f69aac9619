"""How much trading time is in a span: the age of a price, and the number of bars that an instrument can have.

A stock's Friday close is not stale on Sunday, because the market has not been open since. Of stocks, only regular hours
count for the age, because extended hours may have no trades for a long time.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np

from openbell.market.instruments import AssetClass, Instrument
from openbell.market.series_plan import buckets
from openbell.market.session_table import table_for
from openbell.market.sessions import eastern, forex_open
from openbell.market.timeframes import Timeframe
from openbell.market.trading_days import by_trading_day, trading_days_between

_FRIDAY, _SUNDAY = 4, 6
_CLOSE_HOUR = 17


def trading_seconds(instrument: Instrument, start: float, end: float) -> float:
    """Returns the seconds of [start, end) in which the instrument's market was open, in regular hours."""
    if end <= start:
        return 0.0
    if instrument.asset_class is AssetClass.CRYPTO:
        return end - start
    if instrument.asset_class is AssetClass.FOREX:
        return _forex_seconds(start, end)
    sessions = table_for(start, end)
    overlap = sessions.close.clip(start, end) - sessions.open.clip(start, end)
    return float(overlap.clip(0).sum())


def _forex_seconds(start: float, end: float) -> float:
    total, at = 0.0, start
    while at < end:
        is_open = forex_open(at)
        change = _next(eastern(at), _FRIDAY if is_open else _SUNDAY).timestamp()
        total += min(end, change) - at if is_open else 0.0
        at = change
    return total


def _next(moment: datetime, weekday: int) -> datetime:
    """Returns the first 17:00 in New York on this weekday after `moment`."""
    day = moment + timedelta(days=(weekday - moment.weekday()) % 7)
    found = day.replace(hour=_CLOSE_HOUR, minute=0, second=0, microsecond=0)
    return found if found > moment else found + timedelta(days=7)


def most_bars(instrument: Instrument, timeframe: Timeframe, start: int, end: int) -> int:
    """Returns the largest possible number of bars that open in [start, end) and close by `end`."""
    if start >= end:
        return 0
    is_stock = instrument.asset_class is AssetClass.STOCK
    if timeframe.of_days or (not is_stock and by_trading_day(instrument, timeframe)):
        return len(buckets(instrument, timeframe, start, end)[0])
    if not is_stock:
        return (end - start) // timeframe.seconds
    table = table_for(start, end)
    inside = (table.premarket >= start) & (table.premarket < end)
    if timeframe is Timeframe.D1:
        return int(np.count_nonzero(inside & (table.close <= end)))
    if timeframe is Timeframe.W1:
        return len(np.unique(table.week[inside & (table.close <= end)]))
    # Buckets are anchored to UTC midnight, and extended hours count in them.
    first, last = table.premarket[inside] // timeframe.seconds, (table.end[inside] - 1) // timeframe.seconds
    return int((np.minimum(last + 1, end // timeframe.seconds) - first).clip(0).sum())


def trading_bars(instrument: Instrument, timeframe: Timeframe, start: int, end: int) -> int:
    """Returns how many bars a complete series has in [start, end): without weekends of forex, when few sources have any."""
    if instrument.asset_class is not AssetClass.FOREX or not timeframe.intraday or start >= end:
        return most_bars(instrument, timeframe, start, end)
    table = trading_days_between(instrument, start, end)
    seconds = (np.minimum(table.close, end) - np.maximum(table.open, start)).clip(0).sum()
    return int(seconds) // timeframe.seconds
