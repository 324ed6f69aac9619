"""Renko: bricks of equal height, built from closes. The height is a multiple of the average true range when a brick begins.

The first brick begins at the close of the first bar with an average true range. A brick in the same direction is complete
when the close is one height beyond the last brick, the first one of a reversal when it is two heights back. Direction and
number of bricks are 0 until the first brick is complete. While the price does not move there is no height, and no brick
begins.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan, nan

from openbell.indicators.catalogue.atr import atr
from openbell.indicators.channels import Channels, Line
from openbell.indicators.float_ties import TOLERANCE
from openbell.indicators.lines import step_lines
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars

NEAR = 0.999
"""Closes within this share of a brick's height from its start do not end it: they need no further comparison."""


def _bricks(rows: Iterable[tuple[float, float]]) -> dict[int, tuple[float, float, float]]:
    """Level, direction and number of the bricks after each bar that changes them, by its number among these bars.

    A row is a bar's close, and the height of a brick that begins there.
    """
    changes = {}
    level, way, count = nan, 0.0, 0.0
    standing = 0.0
    bottom = top = nan
    for at, (close, height) in enumerate(rows):
        if bottom < close < top:
            continue  # far from the end of a brick
        # Compared as `float_ties` does, written out: calls would take longer than the step.
        room = TOLERANCE * close
        if not standing:
            standing = height if height > room else 0.0
            if isnan(level):
                level = close
                changes[at] = level, way, count
        away = close - level
        needed = 2.0 * standing if (1.0 if away > 0.0 else -1.0) == -way else standing
        if needed > 0.0 and abs(away) - needed >= -room:
            standing = height if height > room else 0.0
            level, way, count = changes[at] = _completed((level, way, count), close, needed, standing)
        near = NEAR * standing if standing - NEAR * standing > room else nan
        bottom, top = level - near, level + near
    return changes


def _completed(
    before: tuple[float, float, float], close: float, needed: float, height: float
) -> tuple[float, float, float]:
    """The state after the brick that a close ends, and further ones of this height if there is one."""
    level, way_before, bricks = before
    way = 1.0 if close > level else -1.0
    level += way * 1.0 * needed
    bricks = bricks + 1.0 if way == way_before else 1.0
    if height:
        more = max(0.0, ((close - level) * way + TOLERANCE * close) // height)
        level += way * more * height
        bricks += more
    return level, way, bricks


def _compute(bars: Bars, length: int, multiplier: float) -> Channels:
    heights = multiplier * atr(bars, length)
    columns = (column[length - 1 :].tolist() for column in (bars.close, heights))
    changes = _bricks(zip(*columns, strict=True))
    lines = step_lines({at + length - 1: state for at, state in changes.items()}, (nan, nan, nan), len(bars))
    return Channels(lines=tuple(map(Line, ("level", "direction", "bricks"), lines)))


INDICATOR = Indicator(
    name="renko",
    title="Renko",
    description="Bricks as high as average true ranges: the last complete one's close, direction and number in a row",
    brief="Bricks as high as true ranges: close, direction, number",
    overlay=True,
    compute=_compute,
    warmup=lambda length, multiplier: length,  # noqa: ARG005 - takes every parameter
    parameters=(Parameter("length", 14, 1, 500), Parameter("multiplier", 1.0, 0.1, 20.0)),
    inputs=("high", "low", "close"),
    cumulative=True,
)
