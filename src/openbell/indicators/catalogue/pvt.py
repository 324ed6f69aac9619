"""Price volume trend: each bar adds its volume times the relative change of the close. Starts with the second bar."""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Indicator
from openbell.market.bars import Bars


def _compute(bars: Bars) -> Channels:
    values = np.full(len(bars), np.nan)
    before = bars.close[:-1]
    values[1:] = np.cumsum(bars.volume[1:] * ((bars.close[1:] - before) / before))
    return Channels(lines=(Line("PVT", values),))


INDICATOR = Indicator(
    name="pvt",
    title="PVT",
    description="Price volume trend: running total of the volume times the relative change of the close",
    brief="Price volume trend: sum of volume times relative change",
    overlay=False,
    compute=_compute,
    warmup=lambda: 2,
    cumulative=True,
    aliases=("vpt", "price_volume_trend"),
    inputs=("close", "volume"),
)
