"""Close-to-close volatility: the sample deviation of the log returns per year, in per cent. A bar counts as a day."""

from __future__ import annotations

from openbell.indicators.annual import DAYS, log_returns, per_year
from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.sums import offset_and_deviation
from openbell.market.bars import Bars


def _factor(length: int, days: int) -> float:
    """From the population deviation of the returns to the sample deviation per year."""
    return per_year(days * length, length - 1)


def _compute(bars: Bars, length: int, days: int) -> Channels:
    values = _factor(length, days) * offset_and_deviation(log_returns(bars.close), length)[1]
    return Channels(lines=(Line("Volatility", values),))


INDICATOR = Indicator(
    name="volatility_close",
    title="Volatility C-C",
    description="Close-to-close volatility: sample deviation of the log returns in per cent a year, a bar as a day",
    brief="Close-to-close volatility, in per cent a year",
    overlay=False,
    compute=_compute,
    warmup=lambda length, days: length + 1,  # noqa: ARG005 - takes every parameter
    parameters=(Parameter("length", 10, 2, 1000), DAYS),
    aliases=("volatility_close_to_close",),
)
