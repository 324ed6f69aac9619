"""Chandelier exits: stops at a distance below the highest high (long) and above the lowest low (short)."""

from __future__ import annotations

from openbell.indicators.catalogue.atr import atr
from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import highest, lowest
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int, multiplier: float) -> Channels:
    room = multiplier * atr(bars, length)
    return Channels(
        lines=(Line("long", highest(bars.high, length) - room), Line("short", lowest(bars.low, length) + room))
    )


INDICATOR = Indicator(
    name="chandelier",
    title="Chandelier",
    description="Exits of long and short positions: average true ranges from the highest high and the lowest low",
    brief="Exits at average true ranges from the extremes",
    overlay=True,
    compute=_compute,
    warmup=lambda length, multiplier: length,  # noqa: ARG005 - takes every parameter
    parameters=(Parameter("length", 22, 1, 500), Parameter("multiplier", 3.0, 0.1, 20.0)),
    aliases=("chandelier_exit",),
    inputs=("high", "low", "close"),
)
