"""Classic pivot points: support and resistance from high, low and close of the session before.

They stand during the trading day (for stocks: in regular hours) and are missing in the first session of the data. A session
of which the data hold only a part counts with that part.
"""

from __future__ import annotations

from math import nan
from typing import TypeVar

import numpy as np

from openbell.indicators.channels import Channels, Line
from openbell.indicators.day_sums import day_begins
from openbell.indicators.spec import Bar, Indicator
from openbell.market.bars import Bars, Values
from openbell.market.session_table import trading_day

Price = TypeVar("Price", float, Values)

LEVELS = ("P", "R1", "R2", "R3", "S1", "S2", "S3")
_NONE = (nan,) * len(LEVELS)


def levels(high: Price, low: Price, close: Price) -> tuple[Price, ...]:
    """What a session's high, low and close give for the next, in the order of `LEVELS`."""
    middle = (high + low + close) / 3.0
    height = high - low
    return (
        middle,
        2.0 * middle - low,
        middle + height,
        2.0 * middle - low + height,
        2.0 * middle - high,
        middle - height,
        2.0 * middle - high - height,
    )


def pivots(bars: Bars) -> Values:
    """A row for each of `LEVELS`."""
    out = np.full((len(LEVELS), len(bars)), np.nan)
    day = trading_day(bars.instrument, bars.time)
    inside = np.flatnonzero(day >= 0)
    begins = day_begins(day[inside])
    if len(begins) < 2:
        return out
    high = np.maximum.reduceat(bars.high[inside], begins)[:-1]
    low = np.minimum.reduceat(bars.low[inside], begins)[:-1]
    close = bars.close[inside[begins[1:] - 1]]
    lengths = np.diff(begins, append=len(inside))[1:]
    out[:, inside[begins[1] :]] = np.repeat(levels(high, low, close), lengths, axis=1)
    return out


def _compute(bars: Bars) -> Channels:
    return Channels(lines=tuple(Line(label, row) for label, row in zip(LEVELS, pivots(bars), strict=True)))


class _Stream:
    def __init__(self) -> None:
        self._day = -1
        self._high, self._low, self._close = nan, nan, nan
        self._levels: tuple[float, ...] = _NONE

    def update(self, bar: Bar) -> tuple[float, ...]:
        if bar.day < 0:
            return _NONE
        if bar.day != self._day:
            self._levels = levels(self._high, self._low, self._close)
            self._day, self._high, self._low = bar.day, bar.high, bar.low
        elif bar.high > self._high or bar.low < self._low:
            self._high, self._low = max(bar.high, self._high), min(bar.low, self._low)
        self._close = bar.close
        return self._levels


INDICATOR = Indicator(
    name="pivot",
    title="Pivots",
    description="Classic pivot points: three supports and resistances from the prior session's high, low and close",
    overlay=True,
    compute=_compute,
    stream=_Stream,
    warmup=lambda: 0,  # depends on where sessions begin
    aliases=("pivot_points",),
    inputs=("high", "low", "close"),
)
