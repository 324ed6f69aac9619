"""Chaikin money flow: the sum of the money flow as a share of the volume."""

from __future__ import annotations

import numpy as np

from openbell.indicators.catalogue.ad import money_flow
from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import window_sum
from openbell.market.bars import Bars, Values


def cmf(bars: Bars, length: int) -> Values:
    """−1 to 1; 0 if there was no volume."""
    volume = window_sum(bars.volume, length)
    return np.divide(window_sum(money_flow(bars), length), volume, out=np.zeros(len(bars)), where=volume != 0.0)


def _compute(bars: Bars, length: int) -> Channels:
    return Channels(lines=(Line("CMF", cmf(bars, length)),), hlines=(ZERO,))


INDICATOR = Indicator(
    name="cmf",
    title="CMF",
    description="Volume weighed by where each bar closed in its range, as a share of the volume of the newest bars",
    brief="Chaikin money flow, as a share of the volume",
    overlay=False,
    compute=_compute,
    warmup=lambda length: length,
    parameters=(Parameter("length", 20, 1, 500, aliases=("period",)),),
    aliases=("chaikin_money_flow",),
    inputs=("high", "low", "close", "volume"),
    differs="It is 0 without volume, and a bar without a range adds 0, where TradingView has no value.",
)
