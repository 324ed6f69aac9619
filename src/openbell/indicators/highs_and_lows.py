"""The highest and the lowest of the latest values."""

from __future__ import annotations

import numpy as np

from openbell.indicators.ta_lib import talib
from openbell.market.bars import Values


def highest(values: Values, length: int) -> Values:
    """The highest of the latest `length` values; NaN until there are enough."""
    found: Values = values.copy() if length == 1 else talib.MAX(values, length)
    return found


def lowest(values: Values, length: int) -> Values:
    """The lowest of the latest `length` values; NaN until there are enough."""
    found: Values = values.copy() if length == 1 else talib.MIN(values, length)
    return found


def highest_so_far(values: Values, length: int) -> Values:
    """The highest of the latest `length` values, of all values so far until there are enough."""
    out = highest(values, length)
    out[: length - 1] = np.maximum.accumulate(values[: length - 1])
    return out


def middle(high: Values, low: Values, length: int) -> Values:
    """Half way between the highest high and the lowest low."""
    return (highest(high, length) + lowest(low, length)) / 2.0
