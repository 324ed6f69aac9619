"""Swings: highs and lows that are the extreme of some bars on either side, known that many bars later.

Of equal extremes the first one counts, as in TradingView's zigzag.
"""

from __future__ import annotations

from collections import deque
from math import nan

import numpy as np

from openbell.indicators.highs_and_lows import RunningExtremes, highest
from openbell.indicators.spec import Bar
from openbell.market.bars import Bars, Values
from openbell.market.session_table import Times


def tops(values: Values, depth: int) -> Times:
    """The indexes of values above the `depth` values before and not below the `depth` values after them."""
    if len(values) <= 2 * depth:
        return np.zeros(0, dtype=np.int64)
    reach = highest(values, depth)
    centre = values[depth:-depth]
    return np.flatnonzero((centre > reach[depth - 1 : -depth - 1]) & (centre >= reach[2 * depth :])) + depth


def swings(bars: Bars, depth: int) -> tuple[Values, Values]:
    """The swing high and the swing low that each bar confirms, which are `depth` bars old; NaN for other bars."""
    out = np.full((2, len(bars)), np.nan)
    for found, prices, centres in (
        (out[0], bars.high, tops(bars.high, depth)),
        (out[1], bars.low, tops(-bars.low, depth)),
    ):
        found[centres + depth] = prices[centres]
    return out[0], out[1]


class RunningSwings:
    """`swings`, one bar at a time."""

    __slots__ = ("_bars", "_extremes")

    def __init__(self, depth: int) -> None:
        self._extremes = RunningExtremes(depth)
        nothing = (nan, nan, nan, nan)
        # High, low, and the extremes of the `depth` bars up to it, for each bar from the one before the centre on.
        self._bars = deque([nothing] * (depth + 2), maxlen=depth + 2)

    def update(self, bar: Bar) -> tuple[float, float]:
        """The swing high and the swing low that this bar confirms; NaN if it confirms none."""
        highest, lowest = self._extremes.update(bar.high, bar.low)
        self._bars.append((bar.high, bar.low, highest, lowest))
        (_, _, highest_before, lowest_before), (high, low, _, _) = self._bars[0], self._bars[1]
        return (
            high if high > highest_before and high >= highest else nan,
            low if low < lowest_before and low <= lowest else nan,
        )
