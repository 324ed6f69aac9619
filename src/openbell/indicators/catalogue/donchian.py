"""Donchian channels: the highest high, the lowest low and half way between them."""

from __future__ import annotations

from openbell.indicators.channels import Channels, FilledBand, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import highest, lowest
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int) -> Channels:
    upper, lower = highest(bars.high, length), lowest(bars.low, length)
    return Channels(
        lines=(Line("upper", upper), Line("middle", (upper + lower) / 2.0), Line("lower", lower)),
        fills=(FilledBand(upper, lower),),
    )


INDICATOR = Indicator(
    name="donchian",
    title="DC",
    description="Donchian channels: highest high, lowest low and half way between them",
    brief="Donchian channels: highest high, lowest low, middle",
    overlay=True,
    compute=_compute,
    warmup=lambda length: length,
    parameters=(Parameter("length", 20, 1, 1000, aliases=("period",)),),
    aliases=("dc", "donchian_channels"),
    inputs=("high", "low"),
)
