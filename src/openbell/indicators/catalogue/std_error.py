"""Standard error of the least-squares line through the latest closes: its residuals have `length − 2` degrees of freedom."""

from __future__ import annotations

from math import sqrt

from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import regression
from openbell.market.bars import Bars


def error_per_deviation(length: int) -> float:
    """The factor from the population deviation of the residuals to the standard error."""
    return sqrt(length / (length - 2))


def _compute(bars: Bars, length: int) -> Channels:
    return Channels(lines=(Line("StdErr", error_per_deviation(length) * regression(bars.close, length)[1]),))


INDICATOR = Indicator(
    name="std_error",
    title="StdErr",
    description="Standard error of the least-squares line through the latest closes",
    brief="Standard error of the least-squares line",
    overlay=False,
    compute=_compute,
    warmup=lambda length: length,
    parameters=(Parameter("length", 14, 3, 500),),
    aliases=("standard_error",),
)
