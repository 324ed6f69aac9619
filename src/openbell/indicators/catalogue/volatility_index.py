"""Wilder's volatility system: a stop-and-reverse level at a multiple of the average true range from the extreme close.

The level of a long position lies below the highest close since it began, that of a short position above the lowest one. A
close beyond the level of the bar before reverses the position, and the extreme starts again at that close. It starts long.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import nan

import numpy as np

from openbell.indicators.catalogue.atr import atr
from openbell.indicators.channels import Channels, Line
from openbell.indicators.float_ties import TOLERANCE
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars


def _levels(rows: Iterable[tuple[float, float]]) -> list[float]:
    """The level after each bar. A row is its close, and the distance of the level from the extreme close."""
    found = []
    extreme = level = nan
    side = 1.0
    for close, room in rows:
        # Compared as `float_ties` does, written out: a call takes as long as the step.
        if side * (level - close) > TOLERANCE * close:
            side, extreme = -side, close
        elif not side * (extreme - close) >= 0.0:  # also at the first bar, whose extreme is NaN
            extreme = close
        level = extreme - side * room
        found.append(level)
    return found


def _compute(bars: Bars, length: int, multiplier: float) -> Channels:
    level, room = np.full(len(bars), np.nan), multiplier * atr(bars, length)
    columns = (column[length - 1 :].tolist() for column in (bars.close, room))
    level[length - 1 :] = _levels(zip(*columns, strict=True))
    return Channels(lines=(Line("Level", level),))


INDICATOR = Indicator(
    name="volatility_index",
    title="Volatility Index",
    description="Wilder's stop-and-reverse level: average true ranges from the extreme close of the position",
    brief="Wilder's stop-and-reverse level, by true ranges",
    overlay=False,
    compute=_compute,
    warmup=lambda length, multiplier: length,  # noqa: ARG005 - takes every parameter
    parameters=(Parameter("length", 10, 1, 500), Parameter("multiplier", 3.0, 0.1, 20.0)),
    inputs=("high", "low", "close"),
)
