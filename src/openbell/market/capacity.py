"""The largest number of bars that an instrument can have in a span: an upper bound, computed from its trading hours."""

from __future__ import annotations

import numpy as np

from openbell.market.instruments import AssetClass, Instrument
from openbell.market.plan import buckets
from openbell.market.session_table import table_for
from openbell.market.timeframes import Timeframe


def most_bars(instrument: Instrument, timeframe: Timeframe, start: int, end: int) -> int:
    """Returns the largest possible number of bars that open in [start, end) and close by `end`."""
    if start >= end:
        return 0
    if timeframe.of_days:
        return len(buckets(instrument, timeframe, start, end)[0])
    if instrument.asset_class is not AssetClass.STOCK:
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
