"""Wilder's parabolic stop and reverse.

As in TradingView, the second close decides the first side; TA-Lib takes it from the directional movement.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from math import nan

import numpy as np

from openbell.indicators.channels import BarSignal, Channels, Line
from openbell.indicators.flips import SIGNALS, flip_rules, flips
from openbell.indicators.rules import RunningRules
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.ties import TOLERANCE
from openbell.market.bars import Bars, Values


class _Parabola:
    """The stop, the extreme price of its trend, and the rate at which the stop moves towards the extreme."""

    __slots__ = ("_extreme", "_increment", "_maximum", "_pace", "_rising", "_start", "_stop")

    def __init__(self, start: float, increment: float, maximum: float) -> None:
        self._start, self._increment, self._maximum = start, increment, maximum
        self._rising, self._stop, self._extreme, self._pace = False, nan, nan, start

    def begin(self, first: tuple[float, float, float], second: tuple[float, float, float]) -> None:
        """Choose the first side from high, low and close of the first two bars. Pass the second bar to `follow` next."""
        (high, low, close), (top, bottom, now) = first, second
        self._rising = now > close
        self._stop, self._extreme = (low, top) if self._rising else (high, bottom)

    def follow(self, rows: Iterable[tuple[float, float, float, float]]) -> tuple[list[float], list[bool]]:
        """The stop after each bar, and True where it is below the price.

        A row is a bar's high and low, then the higher high and the lower low of the two bars before it, which limit the
        stop. Uses comparisons instead of min and max, which take twice the time.
        """
        found, below = [], []
        rising, stop, extreme, pace = self._rising, self._stop, self._extreme, self._pace
        for high, low, ceiling, floor in rows:
            stop += pace * (extreme - stop)
            # Stops are compared with prices as `ties` does, written out: a call takes as long as the step.
            room = TOLERANCE * high
            if rising and stop - low > room:
                rising, stop, extreme, pace = False, max(high, extreme, ceiling), low, self._start
            elif rising:
                if high > extreme:
                    extreme, pace = high, min(pace + self._increment, self._maximum)
                if stop > floor:  # noqa: PLR1730
                    stop = floor
            elif high - stop > room:
                rising, stop, extreme, pace = True, min(low, extreme, floor), high, self._start
            else:
                if low < extreme:
                    extreme, pace = low, min(pace + self._increment, self._maximum)
                if stop < ceiling:  # noqa: PLR1730
                    stop = ceiling
            found.append(stop)
            below.append(rising)
        self._rising, self._stop, self._extreme, self._pace = rising, stop, extreme, pace
        return found, below


def sar(bars: Bars, start: float, increment: float, maximum: float) -> tuple[Values, Values]:
    """The stop, and its side: 1 below the price, −1 above it, 0 before warm-up."""
    stop, side = np.full(len(bars), np.nan), np.zeros(len(bars))
    if len(bars) > 1:
        parabola = _Parabola(start, increment, maximum)
        first, second = ((float(bars.high[at]), float(bars.low[at]), float(bars.close[at])) for at in (0, 1))
        parabola.begin(first, second)
        ceiling = np.maximum(bars.high[:-1], np.concatenate((bars.high[:1], bars.high[:-2])))
        floor = np.minimum(bars.low[:-1], np.concatenate((bars.low[:1], bars.low[:-2])))
        columns = (column.tolist() for column in (bars.high[1:], bars.low[1:], ceiling, floor))
        stops, below = parabola.follow(zip(*columns, strict=True))
        stop[1:] = np.fromiter(stops, np.float64)
        side[1:] = 2.0 * np.fromiter(below, np.float64) - 1.0
    return stop, side


def _compute(bars: Bars, start: float, increment: float, maximum: float) -> Channels:
    stop, side = sar(bars, start, increment, maximum)
    return Channels(lines=(Line("SAR", stop),), signals=flips(side, stop))


class _Stream:
    def __init__(self, start: float, increment: float, maximum: float) -> None:
        self._parabola = _Parabola(start, increment, maximum)
        self._before: deque[Bar] = deque(maxlen=2)
        self._rules = RunningRules(flip_rules, 2)

    def update(self, bar: Bar) -> tuple[float, ...]:
        if not self._before:
            self._before.append(bar)
            return (nan,)
        older, newer = self._before[0], self._before[-1]
        if len(self._before) == 1:
            self._parabola.begin(newer[2:5], bar[2:5])
        self._before.append(bar)
        row = (bar.high, bar.low, max(newer.high, older.high), min(newer.low, older.low))
        (stop,), (below,) = self._parabola.follow((row,))
        self._rules.update(1.0 if below else -1.0, stop)
        return (stop,)

    def signals(self) -> tuple[BarSignal, ...]:
        return self._rules.signals()


INDICATOR = Indicator(
    name="sar",
    title="SAR",
    description="Wilder's parabolic stop and reverse: nears the price ever faster and changes sides when passed",
    overlay=True,
    compute=_compute,
    stream=_Stream,
    warmup=lambda start, increment, maximum: 2,  # noqa: ARG005 - takes every parameter
    parameters=(
        Parameter("start", 0.02, 0.001, 1.0, aliases=("af_start",)),
        Parameter("increment", 0.02, 0.0, 1.0, aliases=("af_step",)),
        Parameter("maximum", 0.2, 0.001, 1.0, aliases=("af_max", "max_value", "max")),
    ),
    aliases=("parabolic_sar", "psar", "parabolic", "parabolic_stop_and_reverse"),
    inputs=("high", "low", "close"),
    signals=SIGNALS,
)
