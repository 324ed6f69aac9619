"""Choppiness: 0 if the price moves in a straight line, 100 if it moves without getting anywhere or does not move."""

from __future__ import annotations

from math import log10

import numpy as np

from openbell.indicators.catalogue.atr import true_range
from openbell.indicators.channels import Channels, Level, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import highest, lowest, window_sum
from openbell.market.bars import Bars, Values


def choppiness(bars: Bars, length: int) -> Values:
    """100 × log(sum of true ranges / range of all) / log(length); NaN for the first `length − 1` bars."""
    way = window_sum(true_range(bars), length)
    span = highest(bars.high, length) - lowest(bars.low, length)
    ratio = np.full(len(bars), float(length))
    np.divide(way, span, out=ratio, where=span != 0.0)
    found: Values = 100.0 * (np.log10(ratio) / log10(length))
    return found


def _compute(bars: Bars, length: int) -> Channels:
    return Channels(
        lines=(Line("CHOP", choppiness(bars, length)),),
        hlines=(Level(38.2, "trending"), Level(61.8, "choppy")),
        y_range=(0.0, 100.0),
    )


INDICATOR = Indicator(
    name="choppiness",
    title="CHOP",
    description="Choppiness index: how the sum of the true ranges compares with the range of all, logarithmic",
    brief="Choppiness index: trending (low) or choppy (high)",
    overlay=False,
    compute=_compute,
    warmup=lambda length: length,
    parameters=(Parameter("length", 14, 2, 500),),
    aliases=("chop", "choppiness_index"),
    inputs=("high", "low", "close"),
    differs="While the price does not move it is 100, where TradingView has no value.",
)
