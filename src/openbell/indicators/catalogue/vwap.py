"""Volume-weighted average price of the trading day: it begins anew with every session."""

from __future__ import annotations

from math import nan

import numpy as np

from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Bar, Indicator
from openbell.market.bars import Bars, Values
from openbell.market.session_table import trading_day


def vwap(bars: Bars) -> Values:
    """NaN outside the trading day (for stocks: outside regular hours) and until something has traded in it."""
    out = np.full(len(bars), np.nan)
    if not len(bars):  # no first day to begin with
        return out
    day = trading_day(bars.instrument, bars.time)
    price = (bars.high + bars.low + bars.close) / 3.0
    begins = np.flatnonzero(np.concatenate(([True], day[1:] != day[:-1])))
    for first, last in zip(begins, np.append(begins[1:], len(day)), strict=True):
        if day[first] >= 0:
            traded = np.cumsum(bars.volume[first:last])
            with np.errstate(invalid="ignore", divide="ignore"):
                out[first:last] = np.cumsum(price[first:last] * bars.volume[first:last]) / traded
            out[first:last][traded == 0.0] = np.nan
    return out


def _compute(bars: Bars) -> Channels:
    return Channels(lines=(Line("VWAP", vwap(bars)),))


class _Stream:
    def __init__(self) -> None:
        self._day = -1
        self._turnover = 0.0
        self._volume = 0.0

    def update(self, bar: Bar) -> tuple[float, ...]:
        if bar.day != self._day:
            self._day, self._turnover, self._volume = bar.day, 0.0, 0.0
        if bar.day < 0:
            return (nan,)
        self._turnover += (bar.high + bar.low + bar.close) / 3.0 * bar.volume
        self._volume += bar.volume
        return (self._turnover / self._volume if self._volume else nan,)


INDICATOR = Indicator(
    name="vwap",
    title="VWAP",
    description="Volume-weighted average price since the session began (UTC day where trading never stops)",
    overlay=True,
    compute=_compute,
    stream=_Stream,
    warmup=lambda: 1,
    inputs=("high", "low", "close", "volume"),
)
