"""Ehlers' Fisher transform of the place of each bar's middle in its range, and the same line one bar later as trigger.

As in TradingView: the place is smoothed and limited to ±0.999. It counts as half way while nothing moves.
"""

from __future__ import annotations

from math import isnan, log, nan

import numpy as np

from openbell.indicators.channels import Channels, Line
from openbell.indicators.highs_and_lows import RunningExtremes, highest, lowest
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.stepwise import stepwise
from openbell.market.bars import Bars

LIMIT, LIMITED = 0.99, 0.999


class _Transform:
    __slots__ = ("_fisher", "_trigger", "_value")

    def __init__(self) -> None:
        self._value, self._fisher, self._trigger = 0.0, 0.0, nan

    def update(self, place: float) -> tuple[float, ...]:
        """The transform and its trigger after this place, from 0 to 1; NaN while it is NaN."""
        if isnan(place):
            return nan, nan
        value = 0.66 * (place - 0.5) + 0.67 * self._value
        self._value = LIMITED if value > LIMIT else -LIMITED if value < -LIMIT else value
        trigger = self._trigger
        self._fisher = 0.5 * log((1.0 + self._value) / (1.0 - self._value)) + 0.5 * self._fisher
        self._trigger = self._fisher
        return self._fisher, trigger


def _compute(bars: Bars, length: int) -> Channels:
    middle = (bars.high + bars.low) / 2.0
    bottom = lowest(middle, length)
    height = highest(middle, length) - bottom
    flat = 0.5 + 0.0 * height
    place = np.divide(middle - bottom, height, out=flat, where=~(height <= 0.0))
    lines = stepwise(_Transform().update, 2, place)
    return Channels(lines=tuple(map(Line, ("Fisher", "Trigger"), lines)), hlines=(-1.5, 0.0, 1.5))


class _Stream:
    def __init__(self, length: int) -> None:
        self._extremes, self._transform = RunningExtremes(length), _Transform()

    def update(self, bar: Bar) -> tuple[float, ...]:
        middle = (bar.high + bar.low) / 2.0
        top, bottom = self._extremes.update(middle, middle)
        height = top - bottom
        return self._transform.update(0.5 if height <= 0.0 else (middle - bottom) / height)


INDICATOR = Indicator(
    name="fisher",
    title="Fisher",
    description="Ehlers' Fisher transform of the middle of each bar in its range, and the line of the bar before",
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length: length + 1,
    parameters=(Parameter("length", 9, 1, 500),),
    inputs=("high", "low"),
)
