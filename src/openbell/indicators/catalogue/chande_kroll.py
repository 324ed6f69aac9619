"""Chande Kroll stops: extremes of stops that lie average true ranges from the highest high and the lowest low.

As in TradingView, the first extremes are those of fewer stops: bars without a stop are left out of the window.
"""

from __future__ import annotations

from math import inf, nan

import numpy as np

from openbell.indicators.catalogue.atr import atr
from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import highest, lowest
from openbell.market.bars import Bars


def _compute(bars: Bars, atr_length: int, multiplier: float, stop_length: int) -> Channels:
    room = multiplier * atr(bars, atr_length)
    tops, bottoms = highest(bars.high, atr_length) - room, lowest(bars.low, atr_length) + room
    known = ~np.isnan(room)
    short = highest(np.where(known, tops, -inf), stop_length)
    long = lowest(np.where(known, bottoms, inf), stop_length)
    return Channels(
        lines=tuple(Line(label, np.where(known, stop, nan)) for label, stop in (("long", long), ("short", short)))
    )


INDICATOR = Indicator(
    name="chande_kroll",
    title="Chande Kroll",
    description="Chande Kroll stops of long and short positions, from average true ranges and the extremes of the bars",
    brief="Chande Kroll stops of long and short positions",
    overlay=True,
    compute=_compute,
    warmup=lambda atr_length, multiplier, stop_length: max(atr_length, stop_length),  # noqa: ARG005
    parameters=(
        Parameter("atr_length", 10, 1, 500, aliases=("p",)),
        Parameter("multiplier", 1.0, 0.1, 20.0, aliases=("x", "atr_coefficient")),
        Parameter("stop_length", 9, 1, 500, aliases=("q",)),
    ),
    aliases=("chande_kroll_stop",),
    inputs=("high", "low", "close"),
)
