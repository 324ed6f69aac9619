"""Williams' fractals: a high above those of the bars around it (up), and a low below those of the bars around it (down).

As in TradingView: `length` bars after the extreme and `length` bars before it are lower. Before it there may be up to four
bars more that are not higher, so the last one of equal highs counts. A fractal is confirmed `length` bars after its extreme;
from that bar on its line has the price of the extreme, until the next fractal.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from math import inf, isnan, nan

import numpy as np

from openbell.indicators.channels import BarSignal, Channels, Direction, Line
from openbell.indicators.displacement import shifted_later
from openbell.indicators.highs_and_lows import highest
from openbell.indicators.rules import LazySignals, Rule, RunningRules, Value, array_signals
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.market.bars import Bars, Values

PLATEAU = 4
SIGNALS = {"fractal_up": Direction.DOWN, "fractal_down": Direction.UP}


def _tops(values: Values, length: int) -> Values:
    """The top that each bar confirms; NaN for other bars."""
    reach = highest(values, length)
    centre = shifted_later(values, length)
    level = np.ones(len(values), dtype=bool)
    rises = np.zeros(len(values), dtype=bool)
    for equal in range(PLATEAU + 1):
        if equal:
            level &= shifted_later(values, length + equal) <= centre
        rises |= level & (shifted_later(reach, length + equal + 1) < centre)
    return np.where(rises & (reach < centre), centre, np.nan)


class _RunningTops:
    """`_tops`, one value at a time."""

    __slots__ = ("_length", "_values")

    def __init__(self, length: int) -> None:
        self._length = length
        self._values: deque[float] = deque(maxlen=2 * length + 1 + PLATEAU)

    def update(self, value: float) -> float:
        """The top that this value confirms; NaN if none."""
        self._values.append(value)
        values, length = list(self._values), self._length
        first = len(values) - 1 - length
        if first < length or max(values[first + 1 :]) >= values[first]:
            return nan
        centre = values[first]
        for end in range(first, max(length, first - PLATEAU) - 1, -1):
            if max(values[end - length : end]) < centre:
                return centre
            if values[end - 1] > centre:
                break
        return nan


def _rules(_: Sequence[Value], now: Sequence[Value]) -> Sequence[Rule]:
    """A signal at the bar that confirms a fractal, with the price of its extreme."""
    up, down = now
    return ("fractal_up", up > -inf, up), ("fractal_down", down > -inf, down)


def _held(values: Values) -> Values:
    """The latest value that is not NaN."""
    known = np.maximum.accumulate(np.where(np.isnan(values), 0, np.arange(len(values))))
    return values[known]


def _compute(bars: Bars, length: int) -> Channels:
    found = (_tops(bars.high, length), -_tops(-bars.low, length))
    lines = tuple(map(Line, ("up", "down"), map(_held, found)))
    signals = array_signals(_rules, found)
    dated = LazySignals(lambda: tuple(replace(each, extreme=each.index - length) for each in signals))
    return Channels(lines=lines, signals=dated)


class _Stream:
    def __init__(self, length: int) -> None:
        self._highs, self._lows = _RunningTops(length), _RunningTops(length)
        self._rules = RunningRules(_rules, 2)
        self._up = self._down = nan

    def update(self, bar: Bar) -> tuple[float, ...]:
        up, down = self._rules.update(self._highs.update(bar.high), -self._lows.update(-bar.low))
        self._up = self._up if isnan(up) else up
        self._down = self._down if isnan(down) else down
        return self._up, self._down

    def signals(self) -> tuple[BarSignal, ...]:
        return self._rules.signals()


INDICATOR = Indicator(
    name="fractals",
    title="Fractals",
    description="Williams' fractals: the latest high above the bars around it, and the latest low below them",
    overlay=True,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length: 2 * length + 1,
    parameters=(Parameter("length", 2, 2, 100, aliases=("periods",)),),
    aliases=("williams_fractals", "williams_fractal"),
    inputs=("high", "low"),
    signals=SIGNALS,
    sparse=("up", "down"),
)
