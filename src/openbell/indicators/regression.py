"""The least-squares line through the latest values, over arrays and one value at a time, bit for bit equal.

Computed in two passes relative to the latest value, so that values on a line at a large price keep their digits.
"""

from __future__ import annotations

from collections import deque
from functools import reduce
from math import nan, sqrt
from operator import add, mul, sub

import numpy as np

from openbell.indicators.latest import Latest, sum_of
from openbell.indicators.sums import Offsets, total
from openbell.market.bars import Values

FEW = 40
"""Up to this length, plain numbers are faster than arrays."""


def places(length: int) -> tuple[list[float], float]:
    """The distance of each bar from the middle of the window, oldest first, and the sum of the squares."""
    return [age - (length - 1) / 2.0 for age in range(length)], length * (length * length - 1.0) / 12.0


def regression(values: Values, length: int) -> tuple[Values, Values, Values]:
    """The end of the line, the population deviation of the values from it, and its rise per bar."""
    out = np.full((3, len(values)), np.nan)
    if len(values) >= length:
        distances, squares = places(length)
        apart = Offsets(values, length)
        mean = total(apart) / length
        rise = total(place * each for place, each in zip(distances, apart, strict=True)) / squares
        away = (each - (mean + rise * place) for place, each in zip(distances, apart, strict=True))
        out[1, length - 1 :] = np.sqrt(total(each * each for each in away) / length)
        out[0, length - 1 :] = values[length - 1 :] + (mean + rise * distances[-1])
        out[2, length - 1 :] = rise
    return out[0], out[1], out[2]


def running_regression(length: int) -> _ShortRegression | _LongRegression:
    """`regression`, one value at a time: over a few values plain numbers are faster than arrays."""
    return _ShortRegression(length) if length <= FEW else _LongRegression(length)


class _ShortRegression:
    __slots__ = ("_length", "_places", "_squares", "_values")

    def __init__(self, length: int) -> None:
        self._values: deque[float] = deque(maxlen=length)
        self._length = length
        self._places, self._squares = places(length)

    def update(self, value: float) -> tuple[float, float, float]:
        """End, deviation and rise after this value; NaN until there are enough."""
        values, length = self._values, self._length
        values.append(value)
        if len(values) < length:
            return nan, nan, nan
        apart = [each - value for each in values]
        mean = reduce(add, apart) / length
        rise = reduce(add, map(mul, self._places, apart)) / self._squares
        line = [rise * place + mean for place in self._places]
        away = list(map(sub, apart, line))
        return value + line[-1], sqrt(reduce(add, map(mul, away, away)) / length), rise


class _LongRegression:
    __slots__ = ("_latest", "_length", "_places", "_squares")

    def __init__(self, length: int) -> None:
        self._latest, self._length = Latest(length, 1), length
        distances, self._squares = places(length)
        self._places = np.array(distances)

    def update(self, value: float) -> tuple[float, float, float]:
        """End, deviation and rise after this value; NaN until there are enough."""
        window = self._latest.update(value)
        if window is None:
            return nan, nan, nan
        apart = window[0] - value
        mean = sum_of(apart) / self._length
        rise = sum_of(self._places * apart) / self._squares
        line = rise * self._places
        line += mean
        end = value + line.item(-1)
        away = np.subtract(apart, line, out=line)
        away *= away
        return end, sqrt(sum_of(away) / self._length), rise
