"""Bollinger's %b: the place of the close between the lower band (0) and the upper band (1). 0.5 while it does not move."""

from __future__ import annotations

import numpy as np

from openbell.indicators.catalogue.bb_width import PARAMETERS
from openbell.indicators.channels import Channels, Level, Line
from openbell.indicators.spec import Indicator
from openbell.indicators.windows import offset_and_deviation
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int, std_dev: float) -> Channels:
    offset, deviation = offset_and_deviation(bars.close, length)
    width = 2.0 * std_dev * deviation
    values = 0.5 - np.divide(offset, width, out=0.0 * width, where=~(width <= 0.0))
    return Channels(
        lines=(Line("%b", values),),
        hlines=(Level(0.0, "lower band"), Level(0.5, "middle band"), Level(1.0, "upper band")),
    )


INDICATOR = Indicator(
    name="percent_b",
    title="%b",
    description="Place of the close between the lower Bollinger band (0) and the upper one (1)",
    brief="Place of the close between the Bollinger bands, 0 to 1",
    overlay=False,
    compute=_compute,
    warmup=lambda length, std_dev: length,  # noqa: ARG005 - takes every parameter
    parameters=PARAMETERS,
    aliases=("bollinger_bands_percent_b", "bollinger_bands_b", "bb_percent_b", "bbb"),
    differs="While the price does not move it is 0.5, where TradingView has no value.",
)
