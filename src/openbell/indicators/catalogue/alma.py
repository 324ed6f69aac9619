"""Arnaud Legoux moving average: Gaussian weights around a place between the oldest (0) and the latest bar (1)."""

from __future__ import annotations

from math import exp

from openbell.indicators.averages import shares, weighted_average
from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars


def _weights(length: int, offset: float, sigma: float) -> list[float]:
    centre, width = offset * (length - 1), length / sigma
    return shares([exp(-((age - centre) ** 2) / (2.0 * width * width)) for age in range(length)])


def _compute(bars: Bars, length: int, offset: float, sigma: float) -> Channels:
    return Channels(lines=(Line("ALMA", weighted_average(bars.close, _weights(length, offset, sigma))),))


INDICATOR = Indicator(
    name="alma",
    title="ALMA",
    description="Arnaud Legoux moving average of the close: Gaussian weights, centred near the latest bar",
    brief="Arnaud Legoux moving average, with Gaussian weights",
    overlay=True,
    compute=_compute,
    warmup=lambda length, offset, sigma: length,  # noqa: ARG005 - takes every parameter
    parameters=(
        Parameter("length", 9, 1, 1000),
        Parameter("offset", 0.85, 0.0, 1.0),
        Parameter("sigma", 6.0, 0.1, 100.0),
    ),
    aliases=("arnaud_legoux_moving_average",),
    settles=1,
)
