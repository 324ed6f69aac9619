"""Dorsey's mass index: rises when ranges widen, in either direction. The ratio is 1 while the price does not move."""

from __future__ import annotations

import numpy as np

from openbell.indicators.averages import ema
from openbell.indicators.channels import Channels, Level, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import window_sum
from openbell.market.bars import Bars, Values

BULGE, SETTLED = 27.0, 26.5


def mass_index(high: Values, low: Values, fast: int, length: int) -> Values:
    """The sum of `length` ratios of the smoothed range to the doubly smoothed one."""
    once = ema(high - low, fast)
    twice = ema(once, fast)
    ratio = np.ones(len(high))
    np.divide(once, twice, out=ratio, where=twice != 0.0)
    return window_sum(ratio, length)


def _compute(bars: Bars, fast: int, length: int) -> Channels:
    return Channels(
        lines=(Line("Mass", mass_index(bars.high, bars.low, fast, length)),),
        hlines=(Level(SETTLED, "settled"), Level(BULGE, "bulge")),
    )


INDICATOR = Indicator(
    name="mass_index",
    title="Mass Index",
    description="Sum of the ratios of the range's EMA to its double EMA: a bulge above 27 warns of a reversal",
    brief="Sum of the range's EMA ratios: above 27 warns of reversal",
    overlay=False,
    compute=_compute,
    warmup=lambda fast, length: 2 * fast + length - 2,
    parameters=(Parameter("fast", 9, 1, 200), Parameter("length", 10, 1, 500)),
    inputs=("high", "low"),
    differs="While bars have no range the ratio counts as 1, where TradingView has no value.",
)
