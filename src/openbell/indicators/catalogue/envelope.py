"""Envelope: an average of the close, and lines at percentages above and below it."""

from __future__ import annotations

from openbell.indicators.averages import METHOD, average_by
from openbell.indicators.channels import Channels, FilledBand, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int, upper: float, lower: float, method: str) -> Channels:
    middle = average_by(bars.close, length, method)
    top, bottom = middle * (1.0 + upper / 100.0), middle * (1.0 - lower / 100.0)
    return Channels(
        lines=(Line("upper", top), Line("middle", middle), Line("lower", bottom)), fills=(FilledBand(top, bottom),)
    )


INDICATOR = Indicator(
    name="envelope",
    title="Envelope",
    description="An average of the close, and lines at percentages above and below it",
    brief="An average of the close, with lines at percentages around it",
    overlay=True,
    compute=_compute,
    warmup=lambda length, upper, lower, method: length,  # noqa: ARG005 - takes every parameter
    parameters=(
        Parameter("length", 20, 1, 500),
        Parameter("upper", 2.0, 0.01, 100.0, tradingview=10.0),
        Parameter("lower", 2.0, 0.01, 100.0, tradingview=10.0),
        METHOD,
    ),
    aliases=("env", "envelopes"),
)
