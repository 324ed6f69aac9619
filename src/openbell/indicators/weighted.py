"""Averages whose weights depend on a value's age alone, over whole arrays and one value at a time.

They are taken as the newest value less weighted steps back from it: prices that do not move give exactly that price, and
no rounding adds up over the bars, as it does in TA-Lib's running sums.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import accumulate
from math import nan
from operator import mul

import numpy as np

from openbell.market.bars import Values

Weights = Sequence[float]


def linear(length: int) -> list[float]:
    """1, 2, 3 … as shares of their sum: the newest value weighs most."""
    return [2.0 * rank / (length * (length + 1)) for rank in range(1, length + 1)]


def weigh(values: Values, weights: Weights) -> Values:
    """The newest values times weights that add up to one, those of the oldest first; NaN until there are so many."""
    out = np.full(len(values), np.nan)
    last = len(weights) - 1
    if len(values) > last:
        out[last:] = values[last:]
        if last:
            out[last:] -= np.correlate(np.diff(values), _steps(weights))
    return out


class RunningWeights:
    """The same, one value at a time."""

    __slots__ = ("_newest", "_steps", "_weights")

    def __init__(self, weights: Weights) -> None:
        self._weights = _steps(weights)
        self._steps: deque[float] = deque(maxlen=len(self._weights))
        self._newest: float | None = None

    def update(self, value: float) -> float:
        """The weighted average after this value; NaN before there is one for each weight."""
        if self._newest is not None:
            self._steps.append(value - self._newest)
        self._newest = value
        if len(self._steps) < len(self._weights):
            return nan
        behind: float = sum(map(mul, self._weights, self._steps))
        return value - behind


def _steps(weights: Weights) -> list[float]:
    """What each step from one value to the next weighs: everything before it."""
    return list(accumulate(weights))[:-1]
