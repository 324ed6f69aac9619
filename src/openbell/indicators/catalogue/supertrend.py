"""Supertrend: a stop that trails the price by average true ranges and changes sides when the close crosses it.

Starts with a falling trend, as in TradingView. TA-Lib's starts rising and leaves out the first bar's range.
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
from openbell.market.bars import Bars, Values


def _trail(rows: Iterable[tuple[float, float, float]]) -> tuple[list[float], list[bool]]:
    """The stop after each bar, and True where it is below the price. A row is the unlimited bands and the close.

    One of two bands is the stop. A band only moves towards the price, until a close crosses it.
    """
    stop, below = [], []
    upper_1, lower_1, before, rising = inf, 0.0, inf, False
    for upper, lower, close in rows:
        # The closes are compared with the bands as `float_ties` does, written out: a call takes as long as the step.
        room = TOLERANCE * close
        if lower > lower_1 or lower_1 - before > room:
            lower_1 = lower
        if upper < upper_1 or before - upper_1 > room:
            upper_1 = upper
        rising = lower_1 - close <= room if rising else close - upper_1 > room and before < inf
        before = close
        stop.append(lower_1 if rising else upper_1)
        below.append(rising)
    return stop, below


def supertrend(bars: Bars, length: int, multiplier: float) -> tuple[Values, Values]:
    """The stop, and its side: 1 below the price, −1 above it, 0 before warm-up."""
    stop, side = np.full(len(bars), np.nan), np.zeros(len(bars))
    middle, width = (bars.high + bars.low) / 2.0, multiplier * atr(bars, length)
    columns = [column[length - 1 :].tolist() for column in (middle + width, middle - width, bars.close)]
    stops, below = _trail(zip(*columns, strict=True))
    stop[length - 1 :] = np.fromiter(stops, np.float64)
    side[length - 1 :] = 2.0 * np.fromiter(below, np.float64) - 1.0
    return stop, side


def _compute(bars: Bars, length: int, multiplier: float) -> Channels:
    stop, side = supertrend(bars, length, multiplier)
    return Channels(lines=(Line("Supertrend", stop),), signals=flips(side, stop))


INDICATOR = Indicator(
    name="supertrend",
    title="Supertrend",
    description="A stop that trails the price by average true ranges and changes sides when the close crosses it",
    brief="A trailing stop that changes sides when crossed",
    overlay=True,
    compute=_compute,
    warmup=lambda length, multiplier: length,  # noqa: ARG005 - takes every parameter
    parameters=(
        Parameter("length", 10, 1, 500, aliases=("period", "atr_length", "atr_period")),
        Parameter("multiplier", 3.0, 0.1, 20.0, aliases=("mult", "factor")),
    ),
    aliases=("st",),
    inputs=("high", "low", "close"),
    signals=FLIP_SIGNALS,
)
