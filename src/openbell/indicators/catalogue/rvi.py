"""Ehlers' relative vigor index: the moves from open to close against the ranges. 0 while the bars have no range."""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.spec import Indicator, LinePair, Parameter
from openbell.indicators.windows import window_sum
from openbell.market.bars import Bars, Values


def _weighed(first: Values, second: Values, third: Values, fourth: Values) -> Values:
    """Symmetric weights 1, 2, 2, 1 over 6."""
    return (first + 2.0 * second + 2.0 * third + fourth) / 6.0


def _smoothed(values: Values) -> Values:
    """The symmetrically weighted average of the latest four values."""
    out = np.full(len(values), np.nan)
    out[3:] = _weighed(values[:-3], values[1:-2], values[2:-1], values[3:])
    return out


def _compute(bars: Bars, length: int) -> Channels:
    moved = window_sum(_smoothed(bars.close - bars.open), length)
    height = window_sum(_smoothed(bars.high - bars.low), length)
    vigor = np.divide(moved, height, out=0.0 * height, where=~(height <= 0.0))
    return Channels(lines=(Line("RVI", vigor), Line("Signal", _smoothed(vigor))), hlines=(ZERO,))


INDICATOR = Indicator(
    name="rvi",
    title="RVI",
    description="Ehlers' relative vigor index: smoothed moves from open to close over smoothed ranges, and its signal",
    brief="Ehlers' relative vigor index, and its signal",
    overlay=False,
    compute=_compute,
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
