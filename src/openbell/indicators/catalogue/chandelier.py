"""Chandelier exits: stops at a distance below the highest high (long) and above the lowest low (short)."""

from __future__ import annotations

from openbell.indicators.average_range import RunningAtr
from openbell.indicators.catalogue.atr import atr
from openbell.indicators.channels import Channels, Line
from openbell.indicators.highs_and_lows import RunningExtremes, highest, lowest
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int, multiplier: float) -> Channels:
    room = multiplier * atr(bars, length)
    return Channels(
        lines=(Line("long", highest(bars.high, length) - room), Line("short", lowest(bars.low, length) + room))
    )


class _Stream:
    def __init__(self, length: int, multiplier: float) -> None:
        self._extremes = RunningExtremes(length)
        self._range = RunningAtr(length)
        self._multiplier = multiplier

    def update(self, bar: Bar) -> tuple[float, ...]:
        top, bottom = self._extremes.update(bar.high, bar.low)
        room = self._multiplier * self._range.update(bar)
        return top - room, bottom + room


INDICATOR = Indicator(
    name="chandelier",
    title="Chandelier",
    description="Exits of long and short positions: average true ranges from the highest high and the lowest low",
    overlay=True,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length, multiplier: length,  # noqa: ARG005 - takes every parameter
    parameters=(Parameter("length", 22, 1, 500), Parameter("multiplier", 3.0, 0.1, 20.0)),
    aliases=("chandelier_exit",),
    inputs=("high", "low", "close"),
)
