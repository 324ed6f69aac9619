"""The least-squares line through the latest values, over arrays and one value at a time, bit for bit equal.

Sums of distances from a value of the window are added up in blocks, as in `windows`, so that values at a large price keep
their digits. The squared distances from the line are what remains of those sums; if little remains, as of values close to a
line, they are added up in a second pass over the window.
"""

from __future__ import annotations

from functools import reduce
from itertools import accumulate
from math import nan, sqrt
from operator import add, mul

import numpy as np

from openbell.indicators.sums import total
from openbell.indicators.windows import bases_of, blocks_of, distances_of, joined, per_bar
from openbell.market.bars import Values

LITTLE = 0.01
"""Of the squared distances from a value, less than this share is too little for the digits that are wanted."""


def places(length: int) -> tuple[list[float], float]:
    """The distance of each bar from the middle of the window, oldest first, and the sum of the squares."""
    return [age - (length - 1) / 2.0 for age in range(length)], length * (length * length - 1.0) / 12.0


def moments(values: Values, length: int) -> tuple[Values, Values, Values, Values]:
    """A value of each window, and sums over the window of the distances from it: as they are, times `places`, squared."""
    lead, blocks = blocks_of(values, length)
    place = np.arange(length, dtype=np.float64)[:, None]
    before, after = distances_of(blocks)
    sums = joined(
        np.stack((before, place * before, before * before), axis=1),
        np.stack((after, (place[:-1] + length) * after, after * after), axis=1),
    )
    plain, along, squares = sums[:, 0], sums[:, 1], sums[:, 2]
    # From places in the blocks to places in the window, which has moved on since the older block began.
    shift = (place + 1.0) % length + (length - 1) / 2.0
    along -= shift * plain
    base, *found = (per_bar(each, lead, len(values)) for each in (bases_of(blocks), plain, along, squares))
    return base, found[0], found[1], found[2]


def regression(values: Values, length: int) -> tuple[Values, Values, Values]:
    """The end of the line, the population deviation of the values from it, and its rise per bar."""
    base, plain, along, squares = moments(values, length)
    distances, width = places(length)
    mean, rise = plain / length, along / width
    rest = squares - mean * plain - rise * along
    near = np.flatnonzero(rest < LITTLE * squares)
    if len(near):
        first, start, middle, slope = near - (length - 1), base[near], mean[near], rise[near]
        away = ((values[first + age] - start) - (middle + slope * place) for age, place in enumerate(distances))
        rest[near] = total(each * each for each in away)
    return base + (mean + rise * distances[-1]), np.sqrt(rest / length), rise


class RunningMoments:
    """`moments`, one value at a time."""

    __slots__ = ("_before", "_block", "_ends", "_length", "_middle", "_sums", "base")

    def __init__(self, length: int) -> None:
        self._length, self._middle = length, (length - 1) / 2.0
        self._before: list[float] = []
        self._block: list[float] = []
        self._ends = [(nan, nan, nan)] * length
        self._sums = (0.0, 0.0, 0.0)
        self.base = 0.0

    def update(self, value: float) -> tuple[float, float, float]:
        """The sums after this value; NaN until there are enough. They are distances from `base`."""
        block, length = self._block, self._length
        block.append(value)
        count = len(block)
        if count == length:
            self._next_block(value)
            plain, along, squares = self._ends[0]
            return plain, along - self._middle * plain, squares
        apart = value - self.base
        plain, along, squares = self._sums
        plain += apart
        along += (count - 1 + length) * apart
        squares += apart * apart
        self._sums = plain, along, squares
        end, end_along, end_squares = self._ends[count]
        plain += end
        return plain, (along + end_along) - (count + self._middle) * plain, squares + end_squares

    def window(self) -> list[float]:
        """The values of the window, oldest first."""
        return self._before[len(self._block) :] + self._block

    def _next_block(self, last: float) -> None:
        apart = [each - last for each in reversed(self._block)]
        along = map(mul, range(self._length - 1, -1, -1), apart)
        sums = (accumulate(each) for each in (apart, along, map(mul, apart, apart)))
        self._ends = list(zip(*sums, strict=True))[::-1]
        self._before, self._block = self._block, []
        self.base, self._sums = last, (0.0, 0.0, 0.0)


class RunningRegression:
    """`regression`, one value at a time."""

    __slots__ = ("_length", "_moments", "_places", "_width")

    def __init__(self, length: int) -> None:
        self._moments, self._length = RunningMoments(length), length
        self._places, self._width = places(length)

    def update(self, value: float) -> tuple[float, float, float]:
        """End, deviation and rise after this value; NaN until there are enough."""
        plain, along, squares = self._moments.update(value)
        base, length = self._moments.base, self._length
        mean, rise = plain / length, along / self._width
        rest = squares - mean * plain - rise * along
        if rest < LITTLE * squares:
            line = (mean + rise * place for place in self._places)
            away = [(each - base) - end for each, end in zip(self._moments.window(), line, strict=True)]
            rest = reduce(add, map(mul, away, away))
        return base + (mean + rise * self._places[-1]), sqrt(rest / length), rise
