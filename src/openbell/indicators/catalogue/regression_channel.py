"""Regression channel: the end of the least-squares line through the latest closes, and deviations around it.

The deviation is that of the closes from the line (population). `slope` is the rise of the line per bar in per cent of the
close.
"""

from __future__ import annotations

from openbell.indicators.channels import Channels, FilledBand, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import regression
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int, deviations: float) -> Channels:
    middle, deviation, rise = regression(bars.close, length)
    upper, lower = middle + deviations * deviation, middle - deviations * deviation
    lines = (
        Line("middle", middle),
        Line("upper", upper),
        Line("lower", lower),
        Line("slope", 100.0 * rise / bars.close),
    )
    return Channels(lines=lines, fills=(FilledBand(upper, lower),))


INDICATOR = Indicator(
    name="regression_channel",
    title="Regression",
    description="End of the least-squares line through the closes, deviations around it, and its slope in per cent",
    brief="Least-squares line with deviations around it",
    overlay=True,
    compute=_compute,
    warmup=lambda length, deviations: length,  # noqa: ARG005 - takes every parameter
    parameters=(Parameter("length", 50, 2, 500, tradingview=100), Parameter("deviations", 2.0, 0.1, 10.0)),
    aliases=("linreg_channel", "linear_regression_channel"),
    differs=(
        "Each bar has the end of the line through the bars up to it. TradingView draws one line, through the latest bars."
    ),
)
