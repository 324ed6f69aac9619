"""Five-bar fractals of an oscillator, and divergences: fractals that move against the price.

A fractal is a value above (top) or below (bottom) the two values before and the two after it, so it is confirmed two bars
after its centre.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
import numpy.typing as npt

from openbell.indicators.float_ties import OSCILLATOR, Mask, above, at_least
from openbell.market.bars import Values

Indexes = npt.NDArray[np.intp]
CONFIRMS_AFTER = 2
WIDTH = 2 * CONFIRMS_AFTER + 1


def is_top(values: Sequence[Values]) -> Mask:
    """Returns True if the middle one of five consecutive values is higher than the others."""
    first, second, centre, fourth, fifth = values
    lower = [above(centre, other, OSCILLATOR) for other in (first, second, fourth, fifth)]
    return lower[0] & lower[1] & lower[2] & lower[3]


def is_bearish(value_before: Values, high_before: Values, value: Values, high: Values) -> Mask:
    """Returns True if the second of two tops is lower in the oscillator and higher in the price."""
    return (high > high_before) & above(value_before, value, OSCILLATOR)


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


def tops(values: Values, limit: float = -inf) -> Indexes:
    """The indexes of values higher than two on either side and not below a limit."""
    count = max(0, len(values) - WIDTH + 1)
    higher = is_top([values[at : at + count] for at in range(WIDTH)])
    centre = values[CONFIRMS_AFTER : CONFIRMS_AFTER + count]
    return np.flatnonzero(higher & at_least(centre, limit, OSCILLATOR)) + CONFIRMS_AFTER


def bottoms(values: Values, limit: float = inf) -> Indexes:
    """The indexes of values lower than two on either side and not above a limit."""
    return tops(-values, -limit)


def bearish(values: Values, high: Values, limit: float = -inf) -> Divergences:
    """A lower top of the oscillator under a higher high of the price."""
    centres = tops(values, limit)
    first, second = centres[:-1], centres[1:]
    found = is_bearish(values[first], high[first], values[second], high[second])
    return Divergences(first[found], second[found])


def bullish(values: Values, low: Values, limit: float = inf) -> Divergences:
    """A higher bottom of the oscillator over a lower low of the price."""
    return bearish(-values, -low, -limit)
