"""True strength index: the doubly smoothed change of the close over its doubly smoothed size. 0 while nothing moves."""

from __future__ import annotations

import numpy as np

from openbell.indicators.averages import ema
from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.spec import Indicator, LinePair, Parameter
from openbell.market.bars import Bars, Values


def true_strength(close: Values, long: int, short: int) -> Values:
    """−1 to 1, from EMAs over `short` of EMAs over `long`."""
    change = np.diff(close, prepend=np.nan)
    net, size = (ema(ema(values, long), short) for values in (change, np.abs(change)))
    return np.divide(net, size, out=0.0 * size, where=~(size <= 0.0))


def _compute(bars: Bars, long: int, short: int, signal: int) -> Channels:
    line = 100.0 * true_strength(bars.close, long, short)
    return Channels(lines=(Line("TSI", line), Line("Signal", ema(line, signal))), hlines=(ZERO,))


INDICATOR = Indicator(
    name="tsi",
    title="TSI",
    description="True strength index: doubly smoothed change of the close in per cent of its size, and its signal",
    brief="True strength index: doubly smoothed change, its signal",
    overlay=False,
    compute=_compute,
    warmup=lambda long, short, signal: long + short + signal - 1,
    parameters=(
        Parameter("long", 25, 1, 500, aliases=("long_length",)),
        Parameter("short", 13, 1, 500, aliases=("short_length",)),
        Parameter("signal", 13, 1, 500, aliases=("signal_length",)),
    ),
    aliases=("true_strength", "true_strength_index"),
    differs="While the price does not move it is 0, where TradingView has no value.",
    crosses=(LinePair("TSI", "Signal"),),
)
