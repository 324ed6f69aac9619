"""Averages, deviations and weighted sums of the latest values, over arrays and one value at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import accumulate
from math import nan, sqrt
from operator import add, mul

import numpy as np

from openbell.indicators.windows import bases_of, blocks_of, distances_of, joined, per_bar
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


def offset_and_deviation(values: Values, length: int) -> tuple[Values, Values]:
    """Simple average less the latest value, and population deviation. Leading NaN are skipped.

    The average itself would lose the digits of a small offset. Distances from a value of the window and their squares are
    added up in blocks, as in `windows`. As that value is in the window, the variance is at least the squared mean distance
    over the length: it loses no more digits than the length has.
    """
    lead, blocks = blocks_of(values, length)
    before, after = (np.stack((apart, apart * apart), axis=1) for apart in distances_of(blocks))
    sums = joined(before, after)
    sums /= length
    mean, variance = sums[:, 0], sums[:, 1]
    variance -= mean * mean
    mean += bases_of(blocks) - blocks
    return per_bar(mean, lead, len(values)), per_bar(np.sqrt(variance), lead, len(values))


def mean_and_deviation(values: Values, length: int) -> tuple[Values, Values]:
    """Simple average and population deviation. Leading NaN are skipped."""
    offset, deviation = offset_and_deviation(values, length)
    return values + offset, deviation


class RunningDeviation:
    """`offset_and_deviation`, one value at a time, bit for bit equal; for values without NaN."""

    __slots__ = ("_block", "_ends", "_last", "_length", "_squares", "_sum")

    def __init__(self, length: int) -> None:
        self._length = length
        self._block: list[float] = []
        self._last = self._sum = self._squares = 0.0
        self._ends = [(nan, nan)] * length

    def update(self, value: float) -> tuple[float, float]:
        """Average less this value, and deviation; NaN until there are enough values."""
        block = self._block
        block.append(value)
        count, length = len(block), self._length
        if count == length:
            self._next_block(value)
            count = 0
        else:
            apart = value - self._last
            self._sum += apart
            self._squares += apart * apart
        end, end_squares = self._ends[count]
        mean = (end + self._sum) / length
        return (self._last - value) + mean, sqrt((end_squares + self._squares) / length - mean * mean)

    def _next_block(self, last: float) -> None:
        apart = [each - last for each in reversed(self._block)]
        sums = accumulate(apart), accumulate([each * each for each in apart])
        self._ends = list(zip(*sums, strict=True))[::-1]
        self._block.clear()
        self._last, self._sum, self._squares = last, 0.0, 0.0
