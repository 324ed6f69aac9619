"""Volatility per year in per cent, from logarithms of ratios of prices.

A bar counts as a day: for other bars `days` is the number of bars per year.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from openbell.indicators.spec import Parameter
from openbell.indicators.ta_lib import talib
from openbell.market.bars import Values

DAYS = Parameter("days", 252, 1, 1_000_000)


def log_ratio(values: Values, others: Values) -> Values:
    """The logarithm of each value over the other one."""
    # TA-Lib's LN calls the platform's logarithm; that of numpy depends on the processor.
    found: Values = talib.LN(values / others)
    return found


def log_returns(close: Values) -> Values:
    """The logarithm of each close over the previous one; NaN for the first."""
    out = np.full(len(close), np.nan)
    out[1:] = log_ratio(close[1:], close[:-1])
    return out


def per_year(days: float, count: float) -> float:
    """The factor from the root of a sum of squared deviations to their volatility; `count` is their degrees of freedom."""
    return 100.0 * sqrt(days / count)
