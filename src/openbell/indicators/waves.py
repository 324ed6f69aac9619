"""WaveTrend: the distance of the typical price from its average, in units of its average distance, smoothed twice."""

from __future__ import annotations

from math import isnan, nan

import numpy as np

from openbell.indicators.averages import ema
from openbell.indicators.exact_averages import ema as running_ema
from openbell.indicators.spec import Bar
from openbell.indicators.windows import RunningSum, window_sum
from openbell.market.bars import Bars, Values

UNIT = 0.015
SLOW = 3
"""WT2 is the simple average of this many values of WT1."""
ROUNDING = 1e-13
"""An average distance below this share of the price counts as 0: it is rounding."""


def wave_trend(bars: Bars, channel_length: int, average_length: int) -> tuple[Values, Values]:
    """WT1 and WT2; 0 while the price does not move."""
    price = (bars.high + bars.low + bars.close) / 3.0
    distance = price - ema(price, channel_length)
    usual = ema(np.abs(distance), channel_length)
    moving = ~(usual <= ROUNDING * price)
    index = np.divide(distance, UNIT * usual, out=np.zeros(len(price)), where=moving)
    fast = ema(index, average_length)
    return fast, window_sum(fast, SLOW) / SLOW


def wave_warmup(channel_length: int, average_length: int) -> int:
    """The number of bars up to the first WT2."""
    return 2 * (channel_length - 1) + (average_length - 1) + SLOW


class RunningWave:
    """`wave_trend`, one bar at a time."""

    __slots__ = ("_fast", "_middle", "_slow", "_usual")

    def __init__(self, channel_length: int, average_length: int) -> None:
        self._middle = running_ema(channel_length)
        self._usual = running_ema(channel_length)
        self._fast = running_ema(average_length)
        self._slow = RunningSum(SLOW)

    def update(self, bar: Bar) -> tuple[float, float]:
        """WT1 and WT2 after this bar."""
        price = (bar.high + bar.low + bar.close) / 3.0
        distance = price - self._middle.update(price)
        if isnan(distance):
            return nan, nan
        usual = self._usual.update(abs(distance))
        if isnan(usual):
            return nan, nan
        fast = self._fast.update(0.0 if usual <= ROUNDING * price else distance / (UNIT * usual))
        return fast, self._slow.update(fast) / SLOW
