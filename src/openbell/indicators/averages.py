"""Averages over arrays, used by most indicators. NaN until there are enough values.

Seeded as in TradingView: an exponential average starts with the simple average. Simple averages and deviations are computed
relative to the last value of the window, so that a constant price gives exactly that price and a deviation of exactly 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from openbell.indicators.sums import mean_and_deviation
from openbell.indicators.ta_lib import talib
from openbell.indicators.windows import window_mean
from openbell.market.bars import Values


def ema(values: Values, length: int) -> Values:
    """Exponential average with alpha 2 / (length + 1)."""
    return _after_nan(values, length, lambda rest: rest.copy() if length == 1 else talib.EMA(rest, length))


def wilder(values: Values, length: int) -> Values:
    """Wilder's average: alpha 1 / length."""
    return _after_nan(values, length, lambda rest: rest.copy() if length == 1 else talib.RMA(rest, length))


def sma(values: Values, length: int) -> Values:
    """Simple average."""
    return window_mean(values, length)


def sma_and_deviation(values: Values, length: int) -> tuple[Values, Values]:
    """Simple average and population standard deviation."""
    return mean_and_deviation(values, length)


def _after_nan(values: Values, length: int, average: Callable[[Values], Values]) -> Values:
    """Apply an average to the values after leading NaN (the warm-up of the input)."""
    if len(values) >= length and values[0] == values[0]:  # not NaN
        return average(np.ascontiguousarray(values))
    lead = int(np.argmax(~np.isnan(values))) if len(values) else 0
    out = np.full(len(values), np.nan)
    if len(values) - lead >= length and not np.isnan(values[lead : lead + 1]).any():
        out[lead:] = average(np.ascontiguousarray(values[lead:]))
    return out
