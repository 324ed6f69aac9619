"""Averages over arrays, used by most indicators. NaN until there are enough values.

Seeded as in TradingView: an exponential average starts with the simple average. Simple averages and deviations are computed
relative to the last value of the window, so that a constant price gives exactly that price and a deviation of exactly 0.
Averages whose weights depend only on a value's age are computed as the latest value less weighted steps between values, so
that a constant price gives exactly that price and rounding errors do not accumulate over the bars, as they do in TA-Lib's
running sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from math import fsum

import numpy as np

from openbell.indicators.spec import Parameter
from openbell.indicators.ta_lib import talib
from openbell.indicators.windows import mean_and_deviation, window_mean
from openbell.market.bars import Values

Weights = Sequence[float]
METHODS = ("simple", "exponential", "weighted")
METHOD = Parameter("method", METHODS[0], choices=METHODS)


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


def adaptive_average(prices: Values, weights: Values, start: int, seeds: Values) -> Values:
    """The average from the bar `start` on, where it is the seed of that bar; NaN before it."""
    out = np.full(len(prices), np.nan)
    if start < len(prices):
        value = float(seeds[start])
        steps = zip(prices[start + 1 :].tolist(), weights[start + 1 :].tolist(), strict=True)
        out[start:] = [value, *[value := value + weight * (price - value) for price, weight in steps]]
    return out


def average_by(values: Values, length: int, method: str) -> Values:
    """The average of the latest `length` values by this method. Leading NaN are skipped."""
    if method == "exponential":
        return ema(values, length)
    if method == "weighted":
        return weighted_average(values, linear_weights(length))
    return window_mean(values, length)
