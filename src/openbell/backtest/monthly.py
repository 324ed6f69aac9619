"""The returns of a run by month."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from openbell.market.bars import Bars, Values, bucket_bounds
from openbell.market.instruments import AssetClass
from openbell.market.trading_days import currency_days_at

_BEHIND_UTC = {AssetClass.STOCK: 5 * 3600}
"""Seconds that local time is behind UTC. Stocks trade from 4:00 to 20:00 in New York: daylight saving changes no date."""


_DAY, _WEEKEND = 86400, 4 * 86400
"""Seconds. Every time is less than `_WEEKEND` before the end of a day of forex."""


class MonthReturn(NamedTuple):
    """The change of the equity in a month, or in a year if `month` is 0. None if the equity before it was 0 or less."""

    year: int
    month: int
    share: float | None


def monthly_returns(equity: Values, bars: Bars) -> list[MonthReturn]:
    """Returns the return of each month that has bars, oldest first. A bar belongs to the month in which it closes.

    The return of a month is the change from the last close before it; the first month begins with the cash at the start.
    """
    return _returns(equity, _months(bars, "M"))


def yearly_returns(equity: Values, bars: Bars) -> dict[int, float | None]:
    """Returns the return of each year that has bars."""
    return {each.year: each.share for each in _returns(equity, _months(bars, "Y"))}


def _months(bars: Bars, unit: str) -> np.ndarray[tuple[int], np.dtype[np.datetime64]]:
    """Returns for each bar the month or the year in which it closes, in the time zone of its market.

    A bar of forex belongs to the trading day in which it closes.
    """
    ends = bucket_bounds(bars.instrument, bars.timeframe, bars.time)[1]
    moments = np.where(ends > 0, ends - 1, bars.time)  # stocks outside the calendar's years have no bounds
    if bars.instrument.asset_class is AssetClass.FOREX:
        days = currency_days_at(moments, _WEEKEND)
        return np.where(days >= 0, days, moments // _DAY).astype("datetime64[D]").astype(f"datetime64[{unit}]")
    moments -= _BEHIND_UTC.get(bars.instrument.asset_class, 0)
    return moments.astype("datetime64[s]").astype(f"datetime64[{unit}]")


def _returns(equity: Values, periods: np.ndarray[tuple[int], np.dtype[np.datetime64]]) -> list[MonthReturn]:
    if not len(equity):
        return []
    last = np.append(np.flatnonzero(periods[1:] != periods[:-1]), len(periods) - 1)
    after = equity[last].tolist()
    before = [float(equity[0]), *after[:-1]]
    found = []
    for period, start, end in zip(periods[last].tolist(), before, after, strict=True):
        found.append(MonthReturn(period.year, period.month, end / start - 1.0 if start > 0.0 else None))
    return found
