"""McGinley dynamic: an average that follows falling prices faster than rising ones.

The step towards the close is divided by the length times the fourth power of close / average. The divisor is at least 1:
after a crash the average reaches the close and does not pass it. It starts with the simple average.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import nan

import numpy as np

from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import window_mean
from openbell.market.bars import Bars


def _averages(rows: Iterable[tuple[float, float]], length: int) -> list[float]:
    """The average after each close; a row is a close and the seed, which counts until the average has begun."""
    found, value = [], nan
    for close, seed in rows:
        if value > 0.0 or value < 0.0:
            ratio = close / value
            square = ratio * ratio
            divisor = length * square * square
            value += (close - value) / divisor if divisor > 1.0 else close - value
        else:
            value = seed
        found.append(value)
    return found


def _compute(bars: Bars, length: int) -> Channels:
    seeds = window_mean(bars.close, length)
    values = _averages(zip(bars.close.tolist(), seeds.tolist(), strict=True), length)
    return Channels(lines=(Line("McGinley", np.array(values)),))


INDICATOR = Indicator(
    name="mcginley",
    title="McGinley",
    description="McGinley dynamic: an average of the close that adjusts its speed to the market",
    brief="McGinley dynamic: an average that adjusts its speed",
    overlay=True,
    compute=_compute,
    warmup=lambda length: length,
    parameters=(Parameter("length", 10, 1, 500, tradingview=14),),
    aliases=("mcginley_dynamic",),
    differs="The divisor is at least 1, so that the line does not pass the price after a crash.",
)
