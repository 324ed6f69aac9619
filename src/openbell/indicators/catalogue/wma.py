"""Weighted moving average: weights fall linearly from the latest bar to the oldest."""

from __future__ import annotations

from openbell.indicators.averages import linear_weights, weighted_average
from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int) -> Channels:
    return Channels(lines=(Line("WMA", weighted_average(bars.close, linear_weights(length))),))


INDICATOR = Indicator(
    name="wma",
    title="WMA",
    description="Linearly weighted moving average of the close",
    overlay=True,
    compute=_compute,
    warmup=lambda length: length,
    parameters=(Parameter("length", 9, 1, 1000),),
    aliases=("weighted_moving_average", "moving_average_weighted"),
    settles=1,
)
