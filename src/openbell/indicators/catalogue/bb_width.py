"""Width of the Bollinger bands: the distance between them over the simple average."""

from __future__ import annotations

from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import mean_and_deviation
from openbell.market.bars import Bars

PARAMETERS = (
    Parameter("length", 20, 1, 1000, aliases=("period",)),
    Parameter("std_dev", 2.0, 0.1, 10.0, aliases=("mult", "multiplier")),
)


def _compute(bars: Bars, length: int, std_dev: float) -> Channels:
    middle, deviation = mean_and_deviation(bars.close, length)
    return Channels(lines=(Line("BBW", 2.0 * std_dev * deviation / middle),))


INDICATOR = Indicator(
    name="bb_width",
    title="BBW",
    description="Distance between the Bollinger bands over their simple average",
    brief="Distance between the Bollinger bands over their average",
    overlay=False,
    compute=_compute,
    warmup=lambda length, std_dev: length,  # noqa: ARG005 - takes every parameter
    parameters=PARAMETERS,
    aliases=("bbw", "bollinger_bands_width", "bollinger_bandwidth"),
    differs="It is a ratio, where TradingView has per cent.",
)
