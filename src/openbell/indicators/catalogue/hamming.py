"""Moving average with the weights of a Hamming window: 0.54 less 0.46 times a cosine, largest in the middle."""

from __future__ import annotations

from math import cos, pi

from openbell.indicators.averages import shares, weighted_average
from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars


def _weights(length: int) -> list[float]:
    return shares([0.54 - 0.46 * cos(2.0 * pi * age / max(1, length - 1)) for age in range(length)])


def _compute(bars: Bars, length: int) -> Channels:
    return Channels(lines=(Line("Hamming", weighted_average(bars.close, _weights(length))),))


INDICATOR = Indicator(
    name="hamming",
    title="Hamming",
    description="Moving average of the close with the weights of a Hamming window",
    brief="Moving average with the weights of a Hamming window",
    overlay=True,
    compute=_compute,
    warmup=lambda length: length,
    parameters=(Parameter("length", 10, 1, 1000),),
    aliases=("hamming_ma", "moving_average_hamming"),
    settles=1,
)
