"""The highest and the lowest of the latest values, over arrays and one bar at a time."""

from __future__ import annotations

from collections import deque
from math import nan

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

    Each queue holds only values that can still become the extreme, so the cost of a bar does not depend on the length.
    """

    __slots__ = ("_count", "_highs", "_length", "_lows")

    def __init__(self, length: int) -> None:
        self._length = length
        self._count = 0
        self._highs: deque[tuple[int, float]] = deque()
        self._lows: deque[tuple[int, float]] = deque()

    def update(self, high: float, low: float) -> tuple[float, float]:
        """The highest high and the lowest low after this bar; NaN until there are enough bars."""
        found = self.so_far(high, low)
        return found if self._count >= self._length else (nan, nan)

    def so_far(self, high: float, low: float) -> tuple[float, float]:
        """The highest high and the lowest low after this bar, of all bars so far until there are enough."""
        highs, lows = self._highs, self._lows
        count = self._count = self._count + 1
        gone = count - self._length
        while highs and highs[-1][1] <= high:
            highs.pop()
        highs.append((count, high))
        if highs[0][0] <= gone:
            highs.popleft()
        while lows and lows[-1][1] >= low:
            lows.pop()
        lows.append((count, low))
        if lows[0][0] <= gone:
            lows.popleft()
        return highs[0][1], lows[0][1]

    def middle(self, high: float, low: float) -> float:
        """Half way between both after this bar."""
        top, bottom = self.update(high, low)
        return (top + bottom) / 2.0
