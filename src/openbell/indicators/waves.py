"""WaveTrend: the distance of the typical price from its average, in units of its average distance, smoothed twice.

Prices are taken relative to the first one, so that small distances keep their digits.
"""

from __future__ import annotations

import numpy as np

from openbell.indicators.averages import ema
from openbell.indicators.float_ties import above
from openbell.indicators.windows import window_sum
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
