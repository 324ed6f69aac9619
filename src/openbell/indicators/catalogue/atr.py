"""Wilder's average true range."""

from __future__ import annotations

import numpy as np

from openbell.indicators.averages import wilder
from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars, Values


def true_range(bars: Bars) -> Values:
    """The range of each bar including the gap from the previous close; the first bar has no gap."""
    if not len(bars):
        return bars.high - bars.low
    before = np.concatenate((bars.close[:1], bars.close[:-1]))
    reach = np.maximum(bars.high, before) - np.minimum(bars.low, before)
    reach[0] = bars.high[0] - bars.low[0]
    return reach


def atr(bars: Bars, length: int) -> Values:
    """NaN for the first `length − 1` bars."""
    return wilder(true_range(bars), length)


def _compute(bars: Bars, length: int) -> Channels:
    return Channels(lines=(Line("ATR", atr(bars, length)),))


INDICATOR = Indicator(
    name="atr",
    title="ATR",
    description="Wilder's average of the true range",
    overlay=False,
    compute=_compute,
    warmup=lambda length: length,
    parameters=(Parameter("length", 14, 1, 500, aliases=("period",)),),
    aliases=("average_true_range",),
    inputs=("high", "low", "close"),
)
