"""Gann's swing chart: it turns up after a number of higher highs in a row, down after as many lower lows.

A bar within the range of the one before is skipped: the next bar is compared with the last one that counted. A completed
swing is the extreme from the bar of one turn to the bar of the next. The direction is 0 until the first turn, which is no
signal: it depends on the first bar.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

from openbell.indicators.channels import BarSignal, Channels, Direction, Line
from openbell.indicators.rules import Rule, RunningRules, Value, array_signals
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.stepwise import stepwise
from openbell.market.bars import Bars

SIGNALS = {"turn_up": Direction.UP, "turn_down": Direction.DOWN}


class _Swing:
    __slots__ = ("_bars", "_falls", "_high", "_left", "_low", "_peak", "_rises", "_swings", "_trough", "_way")

    def __init__(self, bars: int) -> None:
        self._bars = self._left = bars
        self._high = self._low = nan
        self._rises = self._falls = 0
        self._peak = self._trough = nan
        self._way = 0.0
        self._swings = (nan, nan)

    def update(self, high: float, low: float) -> tuple[float, ...]:
        """Direction, and the last completed swing high and swing low, after this bar."""
        self._peak, self._trough = max(self._peak, high), min(self._trough, low)
        rises, falls = high > self._high, low < self._low
        if rises or falls or self._high != self._high:  # NaN before the first bar
            self._rises = self._rises + 1 if rises else 0
            self._falls = self._falls + 1 if falls else 0
            self._high, self._low = high, low
            if self._way <= 0.0 and self._rises >= self._bars:
                self._turn(1.0, high, low)
            elif self._way >= 0.0 and self._falls >= self._bars:
                self._turn(-1.0, high, low)
        if self._left:
            self._left -= 1
            return nan, nan, nan
        return self._way, *self._swings

    def _turn(self, way: float, high: float, low: float) -> None:
        if self._way > 0.0:
            self._swings = (self._peak, self._swings[1])
        elif self._way < 0.0:
            self._swings = (self._swings[0], self._trough)
        self._way, self._peak, self._trough = way, high, low


def _rules(before: Sequence[Value], now: Sequence[Value]) -> Sequence[Rule]:
    """A signal at each turn but the first, with the price of the swing that it completes."""
    way_before, (way, high, low) = before[0], now
    return (
        ("turn_up", (way_before < 0.0) & (way > 0.0), low),
        ("turn_down", (way_before > 0.0) & (way < 0.0), high),
    )


def _compute(series: Bars, /, bars: int) -> Channels:
    lines = stepwise(_Swing(bars).update, 3, series.high, series.low)
    labels = ("direction", "swing_high", "swing_low")
    return Channels(lines=tuple(map(Line, labels, lines)), signals=array_signals(_rules, lines))


class _Stream:
    def __init__(self, bars: int) -> None:
        self._swing = _Swing(bars)
        self._rules = RunningRules(_rules, 3)

    def update(self, bar: Bar) -> tuple[float, ...]:
        return self._rules.update(*self._swing.update(bar.high, bar.low))

    def signals(self) -> tuple[BarSignal, ...]:
        return self._rules.signals()


INDICATOR = Indicator(
    name="gann_swing",
    title="Gann Swing",
    description="Gann's swing chart: its direction and the last completed swing high and swing low",
    overlay=True,
    compute=_compute,
    stream=_Stream,
    warmup=lambda bars: bars + 1,
    parameters=(Parameter("bars", 2, 1, 20),),
    inputs=("high", "low"),
    signals=SIGNALS,
    sparse=("swing_high", "swing_low"),
)
