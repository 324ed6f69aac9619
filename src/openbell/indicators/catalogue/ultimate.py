"""Williams' ultimate oscillator: buying pressure over three horizons. A horizon is 50 while the price does not move."""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import Channels, Line, bounds
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import window_sum
from openbell.market.bars import Bars, Values

WEIGHTS = (4.0, 2.0, 1.0)
ALL_WEIGHTS = 7.0


def ultimate(bars: Bars, fast: int, middle: int, slow: int) -> Values:
    """0 to 100; NaN until the longest horizon is full of bars with a previous close."""
    before = np.concatenate(([np.nan], bars.close[:-1]))[: len(bars)]
    low = np.minimum(bars.low, before)
    pressure, reach = bars.close - low, np.maximum(bars.high, before) - low
    total = np.zeros(len(bars))
    for weight, length in zip(WEIGHTS, (fast, middle, slow), strict=True):
        moved = window_sum(reach, length)
        share = np.full(len(bars), 0.5)
        np.divide(window_sum(pressure, length), moved, out=share, where=moved != 0.0)
        total += weight * share
    return 100.0 * (total / ALL_WEIGHTS)


def _compute(bars: Bars, fast: int, middle: int, slow: int) -> Channels:
    return Channels(
        lines=(Line("UO", ultimate(bars, fast, middle, slow)),), hlines=bounds(30.0, 70.0), y_range=(0.0, 100.0)
    )


INDICATOR = Indicator(
    name="ultimate",
    title="UO",
    description="Ultimate oscillator: share of buying pressure in the true range over three horizons, the shortest first",
    brief="Ultimate oscillator: buying pressure over three horizons",
    overlay=False,
    compute=_compute,
    warmup=lambda fast, middle, slow: max(fast, middle, slow) + 1,
    parameters=(
        Parameter("fast", 7, 1, 500, aliases=("fast_length",)),
        Parameter("middle", 14, 1, 500, aliases=("middle_length",)),
        Parameter("slow", 28, 1, 500, aliases=("slow_length",)),
    ),
    aliases=("uo", "ultimate_oscillator"),
    inputs=("high", "low", "close"),
    differs="While the price does not move it is 50, where TradingView has no value.",
)
