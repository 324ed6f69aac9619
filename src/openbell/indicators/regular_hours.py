"""Regular hours in bars: the session that each bar shares time with, and what of the bar was traded in it.

A stock's bars of up to 30 minutes lie wholly inside or outside regular hours. Buckets are anchored to UTC midnight, so
larger ones may hold the opening or the closing, and only the minutes tell what of those was traded in regular hours.
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
"""Open, high, low, close and volume where nothing was traded."""


def session_rows(bars: Bars) -> tuple[SessionTable, Times]:
    """The sessions around a stock's bars, and for each bar the row of the one it shares any time with, or −1.

    Of a week's sessions it is the first.
    """
    if not len(bars):
        return table_for(0, 0), bars.time.copy()
    ends = bars.time + min(bars.timeframe.seconds, _DAY)
    table = table_for(int(bars.time[0]), int(ends[-1]))
    row = np.searchsorted(table.open, ends).astype(np.int64) - 1
    closes = np.append(table.close, -1)  # −1: before any session
    return table, np.where(bars.time < closes[row], row, -1)


def session_days(bars: Bars) -> Times:
    """A number per bar that is equal within a trading day, −1 for a stock's bars without any time in regular hours.

    A bar's number depends on no other bar: it is the opening of its session, or the UTC day where trading never stops.
    """
    if bars.instrument.asset_class is not AssetClass.STOCK:
        return bars.time // _DAY
    table, row = session_rows(bars)
    return np.append(table.open, -1)[row]


def cut_by_session(bars: Bars) -> npt.NDArray[np.bool_]:
    """Which bars have time both inside and outside regular hours."""
    if bars.instrument.asset_class is not AssetClass.STOCK or not bars.timeframe.intraday:
        return np.zeros(len(bars), dtype=bool)
    table, row = session_rows(bars)
    opens, closes = np.append(table.open, 0), np.append(table.close, 0)
    cut = (bars.time < opens[row]) | (bars.time + bars.timeframe.seconds > closes[row])
    return np.asarray(cut & (row >= 0))


def regular_part(bars: Bars) -> Bars:
    """Each bar as far as it was traded in regular hours; where it was not, without prices (NaN) and volume (0).

    Raises `DataError` if a bar holds the opening or the closing: `regular_part_of_minutes` is for those.
    """
    if bars.instrument.asset_class is not AssetClass.STOCK or not bars.timeframe.intraday:
        return bars
    if cut_by_session(bars).any():
        raise DataError(
            f"{bars.instrument}: {bars.timeframe.name} bars hold more than regular hours; "
            "give what was traded in those, or bars of 30 minutes at most"
        )
    inside = session_days(bars) >= 0
    pairs = zip(bars.columns()[1:], _NOTHING, strict=True)
    return Bars(bars.instrument, bars.timeframe, bars.time, *(np.where(inside, *pair) for pair in pairs))


def regular_part_of_minutes(bars: Bars, minutes: Bars) -> Bars:
    """The same of any stock's bars within a day, from the minutes that they were made of.

    Bars before the minutes come out as if nothing had been traded in them.
    """
    parts = resample(minutes.take(session_days(minutes) >= 0), bars.timeframe, inf)
    parts = parts.take(np.isin(parts.time, bars.time))
    place = np.searchsorted(bars.time, parts.time)
    columns = [np.full(len(bars), nothing) for nothing in _NOTHING]
    for column, part in zip(columns, parts.columns()[1:], strict=True):
        column[place] = part
    return Bars(bars.instrument, bars.timeframe, bars.time, *columns)


def typical_price(bars: Bars) -> Values:
    """The mean of high, low and close; 0 where nothing was traded, so that it has no weight rather than no value."""
    return np.where(bars.volume > 0.0, (bars.high + bars.low + bars.close) / 3.0, 0.0)
