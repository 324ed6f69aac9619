"""Balance of power: the move from open to close over the range of the bar. 0 for a bar without a range."""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.spec import Indicator
from openbell.market.bars import Bars


def _compute(bars: Bars) -> Channels:
    height = bars.high - bars.low
    values = np.divide(bars.close - bars.open, height, out=np.zeros(len(bars)), where=height > 0.0)
    return Channels(lines=(Line("BOP", values),), hlines=(ZERO,), y_range=(-1.0, 1.0))


INDICATOR = Indicator(
    name="bop",
    title="BOP",
    description="Balance of power: the move from open to close over the range of each bar",
    brief="Balance of power: move from open to close over the range",
    overlay=False,
    compute=_compute,
    warmup=lambda: 1,
    aliases=("balance_of_power",),
    inputs=("open", "high", "low", "close"),
    differs="It is 0 for a bar without a range, where TradingView has no value.",
)
