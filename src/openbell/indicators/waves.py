"""WaveTrend: the distance of the typical price from its average, in units of its average distance, smoothed twice.

Prices are taken relative to the first one, so that small distances keep their digits.
"""

from __future__ import annotations

from math import isnan, nan

import numpy as np

from openbell.indicators.averages import ema
from openbell.indicators.exact_averages import ema as running_ema
from openbell.indicators.spec import Bar
from openbell.indicators.ties import above
from openbell.indicators.windows import RunningSum, window_sum
from openbell.market.bars import Bars, Values

UNIT = 0.015
SLOW = 3
"""WT2 is the simple average of this many values of WT1."""


def wave_trend(bars: Bars, channel_length: int, average_length: int) -> tuple[Values, Values]:
    """WT1 and WT2; 0 while the price does not move."""
    price = (bars.high + bars.low + bars.close) / 3.0
    moved = price - price[:1]
    distance = moved - ema(moved, channel_length)
    usual = ema(np.abs(distance), channel_length)
    index = np.divide(distance, UNIT * usual, out=0.0 * usual, where=above(usual, 0.0, price))
    fast = ema(index, average_length)
    return fast, window_sum(fast, SLOW) / SLOW


def wave_warmup(channel_length: int, average_length: int) -> int:
    """The number of bars up to the first WT2."""
    return 2 * (channel_length - 1) + (average_length - 1) + SLOW


class RunningWave:
    """`wave_trend`, one bar at a time."""

    __slots__ = ("_fast", "_first", "_middle", "_slow", "_usual")

    def __init__(self, channel_length: int, average_length: int) -> None:
        self._middle = running_ema(channel_length)
        self._usual = running_ema(channel_length)
        self._fast = running_ema(average_length)
        self._slow = RunningSum(SLOW)
        self._first = 0.0

    def update(self, bar: Bar) -> tuple[float, float]:
        """WT1 and WT2 after this bar."""
        price = (bar.high + bar.low + bar.close) / 3.0
        first = self._first = self._first or price
        moved = price - first
        distance = moved - self._middle.update(moved)
        if isnan(distance):
            return nan, nan
        usual = self._usual.update(abs(distance))
        if isnan(usual):
            return nan, nan
        fast = self._fast.update(distance / (UNIT * usual) if above(usual, 0.0, price) else 0.0)
        return fast, self._slow.update(fast) / SLOW
