"""Relative volume: the volume of a bar over the average volume of the bars before it. NaN if those traded nothing."""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import Channels, Level, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import window_mean
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int) -> Channels:
    out = np.full(len(bars), np.nan)
    usual = window_mean(bars.volume, length)[:-1]
    np.divide(bars.volume[1:], usual, out=out[1:], where=usual > 0.0)
    return Channels(lines=(Line("RVOL", out),), hlines=(Level(1.0, "average"),))


INDICATOR = Indicator(
    name="relative_volume",
    title="RVOL",
    description="Volume of a bar over the simple average of the volumes of the bars before it",
    brief="Volume over the average volume of the bars before",
    overlay=False,
    compute=_compute,
    warmup=lambda length: length + 1,
    parameters=(Parameter("length", 20, 1, 1000),),
    aliases=("rvol",),
    inputs=("volume",),
)
