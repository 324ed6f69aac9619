"""Chop zone: the angle of the exponential average of 34 closes in degrees, positive while it rises. 0 while nothing moves.

As in TradingView: the step of the average over the typical price is scaled by 25 times the lowest low of 30 bars over their
range, and one bar is 1 wide. TradingView rounds the angle to whole degrees and draws colours for it: beyond ±5 a trend,
between −0.71 and 0.71 chop. Here it is not rounded.
"""

from __future__ import annotations

import numpy as np

from openbell.indicators.averages import ema
from openbell.indicators.channels import ZERO, Channels, Level, Line
from openbell.indicators.spec import Indicator
from openbell.indicators.windows import highest, lowest
from openbell.market.bars import Bars

AVERAGE, RANGE = 34, 30
SCALE = 25.0


def _compute(bars: Bars) -> Channels:
    low = lowest(bars.low, RANGE)
    height = highest(bars.high, RANGE) - low
    step = np.diff(ema(bars.close, AVERAGE), prepend=np.nan) / ((bars.high + bars.low + bars.close) / 3.0)
    slope = np.divide(step * SCALE * low, height, out=0.0 * step, where=~(height <= 0.0))
    return Channels(
        lines=(Line("Angle", np.degrees(np.arctan(slope))),),
        hlines=(Level(-5.0, "falling"), ZERO, Level(5.0, "rising")),
    )


INDICATOR = Indicator(
    name="chop_zone",
    title="Chop Zone",
    description="Angle of the EMA of 34 closes in degrees, scaled by the range of 30 bars: near 0 the market is choppy",
    brief="Angle of the EMA of 34 closes: near 0 is choppy",
    overlay=False,
    compute=_compute,
    warmup=lambda: AVERAGE + 1,
    inputs=("high", "low", "close"),
    differs=(
        "TradingView rounds the angle to whole degrees. While the price does not move it is 0, where TradingView "
        "has no value."
    ),
)
