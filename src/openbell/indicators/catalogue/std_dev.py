"""Standard deviation of the latest closes (population), times a factor."""

from __future__ import annotations

from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.sums import RunningDeviation, offset_and_deviation
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int, deviations: float) -> Channels:
    return Channels(lines=(Line("StdDev", deviations * offset_and_deviation(bars.close, length)[1]),))


class _Stream:
    def __init__(self, length: int, deviations: float) -> None:
        self._window, self._deviations = RunningDeviation(length), deviations

    def update(self, bar: Bar) -> tuple[float, ...]:
        return (self._deviations * self._window.update(bar.close)[1],)


INDICATOR = Indicator(
    name="std_dev",
    title="StdDev",
    description="Population deviation of the latest closes, times a factor",
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length, deviations: length,  # noqa: ARG005 - takes every parameter
    parameters=(Parameter("length", 5, 1, 1000), Parameter("deviations", 1.0, 0.1, 10.0)),
    aliases=("stdev", "standard_deviation"),
)
