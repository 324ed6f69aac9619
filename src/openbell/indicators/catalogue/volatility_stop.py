"""Wilder's volatility stop: average true ranges from the extreme close since the last flip, as in TradingView.

The stop only moves towards the price. A close beyond it flips the direction, and the extreme starts again at that close. It
starts long, below the close of the first bar with an average true range.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

import numpy as np

from openbell.indicators.catalogue.atr import atr
from openbell.indicators.channels import Channels, Line
from openbell.indicators.float_ties import TOLERANCE
from openbell.indicators.rules import FLIP_SIGNALS, flips
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars


def _trail(rows: Iterable[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """The stop after each bar, and its direction. A row is a bar's close and `room`, the distance of the stop.

    Uses comparisons instead of min and max, which take twice the time.
    """
    stops, sides = [], []
    extreme, stop, side = -inf, -inf, 1.0
    for close, room in rows:
        before = side
        if side * (close - extreme) > 0.0:
            extreme = close
        moved = extreme - side * room
        if side * (moved - stop) > 0.0:
            stop = moved
        # Compared as `float_ties` does, written out: a call takes as long as the step.
        side = 1.0 if close - stop >= -TOLERANCE * close else -1.0
        if side != before:
            extreme, stop = close, close - side * room
        stops.append(stop)
        sides.append(side)
    return stops, sides


def _compute(bars: Bars, length: int, multiplier: float) -> Channels:
    lines = np.full((2, len(bars)), np.nan)
    columns = (column[length - 1 :].tolist() for column in (bars.close, multiplier * atr(bars, length)))
    lines[:, length - 1 :] = _trail(zip(*columns, strict=True))
    stop, side = lines
    return Channels(lines=(Line("stop", stop), Line("direction", side)), signals=flips(np.nan_to_num(side), stop))


INDICATOR = Indicator(
    name="volatility_stop",
    title="Volatility Stop",
    description="A stop at average true ranges from the extreme close since it last changed sides, and its direction",
    brief="A stop at true ranges from the extreme close",
    overlay=True,
    compute=_compute,
    warmup=lambda length, multiplier: length,  # noqa: ARG005 - takes every parameter
    parameters=(Parameter("length", 20, 1, 500), Parameter("multiplier", 2.0, 0.1, 20.0, aliases=("factor",))),
    aliases=("vstop",),
    inputs=("high", "low", "close"),
    signals=FLIP_SIGNALS,
    differs=(
        "It begins with the first average true range. TradingView begins at the first bar, with the true range of each bar "
        "until there is an average, so that the first stops can differ."
    ),
)
