"""Hull moving average: twice a fast weighted average less a slow one, smoothed once more."""

from __future__ import annotations

from math import isqrt

import numpy as np

from openbell.indicators.averages import linear_weights, weighted_average
from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars


def hull_weights(length: int) -> list[float]:
    """The combined weights of the three averages."""
    lead = -np.array(linear_weights(length))
    half = max(1, length // 2)
    lead[-half:] += 2.0 * np.array(linear_weights(half))
    weights: list[float] = np.convolve(lead, linear_weights(isqrt(length))).tolist()
    return weights


def _compute(bars: Bars, length: int) -> Channels:
    return Channels(lines=(Line("HMA", weighted_average(bars.close, hull_weights(length))),))


INDICATOR = Indicator(
    name="hma",
    title="HMA",
    description="Hull moving average of the close: quick to turn, yet smooth",
    overlay=True,
    compute=_compute,
    warmup=lambda length: length + isqrt(length) - 1,
    parameters=(Parameter("length", 9, 1, 1000),),
    aliases=("hull_moving_average", "hull_ma"),
    settles=1,
)
