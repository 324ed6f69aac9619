"""Averages, deviations and weighted sums of the latest values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

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
    """The sum of arrays, added one after another."""
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
