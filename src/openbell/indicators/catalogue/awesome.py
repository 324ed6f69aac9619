"""Williams' awesome oscillator: a short less a long simple average of the middles of the bars."""

from __future__ import annotations

from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.windows import RunningMean, window_mean
from openbell.market.bars import Bars


def _compute(bars: Bars, fast: int, slow: int) -> Channels:
    middle = (bars.high + bars.low) / 2.0
    values = window_mean(middle, fast) - window_mean(middle, slow)
    return Channels(histogram=(Line("AO", values),), hlines=(ZERO,))


class _Stream:
    def __init__(self, fast: int, slow: int) -> None:
        self._fast = RunningMean(fast)
        self._slow = RunningMean(slow)

    def update(self, bar: Bar) -> tuple[float, ...]:
        middle = (bar.high + bar.low) / 2.0
        return (self._fast.update(middle) - self._slow.update(middle),)


INDICATOR = Indicator(
    name="awesome",
    title="AO",
    description="Awesome oscillator: a fast less a slow simple average of each bar's middle",
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=lambda **lengths: max(lengths.values()),
    parameters=(Parameter("fast", 5, 1, 500), Parameter("slow", 34, 1, 500)),
    aliases=("ao", "awesome_oscillator"),
    inputs=("high", "low"),
)
