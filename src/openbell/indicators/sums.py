"""Averages and deviations of the latest values in two passes, added oldest first, as in a stream."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import reduce
from math import sqrt
from operator import add

import numpy as np

from openbell.market.bars import Values


def offsets(values: Values, length: int) -> list[Values]:
    """The latest `length` values less the latest one, oldest first: exactly 0 for equal values."""
    count = len(values) - length + 1
    newest = values[length - 1 :]
    return [values[age : age + count] - newest for age in range(length)]


def total(parts: Iterable[Values]) -> Values:
    """The sum of arrays, added one after another, as a stream adds numbers."""
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


def mean_and_deviation_of(window: Collection[float], newest: float) -> tuple[float, float]:
    """`mean_and_deviation` of one full window that ends with `newest`, bit for bit equal."""
    # Not sum(): since Python 3.12 it compensates for rounding.
    apart = [value - newest for value in window]
    mean = reduce(add, apart) / len(apart)
    away = [each - mean for each in apart]
    return newest + mean, sqrt(reduce(add, [each * each for each in away]) / len(away))
