"""Renko: bricks of equal height, built from closes. The height is a multiple of the average true range when a brick begins.

The first brick begins at the close of the first bar with an average true range. A brick in the same direction is complete
when the close is one height beyond the last brick, the first one of a reversal when it is two heights back. Direction and
number of bricks are 0 until the first brick is complete. While the price does not move there is no height, and no brick
begins.
"""

from __future__ import annotations

from math import isnan, nan

from openbell.indicators.average_range import RunningAtr
from openbell.indicators.catalogue.atr import atr
from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.stepwise import stepwise
from openbell.market.bars import Bars

ROUNDING = 1e-12
"""A height below this share of the price counts as 0: it is rounding."""


class _Bricks:
    __slots__ = ("_bricks", "_height", "_level", "_way")

    def __init__(self) -> None:
        self._level = nan
        self._height = self._way = self._bricks = 0.0

    def update(self, close: float, height: float) -> tuple[float, ...]:
        """Level, direction and number of bricks after this close; `height` is that of a brick that begins here."""
        if isnan(height):
            return nan, nan, nan
        if height < ROUNDING * close:
            height = 0.0
        if isnan(self._level):
            self._level = close
        self._height = self._height or height
        away = close - self._level
        way = 1.0 if away > 0.0 else -1.0
        needed = 2.0 * self._height if way == -self._way else self._height
        if 0.0 < needed <= abs(away):
            self._complete(way, needed, 1.0)
            self._height = height
            if height:
                self._complete(way, height, max(0.0, (close - self._level) * way // height))
        return self._level, self._way, self._bricks

    def _complete(self, way: float, height: float, count: float) -> None:
        self._level += way * count * height
        self._bricks = self._bricks + count if way == self._way else count
        self._way = way


def _compute(bars: Bars, length: int, multiplier: float) -> Channels:
    level, way, bricks = stepwise(_Bricks().update, 3, bars.close, multiplier * atr(bars, length))
    return Channels(lines=(Line("level", level), Line("direction", way), Line("bricks", bricks)))


class _Stream:
    def __init__(self, length: int, multiplier: float) -> None:
        self._range = RunningAtr(length)
        self._multiplier = multiplier
        self._bricks = _Bricks()

    def update(self, bar: Bar) -> tuple[float, ...]:
        return self._bricks.update(bar.close, self._multiplier * self._range.update(bar))


INDICATOR = Indicator(
    name="renko",
    title="Renko",
    description="Bricks as high as average true ranges: the last complete one's close, direction and number in a row",
    overlay=True,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length, multiplier: length,  # noqa: ARG005 - takes every parameter
    parameters=(Parameter("length", 14, 1, 500), Parameter("multiplier", 1.0, 0.1, 20.0)),
    inputs=("high", "low", "close"),
    cumulative=True,
)
