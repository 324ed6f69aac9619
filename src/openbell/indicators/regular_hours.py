"""Regular hours of stocks: the session that each bar overlaps, and the part of the bar that was traded in it.

Bars of up to 30 minutes lie entirely inside or outside regular hours. Buckets are anchored to UTC midnight, so longer bars
may contain the opening or the closing; their regular part can only be computed from minutes.
"""

from __future__ import annotations

from math import inf, nan

import numpy as np
import numpy.typing as npt

from openbell.market.bars import Bars, Values, resample
from openbell.market.errors import DataError
from openbell.market.instruments import AssetClass
from openbell.market.session_table import SessionTable, Times, table_for

_DAY = 86400
_NOTHING = (nan, nan, nan, nan, 0.0)
"""Open, high, low, close and volume of a bar without trades in regular hours."""


def session_rows(bars: Bars) -> tuple[SessionTable, Times]:
    """The sessions around a stock's bars, and for each bar the row of the session that it overlaps, or −1.

    A weekly bar has the row of its first session.
    """
    if not len(bars):
        return table_for(0, 0), bars.time.copy()
    ends = bars.time + min(bars.timeframe.seconds, _DAY)
    table = table_for(int(bars.time[0]), int(ends[-1]))
    row = np.searchsorted(table.open, ends).astype(np.int64) - 1
    closes = np.append(table.close, -1)  # −1: before any session
    return table, np.where(bars.time < closes[row], row, -1)


def session_days(bars: Bars) -> Times:
    """A number per bar that is equal within a trading day, −1 for a stock's bars that do not overlap regular hours.

    It does not depend on the other bars: it is the session's opening time, or the UTC day for instruments that trade around
    the clock.
    """
    if bars.instrument.asset_class is not AssetClass.STOCK:
        return bars.time // _DAY
    table, row = session_rows(bars)
    return np.append(table.open, -1)[row]


def partly_regular(bars: Bars) -> npt.NDArray[np.bool_]:
    """Mask of the bars that lie partly inside and partly outside regular hours."""
    if bars.instrument.asset_class is not AssetClass.STOCK or not bars.timeframe.intraday:
        return np.zeros(len(bars), dtype=bool)
    table, row = session_rows(bars)
    opens, closes = np.append(table.open, 0), np.append(table.close, 0)
    cut = (bars.time < opens[row]) | (bars.time + bars.timeframe.seconds > closes[row])
    return np.asarray(cut & (row >= 0))


def regular_part(bars: Bars) -> Bars:
    """The part of each bar that was traded in regular hours; NaN prices and volume 0 for bars outside of them.

    Raises `DataError` if a bar lies partly inside regular hours: use `regular_part_from_minutes` for such bars.
    """
    if bars.instrument.asset_class is not AssetClass.STOCK or not bars.timeframe.intraday:
        return bars
    if partly_regular(bars).any():
        raise DataError(
            f"{bars.instrument}: {bars.timeframe.name} bars hold more than regular hours; "
            "pass their regular-hours part, or use bars of 30 minutes or less"
        )
    inside = session_days(bars) >= 0
    pairs = zip(bars.columns()[1:], _NOTHING, strict=True)
    return Bars(bars.instrument, bars.timeframe, bars.time, *(np.where(inside, *pair) for pair in pairs))


def regular_part_from_minutes(bars: Bars, minutes: Bars) -> Bars:
    """The regular-hours part of a stock's intraday bars, from the minutes that they were built from.

    Bars before the first minute are returned as bars without trades.
    """
    parts = resample(minutes.take(session_days(minutes) >= 0), bars.timeframe, inf)
    parts = parts.take(np.isin(parts.time, bars.time))
    place = np.searchsorted(bars.time, parts.time)
    columns = [np.full(len(bars), nothing) for nothing in _NOTHING]
    for column, part in zip(columns, parts.columns()[1:], strict=True):
        column[place] = part
    return Bars(bars.instrument, bars.timeframe, bars.time, *columns)


def typical_price(bars: Bars) -> Values:
    """The mean of high, low and close; 0 (not NaN) for bars without trades, so that sums ignore them."""
    return np.where(bars.volume > 0.0, (bars.high + bars.low + bars.close) / 3.0, 0.0)
