"""Accumulation/distribution line: the running total of the money flow."""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Indicator
from openbell.market.bars import Bars, Values


def _compute(bars: Bars) -> Channels:
    return Channels(lines=(Line("AD", np.cumsum(money_flow(bars))),))


def money_flow(bars: Bars) -> Values:
    """Volumes times the position of each close in its range, from −1 at the low to 1 at the high; 0 without a range."""
    height = bars.high - bars.low
    lean = (bars.close - bars.low) - (bars.high - bars.close)
    return np.divide(lean, height, out=np.zeros(len(bars)), where=height > 0.0) * bars.volume


INDICATOR = Indicator(
    name="ad",
    title="A/D",
    description="Running total of the volume, weighed by where each bar closed in its range",
    brief="Running total of volume, weighed by each close in its range",
    overlay=False,
    compute=_compute,
    warmup=lambda: 1,
    cumulative=True,
    aliases=("ad_line", "adline", "accumulation_distribution", "adl"),
    inputs=("high", "low", "close", "volume"),
)
