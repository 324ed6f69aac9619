"""Advancing over declining bars: the number of rises of the close in the window over the number of its falls.

Without a fall the divisor is 1, so the ratio is the number of rises, and 0 while the close does not move.
"""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import Channels, Level, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import rises, window_sum
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int) -> Channels:
    advances, declines = (window_sum(rises(close), length) for close in (bars.close, -bars.close))
    return Channels(lines=(Line("A/D", advances / np.maximum(declines, 1.0)),), hlines=(Level(1.0, "even"),))


INDICATOR = Indicator(
    name="advance_decline",
    title="Advance/Decline",
    description="Number of bars of the window whose close rose over the number of those whose close fell",
    brief="Bars whose close rose over bars whose close fell",
    overlay=False,
    compute=_compute,
    warmup=lambda length: length + 1,
    parameters=(Parameter("length", 10, 1, 1000),),
)
