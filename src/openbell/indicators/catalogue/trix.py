"""TRIX: the change of a triply smoothed logarithm of the price, times 10,000, as in TradingView.

Logarithms are taken relative to the first close: the differences stay the same and keep their digits, and a constant price
gives exactly 0.
"""

from __future__ import annotations

import numpy as np

from openbell.indicators.averages import ema
from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.spec import Indicator, LinePair, Parameter
from openbell.indicators.ta_lib import talib
from openbell.market.bars import Bars, Values

SCALE = 10_000.0


def trix(close: Values, length: int, signal: int) -> tuple[Values, Values]:
    """The TRIX line and its signal line."""
    # TA-Lib's LN calls the platform's logarithm; that of numpy depends on the processor.
    level = talib.LN(close / close[:1])
    for _ in range(3):
        level = ema(level, length)
    line = SCALE * np.diff(level, prepend=np.nan)
    return line, ema(line, signal)


def _compute(bars: Bars, length: int, signal: int) -> Channels:
    line, trigger = trix(bars.close, length, signal)
    return Channels(lines=(Line("TRIX", line), Line("Signal", trigger)), hlines=(ZERO,))


INDICATOR = Indicator(
    name="trix",
    title="TRIX",
    description="Change of the triple EMA of the close's logarithm, times 10,000, and its EMA as signal",
    brief="Change of the triple EMA of the log close, and its signal",
    overlay=False,
    compute=_compute,
    warmup=lambda length, signal: 3 * length + signal - 2,
    parameters=(Parameter("length", 18, 1, 300), Parameter("signal", 9, 1, 300)),
    crosses=(LinePair("TRIX", "Signal"),),
)
