"""Kaufman's adaptive moving average: fast while the close moves one way, slow while it moves back and forth.

The weight is the square of a smoothing factor between those of a slow and a fast exponential average. The efficiency ratio
places it between them: the net change of the close over the sum of its changes, 0 while nothing moves. The average starts
with the close before the first bar that has a ratio.
"""

from __future__ import annotations

import numpy as np

from openbell.indicators.averages import adaptive_average
from openbell.indicators.channels import Channels, Line
from openbell.indicators.lines import shifted_later
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import window_sum
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int, fast: int, slow: int) -> Channels:
    close = bars.close
    path = window_sum(np.abs(np.diff(close, prepend=np.nan)), length)
    net = np.abs(close - shifted_later(close, length))
    efficiency = np.minimum(1.0, np.divide(net, path, out=np.zeros(len(close)), where=path > 0.0))
    quickest, slowest = 2.0 / (fast + 1), 2.0 / (slow + 1)
    factor = efficiency * (quickest - slowest) + slowest
    values = adaptive_average(close, factor * factor, length - 1, close)
    values[length - 1 : length] = np.nan
    return Channels(lines=(Line("KAMA", values),))


INDICATOR = Indicator(
    name="kama",
    title="KAMA",
    description="Kaufman's adaptive moving average of the close: fast in trends, slow in noise",
    brief="Kaufman's average: fast in trends, slow in noise",
    overlay=True,
    compute=_compute,
    warmup=lambda length, fast, slow: length + 1,  # noqa: ARG005 - takes every parameter
    parameters=(Parameter("length", 10, 1, 500), Parameter("fast", 2, 1, 100), Parameter("slow", 30, 1, 500)),
    aliases=("moving_average_adaptive", "kaufmans_adaptive_moving_average"),
    cumulative=True,  # its lowest weight is that of `slow`, squared: old bars fade slowly
)
