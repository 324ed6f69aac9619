"""O-H-L-C volatility: Garman and Klass' estimate from the range and the body of each bar, per year, in per cent.

The variance of a bar is half the square of log(high / low), less (2 ln 2 − 1) times the square of log(close / open). Gaps
between bars do not count. A bar counts as a day.
"""

from __future__ import annotations

from math import log

import numpy as np

from openbell.indicators.catalogue.volatility_close import DAYS, log_ratio, per_year
from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import window_sum
from openbell.market.bars import Bars, Values

BODY = 2.0 * log(2.0) - 1.0


def _variance(height: Values, body: Values) -> Values:
    """From the logarithms of high / low and of close / open."""
    return 0.5 * (height * height) - BODY * (body * body)


def _compute(bars: Bars, length: int, days: int) -> Channels:
    variance = _variance(log_ratio(bars.high, bars.low), log_ratio(bars.close, bars.open))
    # Not negative in a bar, whose body lies in its range; the sum can be by rounding.
    values = per_year(days, length) * np.sqrt(np.maximum(window_sum(variance, length), 0.0))
    return Channels(lines=(Line("Volatility", values),))


INDICATOR = Indicator(
    name="volatility_ohlc",
    title="Volatility OHLC",
    description="Garman-Klass volatility from open, high, low and close in per cent a year, a bar as a day",
    brief="Garman-Klass volatility, in per cent a year",
    overlay=False,
    compute=_compute,
    warmup=lambda length, days: length,  # noqa: ARG005 - takes every parameter
    parameters=(Parameter("length", 10, 1, 1000), DAYS),
    aliases=("garman_klass",),
    inputs=("open", "high", "low", "close"),
)
