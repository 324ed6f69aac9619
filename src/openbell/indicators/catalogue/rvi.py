"""Ehlers' relative vigor index: the moves from open to close against the ranges. 0 while the bars have no range."""

from __future__ import annotations

from collections import deque
from math import isnan, nan

import numpy as np

from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.line_pairs import LinePair
from openbell.indicators.rules import Value
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.windows import RunningSum, window_sum
from openbell.market.bars import Bars, Values


def _weighed(first: Value, second: Value, third: Value, fourth: Value) -> Value:
    """Symmetric weights 1, 2, 2, 1 over 6."""
    return (first + 2.0 * second + 2.0 * third + fourth) / 6.0


def _smoothed(values: Values) -> Values:
    """The symmetrically weighted average of the latest four values."""
    out = np.full(len(values), np.nan)
    out[3:] = _weighed(values[:-3], values[1:-2], values[2:-1], values[3:])
    return out


class _Smoother:
    """`_smoothed`, one value at a time."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: deque[float] = deque([nan] * 4, maxlen=4)

    def update(self, value: float) -> float:
        self._values.append(value)
        return _weighed(*self._values)


def _compute(bars: Bars, length: int) -> Channels:
    moved = window_sum(_smoothed(bars.close - bars.open), length)
    height = window_sum(_smoothed(bars.high - bars.low), length)
    vigor = np.divide(moved, height, out=0.0 * height, where=~(height <= 0.0))
    return Channels(lines=(Line("RVI", vigor), Line("Signal", _smoothed(vigor))), hlines=(ZERO,))


class _Stream:
    def __init__(self, length: int) -> None:
        self._move, self._moves = _Smoother(), RunningSum(length)
        self._range, self._ranges = _Smoother(), RunningSum(length)
        self._signal = _Smoother()

    def update(self, bar: Bar) -> tuple[float, ...]:
        moved = self._moves.update(self._move.update(bar.close - bar.open))
        height = self._ranges.update(self._range.update(bar.high - bar.low))
        if isnan(height):
            return nan, nan
        vigor = moved / height if height > 0.0 else 0.0
        return vigor, self._signal.update(vigor)


INDICATOR = Indicator(
    name="rvi",
    title="RVI",
    description="Ehlers' relative vigor index: smoothed moves from open to close over smoothed ranges, and its signal",
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length: length + 6,
    parameters=(Parameter("length", 10, 1, 500),),
    aliases=("relative_vigor", "rvgi", "relative_vigor_index"),
    inputs=("open", "high", "low", "close"),
    differs=(
        "It is 0 while bars have no range, where TradingView has no value. "
        "TradingView's RVI is another indicator, the Relative Volatility Index; its name of this one is RVGI."
    ),
    settles=1,
    crosses=(LinePair("RVI", "Signal"),),
)
