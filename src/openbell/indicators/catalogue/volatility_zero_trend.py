"""Zero-trend close-to-close volatility: the root mean square of the log returns per year, in per cent.

Their mean counts as 0. A bar counts as a day.
"""

from __future__ import annotations

import numpy as np

from openbell.indicators.catalogue.volatility_close import DAYS, log_returns, per_year
from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import window_sum
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int, days: int) -> Channels:
    squares = window_sum(np.square(log_returns(bars.close)), length)
    return Channels(lines=(Line("Volatility", per_year(days, length) * np.sqrt(squares)),))


INDICATOR = Indicator(
    name="volatility_zero_trend",
    title="Volatility ZT",
    description="Close-to-close volatility with a mean of 0: root mean square of the log returns in per cent a year",
    brief="Close-to-close volatility with a mean of 0",
    overlay=False,
    compute=_compute,
    warmup=lambda length, days: length + 1,  # noqa: ARG005 - takes every parameter
    parameters=(Parameter("length", 10, 1, 1000), DAYS),
    aliases=("volatility_zero_trend_close_to_close",),
)
