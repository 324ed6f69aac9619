"""Percentage price oscillator: MACD in per cent of its slow average.

Closes are taken relative to the first one, so that a constant price gives exactly 0.
"""

from __future__ import annotations

from openbell.indicators.averages import ema
from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.spec import Indicator, LinePair, Parameter
from openbell.market.bars import Bars, Values


def ppo(close: Values, fast: int, slow: int, signal: int) -> tuple[Values, Values, Values]:
    """The PPO line, its signal line and their difference."""
    first = close[:1]
    moved = close - first
    base = ema(moved, slow)
    line = 100.0 * ((ema(moved, fast) - base) / (first + base))
    trigger = ema(line, signal)
    return line, trigger, line - trigger


def _compute(bars: Bars, fast: int, slow: int, signal: int) -> Channels:
    line, trigger, histogram = ppo(bars.close, fast, slow, signal)
    return Channels(
        lines=(Line("PPO", line), Line("Signal", trigger)),
        histogram=(Line("Histogram", histogram),),
        hlines=(ZERO,),
    )


INDICATOR = Indicator(
    name="ppo",
    title="PPO",
    description="Difference of a fast and a slow EMA in per cent of the slow one, its EMA as signal, and the histogram",
    brief="Fast less slow EMA in per cent, its signal and histogram",
    overlay=False,
    compute=_compute,
    warmup=lambda fast, slow, signal: max(fast, slow) + signal - 1,
    parameters=(
        Parameter("fast", 12, 1, 500, aliases=("fast_length", "short_length"), tradingview=10),
        Parameter("slow", 26, 1, 500, aliases=("slow_length", "long_length"), tradingview=21),
        Parameter("signal", 9, 1, 500, aliases=("signal_length", "signal_smoothing")),
    ),
    aliases=("price_oscillator", "percentage_price_oscillator"),
    crosses=(LinePair("PPO", "Signal"),),
)
