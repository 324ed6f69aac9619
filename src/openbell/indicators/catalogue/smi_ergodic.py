"""SMI ergodic indicator: Blau's true strength index from −1 to 1, and its exponential average as signal."""

from __future__ import annotations

from openbell.indicators.averages import ema
from openbell.indicators.catalogue.tsi import true_strength
from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.spec import Indicator, LinePair, Parameter
from openbell.market.bars import Bars, Values

PARAMETERS = (
    Parameter("short", 5, 1, 500, aliases=("short_length",)),
    Parameter("long", 20, 1, 500, aliases=("long_length",)),
    Parameter("signal", 5, 1, 500, aliases=("signal_length", "signal_line_length")),
)


def ergodic(close: Values, short: int, long: int, signal: int) -> tuple[Values, Values]:
    """The indicator and its signal."""
    line = true_strength(close, long, short)
    return line, ema(line, signal)


def warmup(short: int, long: int, signal: int) -> int:
    """The number of bars up to the first signal."""
    return short + long + signal - 1


def _compute(bars: Bars, short: int, long: int, signal: int) -> Channels:
    lines = map(Line, ("SMI", "Signal"), ergodic(bars.close, short, long, signal))
    return Channels(lines=tuple(lines), hlines=(ZERO,))


INDICATOR = Indicator(
    name="smi_ergodic",
    title="SMI Ergodic",
    description="True strength index of the close from -1 to 1, and its EMA as signal",
    brief="True strength index from -1 to 1, and its signal",
    overlay=False,
    compute=_compute,
    warmup=warmup,
    parameters=PARAMETERS,
    aliases=("smii", "smi_ergodic_indicator"),
    differs="While the price does not move it is 0, where TradingView has no value.",
    crosses=(LinePair("SMI", "Signal"),),
)
