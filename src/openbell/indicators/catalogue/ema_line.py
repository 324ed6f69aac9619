"""Exponential moving average, one line."""

from __future__ import annotations

from openbell.indicators.averages import ema
from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int) -> Channels:
    return Channels(lines=(Line("EMA", ema(bars.close, length)),))


INDICATOR = Indicator(
    name="ema_line",
    title="EMA",
    description="Exponential moving average of the close, seeded with the simple one",
    brief="Exponential moving average of the close",
    overlay=True,
    compute=_compute,
    warmup=lambda length: length,
    parameters=(Parameter("length", 9, 1, 1000),),
    aliases=("exponential_moving_average", "moving_average_exponential"),
    settles=12,
)
