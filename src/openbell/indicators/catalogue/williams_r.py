"""Williams %R: the distance of the close below the highest high, in per cent of the range."""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import Channels, Line, bounds
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import highest, lowest
from openbell.market.bars import Bars, Values


def williams_r(bars: Bars, length: int) -> Values:
    """−100 to 0; −50 if the window has no range."""
    high = highest(bars.high, length)
    height = high - lowest(bars.low, length)
    place: Values = np.divide(bars.close - high, height, out=np.full(len(bars), -0.5), where=height != 0.0)
    place *= 100.0
    return place


def _compute(bars: Bars, length: int) -> Channels:
    return Channels(lines=(Line("%R", williams_r(bars, length)),), hlines=bounds(-80.0, -20.0), y_range=(-100.0, 0.0))


INDICATOR = Indicator(
    name="williams_r",
    title="Williams %R",
    description="Distance of the close below the highest high, in per cent of the range of the newest bars",
    brief="Williams %R: distance below the highest high",
    overlay=False,
    compute=_compute,
    warmup=lambda length: length,
    parameters=(Parameter("length", 14, 1, 500, aliases=("period",)),),
    aliases=("willr", "williams_percent_r", "williams_percent_range"),
    inputs=("high", "low", "close"),
    differs="While the price does not move it is -50, where TradingView has no value.",
)
