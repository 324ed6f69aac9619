"""McGinley dynamic: an average that follows falling prices faster than rising ones.

The step towards the close is divided by the length times the fourth power of close / average. The divisor is at least 1:
after a crash the average reaches the close and does not pass it. It starts with the simple average.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import nan

import numpy as np

from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.windows import RunningMean, window_mean
from openbell.market.bars import Bars


class _Average:
    __slots__ = ("_length", "_value")

    def __init__(self, length: int) -> None:
        self._length = length
        self._value = nan

    def follow(self, rows: Iterable[tuple[float, float]]) -> list[float]:
        """The average after each close; a row is a close and the seed, which may be NaN once the average has begun."""
        found, value, length = [], self._value, self._length
        for close, seed in rows:
            if value > 0.0 or value < 0.0:
                ratio = close / value
                square = ratio * ratio
                divisor = length * square * square
                value += (close - value) / divisor if divisor > 1.0 else close - value
            else:
                value = seed
            found.append(value)
        self._value = value
        return found


def _compute(bars: Bars, length: int) -> Channels:
    seeds = window_mean(bars.close, length)
    values = _Average(length).follow(zip(bars.close.tolist(), seeds.tolist(), strict=True))
    return Channels(lines=(Line("McGinley", np.array(values)),))


class _Stream:
    def __init__(self, length: int) -> None:
        self._average = _Average(length)
        self._seed = RunningMean(length)

    def update(self, bar: Bar) -> tuple[float, ...]:
        return tuple(self._average.follow(((bar.close, self._seed.update(bar.close)),)))


INDICATOR = Indicator(
    name="mcginley",
    title="McGinley",
    description="McGinley dynamic: an average of the close that adjusts its speed to the market",
    overlay=True,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length: length,
    parameters=(Parameter("length", 10, 1, 500, tradingview=14),),
    aliases=("mcginley_dynamic",),
    differs="The divisor is at least 1, so that the line does not pass the price after a crash.",
)
