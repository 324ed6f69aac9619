"""Price volume trend: each bar adds its volume times the relative change of the close. Starts with the second bar."""

from __future__ import annotations

from math import isnan, nan

import numpy as np

from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Bar, Indicator
from openbell.market.bars import Bars


def _compute(bars: Bars) -> Channels:
    values = np.full(len(bars), np.nan)
    before = bars.close[:-1]
    values[1:] = np.cumsum(bars.volume[1:] * ((bars.close[1:] - before) / before))
    return Channels(lines=(Line("PVT", values),))


class _Stream:
    def __init__(self) -> None:
        self._total = 0.0
        self._close = nan

    def update(self, bar: Bar) -> tuple[float, ...]:
        before, self._close = self._close, bar.close
        if isnan(before):
            return (nan,)
        self._total += bar.volume * ((bar.close - before) / before)
        return (self._total,)


INDICATOR = Indicator(
    name="pvt",
    title="PVT",
    description="Price volume trend: running total of the volume times the relative change of the close",
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=lambda: 2,
    cumulative=True,
    aliases=("vpt", "price_volume_trend"),
    inputs=("close", "volume"),
)
