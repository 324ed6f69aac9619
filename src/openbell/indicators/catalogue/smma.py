"""Smoothed moving average: Wilder's average of the close, which starts with the simple average."""

from __future__ import annotations

from openbell.indicators.averages import wilder
from openbell.indicators.channels import Channels, Line
from openbell.indicators.exact_averages import wilder as running_wilder
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int) -> Channels:
    return Channels(lines=(Line("SMMA", wilder(bars.close, length)),))


class _Stream:
    def __init__(self, length: int) -> None:
        self._average = running_wilder(length)

    def update(self, bar: Bar) -> tuple[float, ...]:
        return (self._average.update(bar.close),)


INDICATOR = Indicator(
    name="smma",
    title="SMMA",
    description="Smoothed moving average of the close: Wilder's average, seeded with the simple one",
    overlay=True,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length: length,
    parameters=(Parameter("length", 7, 1, 500),),
    aliases=("smoothed_moving_average",),
)
