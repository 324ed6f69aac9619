"""Simple moving average."""

from __future__ import annotations

from openbell.indicators.averages import sma
from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.windows import RunningMean
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int) -> Channels:
    return Channels(lines=(Line("SMA", sma(bars.close, length)),))


class _Stream:
    def __init__(self, length: int) -> None:
        self._mean = RunningMean(length)

    def update(self, bar: Bar) -> tuple[float, ...]:
        return (self._mean.update(bar.close),)


INDICATOR = Indicator(
    name="sma",
    title="SMA",
    description="Simple moving average of the close",
    overlay=True,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length: length,
    parameters=(Parameter("length", 10, 1, 1000, tradingview=9),),
    aliases=("ma", "simple_moving_average", "moving_average", "moving_average_simple"),
    settles=1,
)
