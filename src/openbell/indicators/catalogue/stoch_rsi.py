"""Stochastic RSI: the position of the RSI in its own range."""

from __future__ import annotations

from openbell.indicators.channels import Channels, Line, bounds
from openbell.indicators.oscillators import stochastic_rsi, stochastic_rsi_start
from openbell.indicators.spec import Indicator, LinePair, Parameter
from openbell.market.bars import Bars


def _compute(bars: Bars, rsi_length: int, stoch_length: int, k: int, d: int) -> Channels:
    fast, slow = stochastic_rsi(bars.close, rsi_length, stoch_length, k, d)
    return Channels(lines=(Line("K", fast), Line("D", slow)), hlines=bounds(20.0, 80.0), y_range=(0.0, 100.0))


INDICATOR = Indicator(
    name="stoch_rsi",
    title="StochRSI",
    description="Place of Wilder's RSI between its own lowest and highest, smoothed (K), and its average (D)",
    brief="Place of the RSI in its own range (K), its average (D)",
    overlay=False,
    compute=_compute,
    warmup=lambda rsi_length, stoch_length, k, d: stochastic_rsi_start(rsi_length, stoch_length) + k + d - 1,
    parameters=(
        Parameter("rsi_length", 14, 1, 500, aliases=("length_rsi",)),
        Parameter("stoch_length", 14, 1, 500, aliases=("length_stoch", "stochastic_length")),
        Parameter("k", 3, 1, 100, aliases=("k_smoothing",)),
        Parameter("d", 3, 1, 100, aliases=("d_smoothing",)),
    ),
    aliases=("stochastic_rsi",),
    differs="While the RSI does not move it is 50, where TradingView has no value.",
    crosses=(LinePair("K", "D"),),
)
