"""The highest and the lowest of the latest values, over arrays and one bar at a time."""

from __future__ import annotations

from collections import deque
from math import inf, nan

import numpy as np

from openbell.indicators.ta_lib import talib
from openbell.market.bars import Values


def highest(values: Values, length: int) -> Values:
    """The highest of the latest `length` values; NaN until there are enough."""
    found: Values = values.copy() if length == 1 else talib.MAX(values, length)
    return found


def lowest(values: Values, length: int) -> Values:
    """The lowest of the latest `length` values; NaN until there are enough."""
    found: Values = values.copy() if length == 1 else talib.MIN(values, length)
    return found


def highest_so_far(values: Values, length: int) -> Values:
    """The highest of the latest `length` values, of all values so far until there are enough."""
    out = highest(values, length)
    out[: length - 1] = np.maximum.accumulate(values[: length - 1])
    return out


def middle(high: Values, low: Values, length: int) -> Values:
    """Half way between the highest high and the lowest low."""
    return (highest(high, length) + lowest(low, length)) / 2.0


class RunningExtremes:
    """The highest high and the lowest low of the latest bars.

    The window is searched only when its extreme leaves it: seldom, unless the price moves one way for longer than that.
    """

    __slots__ = ("_bottom", "_highs", "_lows", "_top", "_waits")

    def __init__(self, length: int, *, so_far: bool = False) -> None:
        """With `so_far`, the extremes of all bars so far are returned until there are enough."""
        self._highs = deque([nan] * length, maxlen=length)
        self._lows = deque([nan] * length, maxlen=length)
        self._top, self._bottom = -inf, inf
        self._waits = 0 if so_far else length - 1

    def update(self, high: float, low: float) -> tuple[float, float]:
        """The highest high and the lowest low after this bar; NaN until there are enough bars."""
        highs, lows = self._highs, self._lows
        oldest_high, oldest_low = highs[0], lows[0]
        highs.append(high)
        lows.append(low)
        if high >= self._top:
            self._top = high
        elif oldest_high == self._top:
            self._top = max(highs)
        if low <= self._bottom:
            self._bottom = low
        elif oldest_low == self._bottom:
            self._bottom = min(lows)
        if self._waits:
            self._waits -= 1
            return nan, nan
        return self._top, self._bottom

    def middle(self, high: float, low: float) -> float:
        """Half way between both after this bar."""
        top, bottom = self.update(high, low)
        return (top + bottom) / 2.0
