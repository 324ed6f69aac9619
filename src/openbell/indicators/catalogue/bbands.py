"""Bollinger bands: the simple average, plus and minus a multiple of the population deviation."""

from __future__ import annotations

from openbell.indicators.averages import sma_and_deviation
from openbell.indicators.channels import Channels, FilledBand, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars, Values


def bbands(close: Values, period: int, std_dev: float) -> tuple[Values, Values, Values]:
    """Upper, middle and lower band."""
    middle, deviation = sma_and_deviation(close, period)
    return middle + std_dev * deviation, middle, middle - std_dev * deviation


def _compute(bars: Bars, period: int, std_dev: float) -> Channels:
    upper, middle, lower = bbands(bars.close, period, std_dev)
    return Channels(
        lines=(Line("upper", upper), Line("middle", middle), Line("lower", lower)), fills=(FilledBand(upper, lower),)
    )


INDICATOR = Indicator(
    name="bbands",
    title="BB",
    description="Bollinger bands: simple average of the close and population deviations around it",
    brief="Bollinger bands: average of the close, deviations around it",
    overlay=True,
    compute=_compute,
    warmup=lambda period, std_dev: period,  # noqa: ARG005 - takes every parameter
    parameters=(
        Parameter("period", 20, 1, 1000, aliases=("length",)),
        Parameter("std_dev", 2.0, 0.1, 10.0, aliases=("mult", "multiplier")),
    ),
    aliases=("bollinger", "bb", "bollinger_bands"),
)
