"""Five-bar fractals of an oscillator, and where they disagree with the price: divergences.

A fractal is a value beyond the two before and the two after it, so it is known two bars after its centre.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
import numpy.typing as npt

from openbell.market.bars import Values

Indexes = npt.NDArray[np.intp]
CONFIRMS_AFTER = 2


@dataclass(frozen=True, slots=True)
class Divergences:
    """The centres of two fractals in a row, one pair for each divergence."""

    first: Indexes
    second: Indexes

    @property
    def confirmed(self) -> Indexes:
        """The bars at which they are known."""
        return self.second + CONFIRMS_AFTER

    def since(self, bar: int) -> Divergences:
        """Those that are known at a bar or later."""
        kept = self.confirmed >= bar
        return Divergences(self.first[kept], self.second[kept])


def tops(values: Values, at_least: float = -inf) -> Indexes:
    """The centres of values higher than two on either side and not below a limit."""
    centre = values[2:-2]
    higher = (centre > values[:-4]) & (centre > values[1:-3]) & (centre > values[3:-1]) & (centre > values[4:])
    return np.flatnonzero(higher & (centre >= at_least)) + 2


def bottoms(values: Values, at_most: float = inf) -> Indexes:
    """The centres of values lower than two on either side and not above a limit."""
    return tops(-values, -at_most)


def bearish(values: Values, high: Values, at_least: float = -inf) -> Divergences:
    """A lower top of the oscillator under a higher high of the price."""
    centres = tops(values, at_least)
    first, second = centres[:-1], centres[1:]
    found = (high[second] > high[first]) & (values[second] < values[first])
    return Divergences(first[found], second[found])


def bullish(values: Values, low: Values, at_most: float = inf) -> Divergences:
    """A higher bottom of the oscillator over a lower low of the price."""
    return bearish(-values, -low, -at_most)
