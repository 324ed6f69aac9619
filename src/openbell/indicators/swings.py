"""Swings: highs and lows that are the extreme of some bars on either side, known that many bars later.

Of equal extremes the first one counts, as in TradingView's zigzag.
"""

from __future__ import annotations

import numpy as np

from openbell.indicators.windows import highest
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
