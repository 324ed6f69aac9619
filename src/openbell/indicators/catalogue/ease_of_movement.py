"""Arms' ease of movement: the average of the moves of the bars' middles times their ranges, over the volume.

A bar without volume counts as 0.
"""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import window_mean
from openbell.market.bars import Bars


def _compute(bars: Bars, divisor: int, length: int) -> Channels:
    move = np.diff((bars.high + bars.low) / 2.0, prepend=np.nan)
    ease = np.divide(divisor * move * (bars.high - bars.low), bars.volume, out=0.0 * move, where=bars.volume > 0.0)
    return Channels(lines=(Line("EOM", window_mean(ease, length)),), hlines=(ZERO,))


INDICATOR = Indicator(
    name="ease_of_movement",
    title="EOM",
    description="Average move of each bar's middle times its range over its volume: high if prices rise on little volume",
    brief="How far prices move for their volume",
    overlay=False,
    compute=_compute,
    warmup=lambda divisor, length: length + 1,  # noqa: ARG005 - takes every parameter
    parameters=(Parameter("divisor", 10_000, 1, 1_000_000_000), Parameter("length", 14, 1, 500)),
    aliases=("eom", "emv"),
    inputs=("high", "low", "volume"),
    differs="A bar without volume adds 0, where TradingView has no value.",
)
