"""Averages, deviations and weighted sums of the latest values, added oldest first, as in a stream."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import reduce
from math import sqrt
from operator import add, mul

import numpy as np

from openbell.market.bars import Values


class Offsets:
    """The latest `length` values less the latest one, oldest first: exactly 0 for equal values.

    Computed again in each pass: to keep them would take `length` times the memory of the values.
    """

    __slots__ = ("_length", "_values")

    def __init__(self, values: Values, length: int) -> None:
        self._values = values
        self._length = length

    def __iter__(self) -> Iterator[Values]:
        values, length = self._values, self._length
        count = len(values) - length + 1
        newest = values[length - 1 :]
        return (values[age : age + count] - newest for age in range(length))


def total(parts: Iterable[Values]) -> Values:
    """The sum of arrays, added one after another, as a stream adds numbers."""
    rest = iter(parts)
    out = next(rest).copy()
    for part in rest:
        out += part
    return out


def offset_and_deviation(values: Values, length: int) -> tuple[Values, Values]:
    """Simple average less the latest value, and population deviation, in two passes; NaN until there are enough values.

    The average itself would lose the digits of a small offset.
    """
    out = np.full((2, len(values)), np.nan)
    if len(values) >= length:
        apart = Offsets(values, length)
        mean = total(apart) / length
        out[0, length - 1 :] = mean
        out[1, length - 1 :] = np.sqrt(total(np.square(each - mean) for each in apart) / length)
    return out[0], out[1]


def mean_and_deviation(values: Values, length: int) -> tuple[Values, Values]:
    """Simple average and population deviation in two passes; NaN until there are enough values."""
    offset, deviation = offset_and_deviation(values, length)
    return values + offset, deviation


def offset_and_deviation_of(window: Collection[float], newest: float) -> tuple[float, float]:
    """`offset_and_deviation` of one full window that ends with `newest`, bit for bit equal."""
    # Not sum(): since Python 3.12 it compensates for rounding.
    apart = [value - newest for value in window]
    mean = reduce(add, apart) / len(apart)
    away = [each - mean for each in apart]
    return mean, sqrt(reduce(add, [each * each for each in away]) / len(away))


def mean_and_deviation_of(window: Collection[float], newest: float) -> tuple[float, float]:
    """`mean_and_deviation` of one full window that ends with `newest`, bit for bit equal."""
    offset, deviation = offset_and_deviation_of(window, newest)
    return newest + offset, deviation


def weighted_sum(values: Values, weights: Sequence[float]) -> Values:
    """The sum of the latest values times their weights, oldest first; NaN until there are enough values."""
    out = np.full(len(values), np.nan)
    count = len(values) - len(weights) + 1
    if count > 0:
        out[len(weights) - 1 :] = total(values[age : age + count] * weight for age, weight in enumerate(weights))
    return out


def weighted_sum_of(window: Iterable[float], weights: Sequence[float]) -> float:
    """`weighted_sum` of one full window, bit for bit equal."""
    found: float = reduce(add, map(mul, window, weights))
    return found
