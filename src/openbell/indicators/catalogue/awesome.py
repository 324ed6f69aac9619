"""Williams' awesome oscillator: a short less a long simple average of the middles of the bars."""

from __future__ import annotations

from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import window_mean
from openbell.market.bars import Bars


def _compute(bars: Bars, fast: int, slow: int) -> Channels:
    middle = (bars.high + bars.low) / 2.0
    values = window_mean(middle, fast) - window_mean(middle, slow)
    return Channels(histogram=(Line("AO", values),), hlines=(ZERO,))


INDICATOR = Indicator(
    name="awesome",
    title="AO",
    description="Awesome oscillator: a fast less a slow simple average of each bar's middle",
    brief="Awesome oscillator: fast less slow average of bars' middles",
    overlay=False,
    compute=_compute,
    warmup=lambda **lengths: max(lengths.values()),
    parameters=(Parameter("fast", 5, 1, 500), Parameter("slow", 34, 1, 500)),
    aliases=("ao", "awesome_oscillator"),
    inputs=("high", "low"),
)
