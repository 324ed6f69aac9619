"""TRIX: the change of a triply smoothed logarithm of the price, times 10,000, as in TradingView.

Logarithms are taken relative to the first close: the differences stay the same and keep their digits, and a constant price
gives exactly 0.
"""

from __future__ import annotations

from math import log, nan

import numpy as np

from openbell.indicators.averages import ema
from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.exact_averages import ema as running_ema
from openbell.indicators.line_pairs import LinePair
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.ta_lib import talib
from openbell.market.bars import Bars, Values

SCALE = 10_000.0


def trix(close: Values, length: int, signal: int) -> tuple[Values, Values]:
    """The TRIX line and its signal line."""
    # TA-Lib's LN and `math.log` (in the stream) both call the platform's logarithm; numpy has its own.
    level = talib.LN(close / close[:1])
    for _ in range(3):
        level = ema(level, length)
    line = SCALE * np.diff(level, prepend=np.nan)
    return line, ema(line, signal)


def _compute(bars: Bars, length: int, signal: int) -> Channels:
    line, trigger = trix(bars.close, length, signal)
    return Channels(lines=(Line("TRIX", line), Line("Signal", trigger)), hlines=(ZERO,))


class _Stream:
    def __init__(self, length: int, signal: int) -> None:
        self._averages = [running_ema(length) for _ in range(3)]
        self._signal = running_ema(signal)
        self._first = 0.0
        self._level = nan

    def update(self, bar: Bar) -> tuple[float, ...]:
        self._first = self._first or bar.close
        level = log(bar.close / self._first)
        for average in self._averages:
            level = average.update(level)
        line, self._level = SCALE * (level - self._level), level
        return line, self._signal.update(line)


INDICATOR = Indicator(
    name="trix",
    title="TRIX",
    description="Change of the triple EMA of the close's logarithm, times 10,000, and its EMA as signal",
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length, signal: 3 * length + signal - 2,
    parameters=(Parameter("length", 18, 1, 300), Parameter("signal", 9, 1, 300)),
    crosses=(LinePair("TRIX", "Signal"),),
)
