"""Commodity channel index: distance of the typical price from its average in units of its mean deviation."""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import Channels, Line, bounds
from openbell.indicators.float_ties import above
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import Offsets, total
from openbell.market.bars import Bars, Values

UNIT = 0.015


def cci(bars: Bars, length: int) -> Values:
    """0 while the price does not move. Computed relative to the latest price, so that equal prices give exactly 0."""
    price = (bars.high + bars.low + bars.close) / 3.0
    out = np.full(len(price), np.nan)
    if len(price) >= length:
        apart = Offsets(price, length)
        mean = total(apart) / length
        spread = total(np.abs(each - mean) for each in apart) / length
        moving = above(spread, 0.0, price[length - 1 :])
        out[length - 1 :] = np.divide(-mean, UNIT * spread, out=np.zeros(len(mean)), where=moving)
    return out


def _compute(bars: Bars, length: int) -> Channels:
    return Channels(lines=(Line("CCI", cci(bars, length)),), hlines=bounds(-100.0, 100.0))


INDICATOR = Indicator(
    name="cci",
    title="CCI",
    description="Distance of the typical price from its simple average, in units of 0.015 mean deviations",
    brief="Distance of the typical price from its average",
    overlay=False,
    compute=_compute,
    warmup=lambda length: length,
    parameters=(Parameter("length", 20, 2, 500, aliases=("period",)),),
    aliases=("commodity_channel_index",),
    inputs=("high", "low", "close"),
    differs="While the price does not move it is 0, where TradingView has no value.",
)
