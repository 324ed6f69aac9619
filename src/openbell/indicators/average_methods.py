"""The averages that an indicator with a parameter `method` can use."""

from __future__ import annotations

from openbell.indicators.averages import ema
from openbell.indicators.spec import Parameter
from openbell.indicators.weighted import linear_weights, weighted_average
from openbell.indicators.windows import window_mean
from openbell.market.bars import Values

METHODS = ("simple", "exponential", "weighted")
METHOD = Parameter("method", METHODS[0], choices=METHODS)


def average(values: Values, length: int, method: str) -> Values:
    """The average of the latest `length` values by this method. Leading NaN are skipped."""
    if method == "exponential":
        return ema(values, length)
    if method == "weighted":
        return weighted_average(values, linear_weights(length))
    return window_mean(values, length)
