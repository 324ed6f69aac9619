"""Volatility per year in per cent, from logarithms of ratios of prices.

A bar counts as a day: for other bars `days` is the number of bars per year.
"""

from __future__ import annotations

from math import inf, log, nan, sqrt

import numpy as np

from openbell.indicators.spec import Parameter
from openbell.indicators.ta_lib import talib
from openbell.market.bars import Values

DAYS = Parameter("days", 252, 1, 1_000_000)


def log_ratio(values: Values, others: Values) -> Values:
    """The logarithm of each value over the other one."""
    # TA-Lib's LN and `math.log` both call the platform's logarithm; numpy has its own.
    found: Values = talib.LN(values / others)
    return found


def log_ratio_of(value: float, other: float) -> float:
    """`log_ratio` of two numbers, bit for bit equal."""
    ratio = value / other
    return log(ratio) if ratio != 0.0 else -inf


def log_returns(close: Values) -> Values:
    """The logarithm of each close over the previous one; NaN for the first."""
    out = np.full(len(close), np.nan)
    out[1:] = log_ratio(close[1:], close[:-1])
    return out


class RunningReturn:
    """`log_returns`, one close at a time, bit for bit equal."""

    __slots__ = ("_close",)

    def __init__(self) -> None:
        self._close = nan

    def update(self, close: float) -> float:
        """The return of this close; NaN for the first."""
        before, self._close = self._close, close
        return log_ratio_of(close, before)


def per_year(days: float, count: float) -> float:
    """The factor from the root of a sum of squared deviations to their volatility; `count` is their degrees of freedom."""
    return 100.0 * sqrt(days / count)
