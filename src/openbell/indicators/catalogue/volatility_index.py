"""Wilder's volatility system: a stop-and-reverse level at a multiple of the average true range from the extreme close.

The level of a long position lies below the highest close since it began, that of a short position above the lowest one. A
close beyond the level of the bar before reverses the position, and the extreme starts again at that close. It starts long.
"""

from __future__ import annotations

from math import isnan, nan

from openbell.indicators.average_range import RunningAtr
from openbell.indicators.catalogue.atr import atr
from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.stepwise import stepwise
from openbell.market.bars import Bars


class _System:
    __slots__ = ("_extreme", "_level", "_side")

    def __init__(self) -> None:
        self._extreme = self._level = nan
        self._side = 1.0

    def update(self, close: float, room: float) -> tuple[float, ...]:
        """The level after this close; NaN while `room`, its distance from the extreme, is NaN."""
        if isnan(room):
            return (nan,)
        beyond = close < self._level if self._side > 0.0 else close > self._level
        if beyond:
            self._side = -self._side
        further = close > self._extreme if self._side > 0.0 else close < self._extreme
        if beyond or further or isnan(self._extreme):
            self._extreme = close
        self._level = self._extreme - self._side * room
        return (self._level,)


def _compute(bars: Bars, length: int, multiplier: float) -> Channels:
    (level,) = stepwise(_System().update, 1, bars.close, multiplier * atr(bars, length))
    return Channels(lines=(Line("Level", level),))


class _Stream:
    def __init__(self, length: int, multiplier: float) -> None:
        self._system, self._range = _System(), RunningAtr(length)
        self._multiplier = multiplier

    def update(self, bar: Bar) -> tuple[float, ...]:
        return self._system.update(bar.close, self._multiplier * self._range.update(bar))


INDICATOR = Indicator(
    name="volatility_index",
    title="Volatility Index",
    description="Wilder's stop-and-reverse level: average true ranges from the extreme close of the position",
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length, multiplier: length,  # noqa: ARG005 - takes every parameter
    parameters=(Parameter("length", 10, 1, 500), Parameter("multiplier", 3.0, 0.1, 20.0)),
    inputs=("high", "low", "close"),
)
