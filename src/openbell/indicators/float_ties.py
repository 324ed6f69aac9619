"""Comparisons of computed prices: numbers that differ by rounding alone are equal.

Prices that are equal in decimals, such as two typical prices or two moves, can differ in the last bit of a float. A plain
comparison would let that bit decide between a rise and a fall. Prices as they were traded need no tolerance.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from openbell.market.bars import Values

Mask = npt.NDArray[np.bool_]

TOLERANCE = 1e-12
"""Numbers that differ by no more than this share of the price are equal."""
OSCILLATOR = 1e4
"""The scale of oscillators from 0 to 100: they magnify the rounding of prices, by the price over its moves."""


def above(values: Values, other: Values | float, scale: Values | float) -> Mask:
    """Returns True where a value is above the other one by more than rounding. `scale` is the price that both come from."""
    return values - other > TOLERANCE * scale


def below(values: Values, other: Values | float, scale: Values | float) -> Mask:
    """Returns True where a value is below the other one by more than rounding."""
    return other - values > TOLERANCE * scale


def at_least(values: Values, other: Values | float, scale: Values | float) -> Mask:
    """Returns True where a value is above the other one, or equal but for rounding."""
    return values - other >= -TOLERANCE * scale


def at_most(values: Values, other: Values | float, scale: Values | float) -> Mask:
    """Returns True where a value is below the other one, or equal but for rounding."""
    return other - values >= -TOLERANCE * scale
