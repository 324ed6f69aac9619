"""Simple moving average."""

from __future__ import annotations

from openbell.indicators.averages import sma
from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int) -> Channels:
    return Channels(lines=(Line("SMA", sma(bars.close, length)),))


INDICATOR = Indicator(
    name="sma",
    title="SMA",
    description="Simple moving average of the close",
    overlay=True,
    compute=_compute,
    warmup=lambda length: length,
    parameters=(Parameter("length", 10, 1, 1000, tradingview=9),),
    aliases=("ma", "simple_moving_average", "moving_average", "moving_average_simple"),
    settles=1,
)
