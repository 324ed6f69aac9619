"""Weighted moving average: weights fall linearly from the latest bar to the oldest."""

from __future__ import annotations

from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.weighted import RunningWeightedAverage, linear_weights, weighted_average
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int) -> Channels:
    return Channels(lines=(Line("WMA", weighted_average(bars.close, linear_weights(length))),))


class _Stream:
    def __init__(self, length: int) -> None:
        self._average = RunningWeightedAverage(linear_weights(length))

    def update(self, bar: Bar) -> tuple[float, ...]:
        return (self._average.update(bar.close),)


INDICATOR = Indicator(
    name="wma",
    title="WMA",
    description="Linearly weighted moving average of the close",
    overlay=True,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length: length,
    parameters=(Parameter("length", 9, 1, 1000),),
    aliases=("weighted_moving_average", "moving_average_weighted"),
    settles=1,
)
