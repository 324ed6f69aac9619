"""The mean price and its deviation in the latest bars, with the volume of each bar spread evenly between its low and high.

Sums of distances from a price are added up in blocks, as in `windows`. The squared distances from the mean are what remains
of those sums; if little remains, they are added up in a second pass over the window.
"""

from __future__ import annotations

from functools import reduce
from itertools import accumulate
from math import nan, sqrt
from operator import add

import numpy as np

from openbell.indicators.regression import LITTLE
from openbell.indicators.spec import Bar
from openbell.indicators.sums import total
from openbell.indicators.windows import bases_of, blocks_of, distances_of, joined, per_bar
from openbell.market.bars import Bars, Values
from openbell.market.session_table import Times


def spread(bars: Bars, length: int) -> tuple[Values, Values, Values]:
    """The volume of the latest bars, the mean price and its deviation. Without volume the latter have no meaning."""
    tall, middle, volume = bars.high - bars.low, (bars.high + bars.low) / 2.0, bars.volume
    blocks, volumes, within = (
        blocks_of(each, length)[1] for each in (middle, volume, volume * (tall * tall / 12.0))
    )  # `within` are the squared distances within the bars
    before, after = distances_of(blocks)
    heavy, inner = volumes[:-1, 1:], within[:-1, 1:]
    sums = joined(
        np.stack((volumes, volumes * before, volumes * (before * before), within), axis=1),
        np.stack((heavy, heavy * after, heavy * (after * after), inner), axis=1),
    )
    traded, apart, squares, inside, base = (
        per_bar(each, 0, len(bars)) for each in (*(sums[:, row] for row in range(4)), bases_of(blocks))
    )
    with np.errstate(invalid="ignore", divide="ignore"):  # 0 / 0 if the window has no volume
        offset = apart / traded
        mean = base + offset
        rest = squares - offset * apart
        near = np.flatnonzero(rest < LITTLE * squares)
        if len(near):
            rest[near] = total(_squares(middle, volume, mean, near, age) for age in range(1 - length, 1))
        return traded, mean, np.sqrt((rest + inside) / traded)


def _squares(price: Values, volume: Values, mean: Values, at: Times, age: int) -> Values:
    away: Values = price[at + age] - mean[at]
    away *= away
    away *= volume[at + age]
    return away


class RunningSpread:
    """`spread`, one bar at a time, bit for bit equal."""

    __slots__ = ("_base", "_before", "_block", "_ends", "_length", "_sums")

    def __init__(self, length: int) -> None:
        self._length, self._base = length, 0.0
        self._before: list[tuple[float, float, float]] = []
        self._block: list[tuple[float, float, float]] = []
        self._ends = [(nan, nan, nan, nan)] * length
        self._sums = (0.0, 0.0, 0.0, 0.0)

    def update(self, bar: Bar) -> tuple[float, float, float]:
        """Volume, mean and deviation after this bar; NaN until there are enough bars, and without volume."""
        high, low, volume = bar.high, bar.low, bar.volume
        tall, middle = high - low, (high + low) / 2.0
        within = volume * (tall * tall / 12.0)
        block = self._block
        block.append((middle, volume, within))
        count = len(block)
        if count == self._length:
            self._next_block(middle)
            traded, apart, squares, inside = self._ends[0]
        else:
            away = middle - self._base
            traded, apart, squares, inside = self._sums
            self._sums = traded, apart, squares, inside = (
                traded + volume,
                apart + volume * away,
                squares + volume * (away * away),
                inside + within,
            )
            ends = self._ends[count]
            traded, apart, squares, inside = traded + ends[0], apart + ends[1], squares + ends[2], inside + ends[3]
        if not traded > 0.0:
            return traded, nan, nan
        offset = apart / traded
        mean, rest = self._base + offset, squares - offset * apart
        if rest < LITTLE * squares:
            rest = self._second_pass(mean)
        return traded, mean, sqrt((rest + inside) / traded)

    def _second_pass(self, mean: float) -> float:
        window = self._before[len(self._block) :] + self._block
        return reduce(add, [(price - mean) * (price - mean) * volume for price, volume, _ in window])

    def _next_block(self, last: float) -> None:
        newest_first = self._block[::-1]
        heavy = [volume * (price - last) for price, volume, _ in newest_first]
        squares = [volume * ((price - last) * (price - last)) for price, volume, _ in newest_first]
        sums = ([volume for _, volume, _ in newest_first], heavy, squares, [within for _, _, within in newest_first])
        self._ends = list(zip(*map(accumulate, sums), strict=True))[::-1]
        self._before, self._block = self._block, []
        self._base, self._sums = last, (0.0, 0.0, 0.0, 0.0)
