"""Averages whose weights depend only on a value's age.

They are computed as the latest value less weighted steps between values, so that a constant price gives exactly that price
and rounding errors do not accumulate over the bars, as they do in TA-Lib's running sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import fsum

import numpy as np

from openbell.market.bars import Values

Weights = Sequence[float]


def linear_weights(length: int) -> list[float]:
    """1, 2, 3 … as shares of their sum: the latest value weighs most."""
    return [2.0 * rank / (length * (length + 1)) for rank in range(1, length + 1)]


def shares(weights: Weights) -> list[float]:
    """Weights as shares of their sum."""
    whole = fsum(weights)
    return [weight / whole for weight in weights]


def weighted_average(values: Values, weights: Weights) -> Values:
    """The average of the latest values with weights that add up to 1, oldest first; NaN until there are enough."""
    return values - weighted_steps(values, _steps(weights))


def weighted_steps(values: Values, weights: Weights) -> Values:
    """The weighted sum of the latest steps between values, oldest first; NaN until there are enough."""
    out = np.full(len(values), np.nan)
    if len(values) > len(weights):
        out[len(weights) :] = np.correlate(np.diff(values), weights) if weights else 0.0
    return out


def _steps(weights: Weights) -> list[float]:
    """The weight of each step between two values: the sum of the weights of all earlier values."""
    return list(accumulate(weights))[:-1]
