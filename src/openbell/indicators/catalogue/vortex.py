"""Vortex: moves from the last low up and from the last high down, over the true range. 1 while the price does not move."""

from __future__ import annotations

import numpy as np

from openbell.indicators.catalogue.atr import true_range
from openbell.indicators.channels import Channels, Level, Line
from openbell.indicators.spec import Indicator, LinePair, Parameter
from openbell.indicators.windows import window_sum
from openbell.market.bars import Bars, Values


def vortex(bars: Bars, length: int) -> tuple[Values, Values]:
    """VI+ and VI−; NaN until there are `length` bars with a previous bar."""
    up, down, reach = np.full((3, len(bars)), np.nan)
    up[1:] = np.abs(bars.high[1:] - bars.low[:-1])
    down[1:] = np.abs(bars.low[1:] - bars.high[:-1])
    reach[1:] = true_range(bars)[1:]
    moved = window_sum(reach, length)
    out = np.ones((2, len(bars)))
    for number, move in enumerate((up, down)):
        np.divide(window_sum(move, length), moved, out=out[number], where=moved != 0.0)
    return out[0], out[1]


def _compute(bars: Bars, length: int) -> Channels:
    up, down = vortex(bars, length)
    return Channels(lines=(Line("VI+", up), Line("VI-", down)), hlines=(Level(1.0, "even"),))


INDICATOR = Indicator(
    name="vortex",
    title="VI",
    description="Vortex indicator: upward and downward reach between neighbouring bars over the true range",
    brief="Vortex indicator: upward and downward reach",
    overlay=False,
    compute=_compute,
    warmup=lambda length: length + 1,
    parameters=(Parameter("length", 14, 1, 500),),
    aliases=("vortex_indicator",),
    inputs=("high", "low", "close"),
    differs="While the price does not move it is 1, where TradingView has no value.",
    settles=1,
    crosses=(LinePair("VI+", "VI-"),),
)
