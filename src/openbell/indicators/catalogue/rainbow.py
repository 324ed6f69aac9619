"""Rainbow oscillator: the close against a set of averages, each of which is the simple average of the one before.

Both lines are in per cent of the range of the closes in `lookback` bars, and 0 while the closes do not move.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import highest, lowest, total, window_mean
from openbell.market.bars import Bars, Values


def _averages(close: Values, length: int, depth: int) -> Iterable[Values]:
    for _ in range(depth):
        close = window_mean(close, length)
        yield close


def _compute(bars: Bars, length: int, depth: int, lookback: int) -> Channels:
    averages = list(_averages(bars.close, length, depth))
    height = highest(bars.close, lookback) - lowest(bars.close, lookback)
    away = total([bars.close - each for each in averages]) / depth
    width = np.maximum.reduce(averages) - np.minimum.reduce(averages)
    lines = [_share(part, height) for part in (away, width)]
    return Channels(lines=(Line("Oscillator", lines[0]), Line("Bandwidth", lines[1])), hlines=(ZERO,))


def _share(part: Values, height: Values) -> Values:
    """In per cent of the range; 0 where there is no range."""
    return 100.0 * np.divide(part, height, out=0.0 * part, where=~(height <= 0.0))


INDICATOR = Indicator(
    name="rainbow",
    title="Rainbow",
    description="Distance of the close from the mean of recursive averages, and their spread, in per cent of its range",
    brief="Distance of the close from the mean of recursive averages",
    overlay=False,
    compute=_compute,
    warmup=lambda length, depth, lookback: max(depth * (length - 1) + 1, lookback),
    parameters=(Parameter("length", 2, 1, 100), Parameter("depth", 10, 1, 20), Parameter("lookback", 10, 2, 500)),
    aliases=("rainbow_oscillator",),
)
