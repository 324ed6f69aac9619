"""Close-to-close volatility: the sample deviation of the log returns per year, in per cent. A bar counts as a day."""

from __future__ import annotations

from math import sqrt

import numpy as np

from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.ta_lib import talib
from openbell.indicators.windows import offset_and_deviation
from openbell.market.bars import Bars, Values

DAYS = Parameter("days", 252, 1, 1_000_000)


def _factor(length: int, days: int) -> float:
    """From the population deviation of the returns to the sample deviation per year."""
    return per_year(days * length, length - 1)


def _compute(bars: Bars, length: int, days: int) -> Channels:
    values = _factor(length, days) * offset_and_deviation(log_returns(bars.close), length)[1]
    return Channels(lines=(Line("Volatility", values),))


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


INDICATOR = Indicator(
    name="volatility_close",
    title="Volatility C-C",
    description="Close-to-close volatility: sample deviation of the log returns in per cent a year, a bar as a day",
    brief="Close-to-close volatility, in per cent a year",
    overlay=False,
    compute=_compute,
    warmup=lambda length, days: length + 1,  # noqa: ARG005 - takes every parameter
    parameters=(Parameter("length", 10, 2, 1000), DAYS),
    aliases=("volatility_close_to_close",),
)
