"""Slope of the least-squares line through the latest closes, in units of the price per bar."""

from __future__ import annotations

from itertools import accumulate

from openbell.indicators.averages import weighted_steps
from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import places
from openbell.market.bars import Bars


def _weights(length: int) -> list[float]:
    """The weight of each step between closes. A constant price gives exactly 0."""
    distances, squares = places(length)
    return [-each / squares for each in accumulate(distances[:-1])]


def _compute(bars: Bars, length: int) -> Channels:
    return Channels(lines=(Line("Slope", weighted_steps(bars.close, _weights(length))),), hlines=(ZERO,))


INDICATOR = Indicator(
    name="linreg_slope",
    title="Slope",
    description="Rise per bar of the least-squares line through the latest closes",
    brief="Rise per bar of the least-squares line",
    overlay=False,
    compute=_compute,
    warmup=lambda length: length,
    parameters=(Parameter("length", 14, 2, 1000),),
    aliases=("linear_regression_slope",),
)
