"""Range bars: bars whose high and low are a percentage of their first price apart, built from closes.

A bar begins where the one before ended, the first one at the first close. It is complete when a close is its range above its
low (it rises) or below its high (it falls). Direction and count are 0 until the first bar is complete.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, isnan, log, log1p, nan

from openbell.indicators.channels import Channels, Line
from openbell.indicators.float_ties import TOLERANCE
from openbell.indicators.lines import step_lines
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars


def _range_bars(closes: Iterable[float], share: float) -> dict[int, tuple[float, float, float]]:
    """Level, direction and count of the complete bars after each close that changes them, by its number."""
    changes = {}
    high = low = level = nan
    way = count = 0.0
    for at, close in enumerate(closes):
        if low <= close <= high:
            continue
        if isnan(level):
            level = high = low = close
            changes[at] = level, way, count
        height = share * level
        # Compared as `float_ties` does, written out: calls would take longer than the step.
        room, top, bottom = TOLERANCE * close, low + height, high - height
        if close - top >= -room and top > low:
            level, way, count = changes[at] = _completed(way, count, 1.0, top, close, share)
            high = low = level
        elif bottom - close >= -room and bottom < high:
            level, way, count = changes[at] = _completed(way, count, -1.0, bottom, close, share)
            high = low = level
        if close > high:
            high = close
        elif close < low:
            low = close
    return changes


def _completed(
    way_before: float, count: float, way: float, level: float, close: float, share: float
) -> tuple[float, float, float]:
    """The state after the bar that ends at a level, and the further ones that the close has passed.

    Each starts at the last one's end.
    """
    step = log1p(way * share)
    ratio = close / level
    more = max(0.0, (log(ratio) + way * TOLERANCE) // step) if 0.0 < ratio < inf else 0.0
    level *= (1.0 + way * share) ** more
    return level, way, count + 1.0 + more if way == way_before else 1.0 + more


def _compute(bars: Bars, percentage: float) -> Channels:
    changes = _range_bars(bars.close.tolist(), percentage / 100.0)
    lines = step_lines(changes, (nan, nan, nan), len(bars))
    return Channels(lines=tuple(map(Line, ("level", "direction", "count"), lines)))


INDICATOR = Indicator(
    name="range_bars",
    title="Range Bars",
    description="Bars with a range in per cent of the price: the last complete one's close, direction and count in a row",
    brief="Bars of equal range: close, direction, count in a row",
    overlay=True,
    compute=_compute,
    warmup=lambda percentage: 1,  # noqa: ARG005 - takes every parameter
    parameters=(Parameter("percentage", 1.0, 0.05, 50.0),),
    cumulative=True,
)
