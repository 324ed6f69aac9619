"""Ehlers' Fisher transform of the place of each bar's middle in its range, and the same line one bar later as trigger.

As in TradingView: the place is smoothed and limited to ±0.999. It counts as half way while nothing moves.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from openbell.indicators.channels import Channels, Line, bounds
from openbell.indicators.float_ties import above
from openbell.indicators.spec import Indicator, LinePair, Parameter
from openbell.indicators.ta_lib import talib
from openbell.indicators.windows import highest, lowest
from openbell.market.bars import Bars, Values

LIMIT, LIMITED = 0.99, 0.999


def _smoothed(places: Iterable[float], value: float) -> list[float]:
    """The places, from 0 to 1, smoothed and limited; `value` is that of the bar before."""
    found = []
    for place in places:
        value = 0.66 * (place - 0.5) + 0.67 * value
        if value > LIMIT:
            value = LIMITED
        elif value < -LIMIT:
            value = -LIMITED
        found.append(value)
    return found


def _transform(place: Values) -> list[float]:
    """The Fisher transform of each place, smoothed."""
    values = np.array(_smoothed(place.tolist(), 0.0))
    # TA-Lib's LN calls the platform's logarithm; that of numpy depends on the processor.
    halves = 0.5 * talib.LN((1.0 + values) / (1.0 - values)) if len(values) else values
    fisher = 0.0
    return [fisher := half + 0.5 * fisher for half in halves.tolist()]


def _compute(bars: Bars, length: int) -> Channels:
    middle = (bars.high + bars.low) / 2.0
    bottom = lowest(middle, length)
    height = highest(middle, length) - bottom
    flat = 0.5 + 0.0 * height
    place = np.divide(middle - bottom, height, out=flat, where=above(height, 0.0, middle))
    lines = np.full((2, len(bars)), np.nan)
    lines[0, length - 1 :] = _transform(place[length - 1 :])
    lines[1, 1:] = lines[0, :-1]
    return Channels(lines=tuple(map(Line, ("Fisher", "Trigger"), lines)), hlines=bounds(-1.5, 1.5, middle=True))


INDICATOR = Indicator(
    name="fisher",
    title="Fisher",
    description="Ehlers' Fisher transform of the middle of each bar in its range, and the line of the bar before",
    brief="Ehlers' Fisher transform of the place in the range",
    overlay=False,
    compute=_compute,
    warmup=lambda length: length + 1,
    parameters=(Parameter("length", 9, 1, 500),),
    aliases=("fisher_transform",),
    inputs=("high", "low"),
    differs="While the price does not move its place counts as half way, where TradingView has no value.",
    crosses=(LinePair("Fisher", "Trigger"),),
)
