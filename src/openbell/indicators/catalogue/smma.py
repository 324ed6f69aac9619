"""Smoothed moving average: Wilder's average of the close, which starts with the simple average."""

from __future__ import annotations

from openbell.indicators.averages import wilder
from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int) -> Channels:
    return Channels(lines=(Line("SMMA", wilder(bars.close, length)),))


INDICATOR = Indicator(
    name="smma",
    title="SMMA",
    description="Smoothed moving average of the close: Wilder's average, seeded with the simple one",
    brief="Smoothed moving average of the close (Wilder's)",
    overlay=True,
    compute=_compute,
    warmup=lambda length: length,
    parameters=(Parameter("length", 7, 1, 500),),
    aliases=("smoothed_moving_average",),
)
