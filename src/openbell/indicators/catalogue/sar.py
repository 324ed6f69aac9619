"""Wilder's parabolic stop and reverse.

As in TradingView, the second close decides the first side; TA-Lib takes it from the directional movement.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from openbell.indicators.channels import Channels, Line
from openbell.indicators.float_ties import TOLERANCE
from openbell.indicators.rules import FLIP_SIGNALS, flips
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars, Values


class _Pace(NamedTuple):
    """The share of the way to the extreme that the stop moves in a bar."""

    start: float
    increment: float
    maximum: float


def _parabola(
    rows: Iterable[tuple[float, float, float, float]], rising: bool, stop: float, extreme: float, rate: _Pace
) -> tuple[list[float], list[bool]]:
    """The stop after each bar, and True where it is below the price, given the first side, stop and extreme price.

    A row is a bar's high and low, then the higher high and the lower low of the two bars before it, which limit the stop.
    Uses comparisons instead of min and max, which take twice the time.
    """
    found, below = [], []
    start, increment, maximum = rate
    pace = start
    for high, low, ceiling, floor in rows:
        stop += pace * (extreme - stop)
        # Stops are compared with prices as `float_ties` does, written out: a call takes as long as the step.
        room = TOLERANCE * high
        if rising and stop - low > room:
            rising, stop, extreme, pace = False, max(high, extreme, ceiling), low, start
        elif rising:
            if high > extreme:
                extreme, pace = high, min(pace + increment, maximum)
            if stop > floor:  # noqa: PLR1730
                stop = floor
        elif high - stop > room:
            rising, stop, extreme, pace = True, min(low, extreme, floor), high, start
        else:
            if low < extreme:
                extreme, pace = low, min(pace + increment, maximum)
            if stop < ceiling:  # noqa: PLR1730
                stop = ceiling
        found.append(stop)
        below.append(rising)
    return found, below


def sar(bars: Bars, start: float, increment: float, maximum: float) -> tuple[Values, Values]:
    """The stop, and its side: 1 below the price, −1 above it, 0 before warm-up."""
    stop, side = np.full(len(bars), np.nan), np.zeros(len(bars))
    if len(bars) > 1:
        (high, low, close), (top, bottom, now) = (
            (float(bars.high[at]), float(bars.low[at]), float(bars.close[at])) for at in (0, 1)
        )
        rising = now > close
        ceiling = np.maximum(bars.high[:-1], np.concatenate((bars.high[:1], bars.high[:-2])))
        floor = np.minimum(bars.low[:-1], np.concatenate((bars.low[:1], bars.low[:-2])))
        columns = (column.tolist() for column in (bars.high[1:], bars.low[1:], ceiling, floor))
        first_stop, extreme = (low, top) if rising else (high, bottom)
        rows, pace = zip(*columns, strict=True), _Pace(start, increment, maximum)
        stops, below = _parabola(rows, rising, first_stop, extreme, pace)
        stop[1:] = np.fromiter(stops, np.float64)
        side[1:] = 2.0 * np.fromiter(below, np.float64) - 1.0
    return stop, side


def _compute(bars: Bars, start: float, increment: float, maximum: float) -> Channels:
    stop, side = sar(bars, start, increment, maximum)
    return Channels(lines=(Line("SAR", stop),), signals=flips(side, stop))


INDICATOR = Indicator(
    name="sar",
    title="SAR",
    description="Wilder's parabolic stop and reverse: nears the price ever faster and changes sides when passed",
    brief="Wilder's parabolic stop and reverse",
    overlay=True,
    compute=_compute,
    warmup=lambda start, increment, maximum: 2,  # noqa: ARG005 - takes every parameter
    parameters=(
        Parameter("start", 0.02, 0.001, 1.0, aliases=("af_start",)),
        Parameter("increment", 0.02, 0.0, 1.0, aliases=("af_step",)),
        Parameter("maximum", 0.2, 0.001, 1.0, aliases=("af_max", "max_value", "max")),
    ),
    aliases=("parabolic_sar", "psar", "parabolic", "parabolic_stop_and_reverse"),
    inputs=("high", "low", "close"),
    signals=FLIP_SIGNALS,
)
