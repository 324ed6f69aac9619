"""Net volume: the volume of a bar with the sign of the change of its close; 0 if the close did not change."""

from __future__ import annotations

from math import isnan, nan

import numpy as np

from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.spec import Bar, Indicator
from openbell.market.bars import Bars


def _compute(bars: Bars) -> Channels:
    values = np.sign(np.diff(bars.close, prepend=np.nan)) * bars.volume
    return Channels(lines=(Line("Net", values),), hlines=(ZERO,))


class _Stream:
    def __init__(self) -> None:
        self._close = nan

    def update(self, bar: Bar) -> tuple[float, ...]:
        before, self._close = self._close, bar.close
        if bar.close > before:
            return (bar.volume,)
        if bar.close < before:
            return (-bar.volume,)
        return (nan if isnan(before) else 0.0,)


INDICATOR = Indicator(
    name="net_volume",
    title="Net Volume",
    description="Volume of each bar: positive on a higher close, negative on a lower one, 0 on an equal one",
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=lambda: 2,
    inputs=("close", "volume"),
)
