"""Wilder's volatility stop: average true ranges from the extreme close since the last flip, as in TradingView.

The stop only moves towards the price. A close beyond it flips the direction, and the extreme starts again at that close. It
starts long, below the close of the first bar with an average true range.
"""

from __future__ import annotations

from math import inf, isnan, nan

import numpy as np

from openbell.indicators.average_range import RunningAtr
from openbell.indicators.catalogue.atr import atr
from openbell.indicators.channels import BarSignal, Channels, Line
from openbell.indicators.flips import SIGNALS, flip_rules, flips
from openbell.indicators.rules import RunningRules
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.stepwise import stepwise
from openbell.market.bars import Bars


class _Trail:
    __slots__ = ("_extreme", "_side", "_stop")

    def __init__(self) -> None:
        self._extreme, self._stop, self._side = -inf, -inf, 1.0

    def update(self, close: float, room: float) -> tuple[float, float]:
        """The stop and its direction after this close; NaN while `room`, the distance of the stop, is NaN."""
        if isnan(room):
            return nan, nan
        if self._side > 0.0:
            self._extreme = max(self._extreme, close)
            self._stop = max(self._stop, self._extreme - room)
        else:
            self._extreme = min(self._extreme, close)
            self._stop = min(self._stop, self._extreme + room)
        side = 1.0 if close >= self._stop else -1.0
        if side != self._side:
            self._side, self._extreme, self._stop = side, close, close - side * room
        return self._stop, side


def _compute(bars: Bars, length: int, multiplier: float) -> Channels:
    stop, side = stepwise(_Trail().update, 2, bars.close, multiplier * atr(bars, length))
    return Channels(lines=(Line("stop", stop), Line("direction", side)), signals=flips(np.nan_to_num(side), stop))


class _Stream:
    def __init__(self, length: int, multiplier: float) -> None:
        self._trail, self._flips = _Trail(), RunningRules(flip_rules, 2)
        self._range, self._multiplier = RunningAtr(length), multiplier

    def update(self, bar: Bar) -> tuple[float, ...]:
        stop, side = self._trail.update(bar.close, self._multiplier * self._range.update(bar))
        self._flips.update(side, stop)
        return stop, side

    def signals(self) -> tuple[BarSignal, ...]:
        return self._flips.signals()


INDICATOR = Indicator(
    name="volatility_stop",
    title="Volatility Stop",
    description="A stop at average true ranges from the extreme close since it last changed sides, and its direction",
    overlay=True,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length, multiplier: length,  # noqa: ARG005 - takes every parameter
    parameters=(Parameter("length", 20, 1, 500), Parameter("multiplier", 2.0, 0.1, 20.0)),
    aliases=("vstop",),
    inputs=("high", "low", "close"),
    signals=SIGNALS,
)
