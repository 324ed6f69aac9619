"""Stochastic oscillator: the position of the close in the range of the latest bars."""

from __future__ import annotations

from openbell.indicators.channels import Channels, Line, bounds
from openbell.indicators.oscillators import stochastic
from openbell.indicators.spec import Indicator, LinePair, Parameter
from openbell.market.bars import Bars


def _compute(bars: Bars, k: int, smooth: int, d: int) -> Channels:
    fast, slow = stochastic(bars, k, smooth, d)
    return Channels(lines=(Line("K", fast), Line("D", slow)), hlines=bounds(20.0, 80.0), y_range=(0.0, 100.0))


INDICATOR = Indicator(
    name="stoch",
    title="Stoch",
    description="Place of the close between the lowest low and the highest high, smoothed (K), and its average (D)",
    brief="Place of the close in the range (K), and its average (D)",
    overlay=False,
    compute=_compute,
    warmup=lambda k, smooth, d: k + smooth + d - 2,
    parameters=(
        Parameter("k", 14, 1, 500, aliases=("period", "length", "k_length")),
        Parameter("smooth", 3, 1, 100, aliases=("k_smooth", "k_smoothing"), tradingview=1),
        Parameter("d", 3, 1, 100, aliases=("d_smooth", "d_smoothing")),
    ),
    aliases=("stochastic", "stochastic_oscillator"),
    inputs=("high", "low", "close"),
    differs="While the price does not move it is 50, where TradingView has no value.",
    settles=1,
    crosses=(LinePair("K", "D"),),
)
