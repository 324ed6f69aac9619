"""Cumulative volume delta: the running total of buys less sells."""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Indicator
from openbell.market.bars import Bars, Values
from openbell.market.extras import Extra


def cvd(bars: Bars, delta: Extra) -> Values:
    """NaN before the first bar with order flow."""
    flow = delta.sum_in(bars)
    return np.where(np.isnan(flow), np.nan, np.nancumsum(flow))


def _compute(bars: Bars, delta: Extra) -> Channels:
    return Channels(lines=(Line("CVD", cvd(bars, delta)),), hlines=(0.0,))


INDICATOR = Indicator(
    name="cvd",
    title="CVD",
    description="Cumulative volume delta: buys less sells since the first bar",
    overlay=False,
    compute=_compute,
    warmup=lambda: 1,
    cumulative=True,
    needs=("delta",),
)
