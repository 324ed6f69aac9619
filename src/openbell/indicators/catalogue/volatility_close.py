"""Close-to-close volatility: the sample deviation of the log returns per year, in per cent. A bar counts as a day."""

from __future__ import annotations

from math import isnan, nan

from openbell.indicators.annual import DAYS, RunningReturn, log_returns, per_year
from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.sums import RunningDeviation, offset_and_deviation
from openbell.market.bars import Bars


def _factor(length: int, days: int) -> float:
    """From the population deviation of the returns to the sample deviation per year."""
    return per_year(days * length, length - 1)


def _compute(bars: Bars, length: int, days: int) -> Channels:
    values = _factor(length, days) * offset_and_deviation(log_returns(bars.close), length)[1]
    return Channels(lines=(Line("Volatility", values),))


class _Stream:
    def __init__(self, length: int, days: int) -> None:
        self._return, self._factor = RunningReturn(), _factor(length, days)
        self._returns = RunningDeviation(length)

    def update(self, bar: Bar) -> tuple[float, ...]:
        change = self._return.update(bar.close)
        return (nan if isnan(change) else self._factor * self._returns.update(change)[1],)


INDICATOR = Indicator(
    name="volatility_close",
    title="Volatility C-C",
    description="Close-to-close volatility: sample deviation of the log returns in per cent a year, a bar as a day",
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length, days: length + 1,  # noqa: ARG005 - takes every parameter
    parameters=(Parameter("length", 10, 2, 1000), DAYS),
    aliases=("volatility_close_to_close",),
)
