"""Choppiness: 0 if the price moves in a straight line, 100 if it moves without getting anywhere or does not move."""

from __future__ import annotations

from math import log10

import numpy as np

from openbell.indicators.average_range import RunningRange
from openbell.indicators.catalogue.atr import true_range
from openbell.indicators.channels import Channels, Level, Line
from openbell.indicators.highs_and_lows import RunningExtremes, highest, lowest
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.windows import RunningSum, window_sum
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


class _Stream:
    def __init__(self, length: int) -> None:
        self._way = RunningSum(length)
        self._extremes = RunningExtremes(length)
        self._range = RunningRange()
        self._length = length

    def update(self, bar: Bar) -> tuple[float, ...]:
        way = self._way.update(self._range.update(bar))
        highest, lowest = self._extremes.update(bar.high, bar.low)
        span = highest - lowest
        ratio = way / span if span else float(self._length)
        return (100.0 * (log10(ratio) / log10(self._length)),)


INDICATOR = Indicator(
    name="choppiness",
    title="CHOP",
    description="Choppiness index: how the sum of the true ranges compares with the range of all, logarithmic",
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length: length,
    parameters=(Parameter("length", 14, 2, 500),),
    aliases=("chop", "choppiness_index"),
    inputs=("high", "low", "close"),
    differs="While the price does not move it is 100, where TradingView has no value.",
)
