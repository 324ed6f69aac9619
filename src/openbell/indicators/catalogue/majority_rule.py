"""Majority rule: the share of the latest bars whose close is above the previous close, in per cent."""

from __future__ import annotations

from math import isnan, nan

from openbell.indicators.channels import Channels, Level, Line
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.windows import RunningSum, rises, window_sum
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int) -> Channels:
    values = 100.0 * (window_sum(rises(bars.close), length) / length)
    return Channels(lines=(Line("Majority", values),), hlines=(Level(50.0, "half"),), y_range=(0.0, 100.0))


class _Stream:
    def __init__(self, length: int) -> None:
        self._rises, self._length = RunningSum(length), length
        self._close = nan

    def update(self, bar: Bar) -> tuple[float, ...]:
        before, self._close = self._close, bar.close
        if isnan(before):
            return (nan,)
        return (100.0 * (self._rises.update(1.0 if bar.close > before else 0.0) / self._length),)


INDICATOR = Indicator(
    name="majority_rule",
    title="Majority Rule",
    description="Share of the latest bars whose close rose, in per cent",
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length: length + 1,
    parameters=(Parameter("length", 14, 1, 1000),),
)
