"""Aroon: the number of bars since the highest high and since the lowest low. Of equal extremes the oldest counts."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Indicator, LinePair, Parameter
from openbell.market.bars import Bars, Values


def aroon(high: Values, low: Values, length: int) -> tuple[Values, Values]:
    """Up and down, 0 to 100: 100 if this bar is the extreme, 0 if the extreme is `length` bars old."""
    out = np.full((2, len(high)), np.nan)
    if len(high) > length:
        # The place of the first of the highest values in each window: 0 for the oldest bar, `length` for the latest.
        for number, values in enumerate((high, -low)):
            out[number, length:] = 100.0 / length * sliding_window_view(values, length + 1).argmax(axis=1)
    return out[0], out[1]


def _compute(bars: Bars, length: int) -> Channels:
    up, down = aroon(bars.high, bars.low, length)
    return Channels(lines=(Line("Up", up), Line("Down", down)), y_range=(0.0, 100.0))


INDICATOR = Indicator(
    name="aroon",
    title="Aroon",
    description="How recently the highest high (Up) and the lowest low (Down) came, 100 for this bar",
    brief="How recent the highest high (Up) and lowest low (Down) are",
    overlay=False,
    compute=_compute,
    warmup=lambda length: length + 1,
    parameters=(Parameter("length", 14, 2, 500),),
    inputs=("high", "low"),
    settles=1,
    crosses=(LinePair("Up", "Down"),),
)
