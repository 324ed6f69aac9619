"""Trend strength index: the correlation of the latest closes with the bar number, from −1 to 1. 0 while nothing moves."""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import moments, places
from openbell.market.bars import Bars, Values


def correlation(close: Values, length: int) -> Values:
    """NaN for the first `length − 1` bars."""
    _, plain, along, squares = moments(close, length)
    scale = np.sqrt(places(length)[1] * (squares - plain * plain / length))
    return np.clip(np.divide(along, scale, out=0.0 * scale, where=~(scale <= 0.0)), -1.0, 1.0)


def _compute(bars: Bars, length: int) -> Channels:
    return Channels(lines=(Line("TSI", correlation(bars.close, length)),), hlines=(ZERO,), y_range=(-1.0, 1.0))


INDICATOR = Indicator(
    name="trend_strength",
    title="Trend Strength",
    description="Correlation of the latest closes with the bar number: 1 in a steady rise, -1 in a steady fall",
    brief="Correlation of closes with time, -1 to 1",
    overlay=False,
    compute=_compute,
    warmup=lambda length: length,
    parameters=(Parameter("length", 9, 2, 500, tradingview=14),),
    aliases=("trend_strength_index",),
    differs="While the price does not move it is 0, where TradingView has no value.",
)
