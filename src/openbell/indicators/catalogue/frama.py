"""Ehlers' fractal adaptive moving average: fast in a trend (fractal dimension 1), slow in a range (dimension 2).

The average of the middles of the bars starts with the middle of the last warm-up bar. If half of the window has no range,
the weight of the bar before is used again. An odd length counts as the even number below it.
"""

from __future__ import annotations

from collections import deque
from math import exp, isnan, log2, nan

import numpy as np

from openbell.indicators.channels import Channels, Line
from openbell.indicators.highs_and_lows import RunningExtremes, highest, lowest
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.stepwise import stepwise
from openbell.market.bars import Bars, Values

RATE = 4.6
SLOWEST = 0.01


class _Filter:
    """The average, from the range of each half of the window and of the whole."""

    __slots__ = ("_value", "_weight")

    def __init__(self) -> None:
        self._value = nan
        self._weight = 1.0

    def update(self, price: float, newer: float, older: float, whole: float) -> tuple[float, ...]:
        """The average after this bar; NaN while a range is NaN."""
        if isnan(older):
            return (nan,)
        if newer > 0.0 and older > 0.0 and whole > 0.0:
            # The dimension is 1 + log2(ratio). In a trend the halves do not overlap, and the weight is at its limit of 1.
            ratio = (newer + older) / whole
            self._weight = max(SLOWEST, exp(-RATE * log2(ratio))) if ratio > 1.0 else 1.0
        if isnan(self._value):
            self._value = price
        else:
            self._value += self._weight * (price - self._value)
        return (self._value,)


def _ranges(bars: Bars, half: int) -> tuple[Values, Values, Values]:
    """The range of the newer half of the window, of the older half and of the whole."""
    newer = highest(bars.high, half) - lowest(bars.low, half)
    older = np.concatenate((np.full(min(half, len(bars)), np.nan), newer[:-half]))
    return newer, older, highest(bars.high, 2 * half) - lowest(bars.low, 2 * half)


def _compute(bars: Bars, length: int) -> Channels:
    middle = (bars.high + bars.low) / 2.0
    (values,) = stepwise(_Filter().update, 1, middle, *_ranges(bars, length // 2))
    return Channels(lines=(Line("FRAMA", values),))


class _Stream:
    def __init__(self, length: int) -> None:
        half = length // 2
        self._half, self._whole = RunningExtremes(half), RunningExtremes(2 * half)
        self._ranges: deque[float] = deque([nan] * half, maxlen=half)
        self._filter = _Filter()

    def update(self, bar: Bar) -> tuple[float, ...]:
        (top, bottom), (high, low) = self._half.update(bar.high, bar.low), self._whole.update(bar.high, bar.low)
        newer, older = top - bottom, self._ranges[0]
        self._ranges.append(newer)
        return self._filter.update((bar.high + bar.low) / 2.0, newer, older, high - low)


INDICATOR = Indicator(
    name="frama",
    title="FRAMA",
    description="Ehlers' fractal adaptive moving average of each bar's middle: fast in trends, slow in ranges",
    overlay=True,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length: 2 * (length // 2),
    parameters=(Parameter("length", 16, 2, 500),),
    inputs=("high", "low"),
    cumulative=True,  # its lowest weight is 0.01, whatever the length: old bars fade slowly
)
