"""Zero-trend close-to-close volatility: the root mean square of the log returns per year, in per cent.

Their mean counts as 0. A bar counts as a day.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from openbell.indicators.annual import DAYS, RunningReturn, log_returns, per_year
from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.windows import RunningSum, window_sum
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int, days: int) -> Channels:
    squares = window_sum(np.square(log_returns(bars.close)), length)
    return Channels(lines=(Line("Volatility", per_year(days, length) * np.sqrt(squares)),))


class _Stream:
    def __init__(self, length: int, days: int) -> None:
        self._return, self._squares = RunningReturn(), RunningSum(length)
        self._factor = per_year(days, length)

    def update(self, bar: Bar) -> tuple[float, ...]:
        change = self._return.update(bar.close)
        return (self._factor * sqrt(self._squares.update(change * change)),)


INDICATOR = Indicator(
    name="volatility_zero_trend",
    title="Volatility ZT",
    description="Close-to-close volatility with a mean of 0: root mean square of the log returns in per cent a year",
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length, days: length + 1,  # noqa: ARG005 - takes every parameter
    parameters=(Parameter("length", 10, 1, 1000), DAYS),
    aliases=("volatility_zero_trend_close_to_close",),
)
