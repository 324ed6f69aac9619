"""Momentum: the change of the close over a number of bars, in units of the price."""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int) -> Channels:
    values = np.full(len(bars), np.nan)
    values[length:] = bars.close[length:] - bars.close[:-length]
    return Channels(lines=(Line("Momentum", values),), hlines=(ZERO,))


INDICATOR = Indicator(
    name="momentum",
    title="Momentum",
    description="The close less the close of some bars ago",
    overlay=False,
    compute=_compute,
    warmup=lambda length: length + 1,
    parameters=(Parameter("length", 10, 1, 1000),),
    aliases=("mom",),
)
