"""Volume balance: the volume of bars with a higher close in per cent of all volume. 50 if the window has no volume.

The volume of a bar whose close equals the one before counts half.
"""

from __future__ import annotations

from math import isnan, nan

import numpy as np

from openbell.indicators.channels import Channels, Level, Line
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.windows import RunningSum, window_sum
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int) -> Channels:
    out = np.full(len(bars), np.nan)
    volume = bars.volume[1:]
    rising = window_sum(volume * ((np.sign(np.diff(bars.close)) + 1.0) / 2.0), length)
    traded = window_sum(volume, length)
    out[1:] = 100.0 * np.divide(rising, traded, out=0.0 * traded + 0.5, where=~(traded <= 0.0))
    return Channels(lines=(Line("balance", out),), hlines=(Level(50.0, "even"),), y_range=(0.0, 100.0))


class _Stream:
    def __init__(self, length: int) -> None:
        self._rising = RunningSum(length)
        self._traded = RunningSum(length)
        self._close = nan

    def update(self, bar: Bar) -> tuple[float, ...]:
        before, self._close = self._close, bar.close
        if isnan(before):
            return (nan,)
        share = 1.0 if bar.close > before else 0.0 if bar.close < before else 0.5
        rising, traded = self._rising.update(bar.volume * share), self._traded.update(bar.volume)
        return (50.0 if traded <= 0.0 else 100.0 * (rising / traded),)


INDICATOR = Indicator(
    name="volume_balance",
    title="Volume Balance",
    description="Volume of bars with a higher close in per cent of all volume; 50 if there is none",
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length: length + 1,
    parameters=(Parameter("length", 20, 1, 500),),
    inputs=("close", "volume"),
)
