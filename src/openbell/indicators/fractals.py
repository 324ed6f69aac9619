"""Five-bar fractals of an oscillator, and divergences: fractals that move against the price.

A fractal is a value above (top) or below (bottom) the two values before and the two after it, so it is confirmed two bars
after its centre.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nan

import numpy as np
import numpy.typing as npt

from openbell.indicators.rules import Condition, Value
from openbell.market.bars import Values

Indexes = npt.NDArray[np.intp]
CONFIRMS_AFTER = 2
WIDTH = 2 * CONFIRMS_AFTER + 1


def is_top(values: Sequence[Value]) -> Condition:
    """Returns True if the middle one of five consecutive values is higher than the others."""
    first, second, centre, fourth, fifth = values
    return (centre > first) & (centre > second) & (centre > fourth) & (centre > fifth)


def is_bearish(value_before: Value, high_before: Value, value: Value, high: Value) -> Condition:
    """Returns True if the second of two tops is lower in the oscillator and higher in the price."""
    return (high > high_before) & (value < value_before)


@dataclass(frozen=True, slots=True)
class Divergences:
    """The indexes of the centres of two consecutive fractals, one pair per divergence."""

    first: Indexes
    second: Indexes

    @property
    def confirmed(self) -> Indexes:
        """The bars that confirm them."""
        return self.second + CONFIRMS_AFTER

    def since(self, bar: int) -> Divergences:
        """Those that are confirmed at a bar or later."""
        kept = self.confirmed >= bar
        return Divergences(self.first[kept], self.second[kept])


def tops(values: Values, at_least: float = -inf) -> Indexes:
    """The indexes of values higher than two on either side and not below a limit."""
    count = max(0, len(values) - WIDTH + 1)
    higher = is_top([values[at : at + count] for at in range(WIDTH)])
    return np.flatnonzero(higher & (values[CONFIRMS_AFTER : CONFIRMS_AFTER + count] >= at_least)) + CONFIRMS_AFTER


def bottoms(values: Values, at_most: float = inf) -> Indexes:
    """The indexes of values lower than two on either side and not above a limit."""
    return tops(-values, -at_most)


def bearish(values: Values, high: Values, at_least: float = -inf) -> Divergences:
    """A lower top of the oscillator under a higher high of the price."""
    centres = tops(values, at_least)
    first, second = centres[:-1], centres[1:]
    found = is_bearish(values[first], high[first], values[second], high[second])
    return Divergences(first[found], second[found])


def bullish(values: Values, low: Values, at_most: float = inf) -> Divergences:
    """A higher bottom of the oscillator over a lower low of the price."""
    return bearish(-values, -low, -at_most)


class RunningDivergences:
    """`bearish`, one top at a time; for `bullish`, negate values, lows and limit."""

    __slots__ = ("_at_least", "_high", "_value")

    def __init__(self, at_least: float) -> None:
        self._at_least = at_least
        self._value = self._high = nan

    def update(self, value: float, high: float) -> bool:
        """Returns True if the next top (its value, and the high of its bar) diverges from the previous one."""
        if value < self._at_least:
            return False
        found = is_bearish(self._value, self._high, value, high)
        self._value, self._high = value, high
        return bool(found)
