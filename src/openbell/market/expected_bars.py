"""How many bars an instrument can have in a span, and how many of them are of trading time."""

from __future__ import annotations

import numpy as np

from openbell.market.instruments import AssetClass, Instrument
from openbell.market.series_plan import buckets
from openbell.market.session_table import table_for
from openbell.market.timeframes import Timeframe
from openbell.market.trading_days import by_trading_day, trading_days_between


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
