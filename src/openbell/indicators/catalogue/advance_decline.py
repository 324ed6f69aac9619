"""Advancing over declining bars: the number of rises of the close in the window over the number of its falls.

Without a fall the divisor is 1, so the ratio is the number of rises, and 0 while the close does not move.
"""

from __future__ import annotations

from math import isnan, nan

import numpy as np

from openbell.indicators.channels import Channels, Level, Line
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.windows import RunningSum, rises, window_sum
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int) -> Channels:
    advances, declines = (window_sum(rises(close), length) for close in (bars.close, -bars.close))
    return Channels(lines=(Line("A/D", advances / np.maximum(declines, 1.0)),), hlines=(Level(1.0, "even"),))


class _Stream:
    def __init__(self, length: int) -> None:
        self._advances, self._declines = RunningSum(length), RunningSum(length)
        self._close = nan

    def update(self, bar: Bar) -> tuple[float, ...]:
        close, before = bar.close, self._close
        self._close = close
        if isnan(before):
            return (nan,)
        advances = self._advances.update(1.0 if close > before else 0.0)
        return (advances / max(1.0, self._declines.update(1.0 if close < before else 0.0)),)


INDICATOR = Indicator(
    name="advance_decline",
    title="Advance/Decline",
    description="Number of bars of the window whose close rose over the number of those whose close fell",
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length: length + 1,
    parameters=(Parameter("length", 10, 1, 1000),),
)
