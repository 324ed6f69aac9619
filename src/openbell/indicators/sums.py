"""Sums of the newest values, over whole arrays and one at a time, added up in the same order: oldest first.

Nothing is ever taken off a sum again, so nothing drifts, and both ways agree to the last bit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from math import isnan, nan

import numpy as np

from openbell.market.bars import Values


def rolling_sum(values: Values, length: int) -> Values:
    """The sum of the newest `length` values; NaN until there are so many, leading NaN waited out."""
    out = np.full(len(values), np.nan)
    count = len(values) - length + 1
    if count > 0:
        out[length - 1 :] = total(values[age : age + count] for age in range(length))
    return out


def offsets(values: Values, length: int) -> list[Values]:
    """How far each of the newest `length` values lies from the newest, oldest first: equal ones by exactly nothing."""
    count = len(values) - length + 1
    newest = values[length - 1 :]
    return [values[age : age + count] - newest for age in range(length)]


def total(parts: Iterable[Values]) -> Values:
    """Arrays added up one after another, in the order in which a stream adds up numbers."""
    rest = iter(parts)
    out = next(rest).copy()
    for part in rest:
        out += part
    return out


def mean_and_deviation(values: Values, length: int) -> tuple[Values, Values]:
    """Simple average and population deviation in two passes; NaN until there are enough values."""
    out = np.full((2, len(values)), np.nan)
    if len(values) >= length:
        apart = offsets(values, length)
        mean = total(apart) / length
        out[0, length - 1 :] = values[length - 1 :] + mean
        out[1, length - 1 :] = np.sqrt(total(np.square(each - mean) for each in apart) / length)
    return out[0], out[1]


class RunningSum:
    """The same, one value at a time."""

    __slots__ = ("_length", "_values")

    def __init__(self, length: int) -> None:
        self._length = length
        self._values: deque[float] = deque(maxlen=length)

    def update(self, value: float) -> float:
        """The sum after this value; NaN is waited out."""
        if isnan(value):
            return nan
        values = self._values
        values.append(value)
        if len(values) < self._length:
            return nan
        found = 0.0
        for each in values:  # not sum(): newer Pythons add up in another way
            found += each
        return found
