"""Standard deviation of the latest closes (population), times a factor."""

from __future__ import annotations

from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import offset_and_deviation
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int, deviations: float) -> Channels:
    return Channels(lines=(Line("StdDev", deviations * offset_and_deviation(bars.close, length)[1]),))


INDICATOR = Indicator(
    name="std_dev",
    title="StdDev",
    description="Population deviation of the latest closes, times a factor",
    overlay=False,
    compute=_compute,
    warmup=lambda length, deviations: length,  # noqa: ARG005 - takes every parameter
    parameters=(Parameter("length", 5, 1, 1000), Parameter("deviations", 1.0, 0.1, 10.0)),
    aliases=("stdev", "standard_deviation"),
)
