"""Ehlers' fractal adaptive moving average: fast in a trend (fractal dimension 1), slow in a range (dimension 2).

The average of the middles of the bars starts with the middle of the last warm-up bar. If half of the window has no range,
the weight of the bar before is used again. An odd length counts as the even number below it.
"""

from __future__ import annotations

from math import log2

import numpy as np

from openbell.indicators.averages import adaptive_average
from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.ta_lib import talib
from openbell.indicators.windows import highest, lowest
from openbell.market.bars import Bars, Values

RATE = 4.6
SLOWEST = 0.01


def _weights(newer: Values, older: Values, whole: Values) -> Values:
    """The weight of each bar, from the range of each half of the window and of the whole.

    The fractal dimension is 1 + log2(ratio). In a trend the halves do not overlap, and the weight is at its limit of 1.
    """
    known = np.flatnonzero((newer > 0.0) & (older > 0.0) & (whole > 0.0))
    ratio = np.maximum((newer[known] + older[known]) / whole[known], 1.0)
    # TA-Lib's EXP and `math.log2` call the platform's functions; those of numpy depend on the processor.
    weights = np.maximum(SLOWEST, talib.EXP(-RATE * np.fromiter(map(log2, ratio.tolist()), np.float64)))
    place = np.searchsorted(known, np.arange(len(newer)), side="right")
    return np.append(1.0, weights)[place]


def _ranges(bars: Bars, half: int) -> tuple[Values, Values, Values]:
    """The range of the newer half of the window, of the older half and of the whole."""
    newer = highest(bars.high, half) - lowest(bars.low, half)
    older = np.concatenate((np.full(min(half, len(bars)), np.nan), newer[:-half]))
    return newer, older, highest(bars.high, 2 * half) - lowest(bars.low, 2 * half)


def _compute(bars: Bars, length: int) -> Channels:
    half, middle = length // 2, (bars.high + bars.low) / 2.0
    values = adaptive_average(middle, _weights(*_ranges(bars, half)), 2 * half - 1, middle)
    return Channels(lines=(Line("FRAMA", values),))


INDICATOR = Indicator(
    name="frama",
    title="FRAMA",
    description="Ehlers' fractal adaptive moving average of each bar's middle: fast in trends, slow in ranges",
    brief="Ehlers' fractal average: fast in trends, slow in ranges",
    overlay=True,
    compute=_compute,
    warmup=lambda length: 2 * (length // 2),
    parameters=(Parameter("length", 16, 2, 500),),
    inputs=("high", "low"),
    cumulative=True,  # its lowest weight is 0.01, whatever the length: old bars fade slowly
)
