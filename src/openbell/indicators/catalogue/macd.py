"""Moving average convergence divergence, from exponential averages seeded with the simple average."""

from __future__ import annotations

from openbell.indicators.averages import ema
from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.spec import Indicator, LinePair, Parameter, Unit
from openbell.market.bars import Bars, Values

PARAMETERS = (
    Parameter("fast", 12, 1, 500, aliases=("fast_length",)),
    Parameter("slow", 26, 1, 500, aliases=("slow_length",)),
    Parameter("signal", 9, 1, 500, aliases=("signal_length", "signal_smoothing")),
)


def macd(close: Values, fast: int, slow: int, signal: int) -> tuple[Values, Values, Values]:
    """The MACD line, its signal line and their difference."""
    line = ema(close, fast) - ema(close, slow)
    trigger = ema(line, signal)
    return line, trigger, line - trigger


def _compute(bars: Bars, fast: int, slow: int, signal: int) -> Channels:
    line, trigger, histogram = macd(bars.close, fast, slow, signal)
    return Channels(
        lines=(Line("MACD", line), Line("Signal", trigger)),
        histogram=(Line("Histogram", histogram),),
        hlines=(ZERO,),
    )


INDICATOR = Indicator(
    name="macd",
    title="MACD",
    description="Difference of a fast and a slow EMA, its EMA as signal, and their difference as histogram",
    brief="Fast less slow EMA of the close, its signal and histogram",
    overlay=False,
    compute=_compute,
    warmup=lambda fast, slow, signal: max(fast, slow) + signal - 1,
    parameters=PARAMETERS,
    aliases=("moving_average_convergence_divergence",),
    crosses=(LinePair("MACD", "Signal", Unit.PRICE),),
)
