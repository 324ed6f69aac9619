"""Trading days: the one that each bar belongs to, the part of a stock's bar in regular hours, and sums that restart each
day.

Bars of up to 30 minutes lie entirely inside or outside regular hours. Buckets are anchored to UTC midnight, so longer bars
may contain the opening or the closing; their regular part can only be computed from minutes.
"""

from __future__ import annotations

from math import inf, nan

import numpy as np
import numpy.typing as npt

from openbell.market.bars import Bars, Values, resample
from openbell.market.errors import DataError
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.session_table import SessionTable, Times, table_for
from openbell.market.trading_days import currency_days_at

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
    """A number per bar that is equal within a trading day, −1 for bars that overlap none.

    It does not depend on the other bars: it is the session's opening time for stocks, the UTC day for crypto, and the date
    of the day from 17:00 New York for forex. A forex bar of more than an hour that holds 17:00 belongs to the day in which
    it opens; on Sunday, to Monday's.
    """
    if bars.instrument.asset_class is AssetClass.CRYPTO:
        return bars.time // _DAY
    if bars.instrument.asset_class is AssetClass.FOREX:
        return currency_days_at(bars.time, min(bars.timeframe.seconds, _DAY))
    table, row = session_rows(bars)
    return np.append(table.open, -1)[row]


def calendar_number(instrument: Instrument, day: Times, period: str) -> Times:
    """A number of the week, month or year of each day of `session_days`, which must not be −1."""
    date = day // _DAY if instrument.asset_class is AssetClass.STOCK else day  # a session opens on its date in UTC too
    if period == "week":
        return (date + 3) // 7  # 1970-01-01 was a Thursday
    unit = "M" if period == "month" else "Y"
    return date.astype("datetime64[D]").astype(f"datetime64[{unit}]").astype(np.int64)


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

    The regular hours of forex are its trading days: files may have quotes of weekends. Raises `DataError` if a bar lies
    partly inside regular hours: use `regular_part_from_minutes` for such bars.
    """
    if bars.instrument.asset_class is AssetClass.CRYPTO or not bars.timeframe.intraday:
        return bars
    if partly_regular(bars).any():
        raise DataError(
            f"{bars.instrument}: {bars.timeframe.name} bars hold more than regular hours; "
            "pass their regular-hours part, or use bars of 30 minutes or less"
        )
    inside = session_days(bars) >= 0
    if inside.all():
        return bars
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


def day_starts(day: Times) -> Times:
    """The index of the first bar of each run of equal days."""
    return np.flatnonzero(np.concatenate((np.full(min(1, len(day)), fill_value=True), day[1:] != day[:-1])))


def day_sums(values: Values, begins: Times) -> Values:
    """The sum since the latest of `begins`, this bar included.

    Loops over the days, or over the bars of the longest day, whichever are fewer: daily bars are many days of one bar.
    """
    out = values.copy()
    if not len(begins):
        return out
    ends = np.append(begins[1:], len(values))
    sizes = ends - begins
    if len(begins) <= (longest := int(sizes.max())):
        for first, last in zip(begins.tolist(), ends.tolist(), strict=True):
            out[first:last] = np.cumsum(values[first:last])
    else:
        for place in range(1, longest):
            at = begins[sizes > place] + place
            out[at] += out[at - 1]
    return out
