"""Majority rule: the share of the latest bars whose close is above the previous close, in per cent."""

from __future__ import annotations

from openbell.indicators.channels import Channels, Level, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import rises, window_sum
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int) -> Channels:
    values = 100.0 * (window_sum(rises(bars.close), length) / length)
    return Channels(lines=(Line("Majority", values),), hlines=(Level(50.0, "half"),), y_range=(0.0, 100.0))


INDICATOR = Indicator(
    name="majority_rule",
    title="Majority Rule",
    description="Share of the latest bars whose close rose, in per cent",
    overlay=False,
    compute=_compute,
    warmup=lambda length: length + 1,
    parameters=(Parameter("length", 14, 1, 1000),),
)
