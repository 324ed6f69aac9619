"""Close-to-close volatility: the sample deviation of the log returns per year, in per cent. A bar counts as a day."""

from __future__ import annotations

from collections import deque
from math import isnan, nan

import numpy as np

from openbell.indicators.annual import DAYS, RunningReturn, log_returns, per_year
from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.sums import offset_and_deviation, offset_and_deviation_of
from openbell.market.bars import Bars


def _factor(length: int, days: int) -> float:
    """From the population deviation of the returns to the sample deviation per year."""
    return per_year(days * length, length - 1)


def _compute(bars: Bars, length: int, days: int) -> Channels:
    values = np.full(len(bars), np.nan)
    values[1:] = _factor(length, days) * offset_and_deviation(log_returns(bars.close)[1:], length)[1]
    return Channels(lines=(Line("Volatility", values),))


class _Stream:
    def __init__(self, length: int, days: int) -> None:
        self._return, self._factor = RunningReturn(), _factor(length, days)
        self._returns = deque([nan] * length, maxlen=length)

    def update(self, bar: Bar) -> tuple[float, ...]:
        change = self._return.update(bar.close)
        self._returns.append(change)
        full = not isnan(self._returns[0])
        return (self._factor * offset_and_deviation_of(self._returns, change)[1] if full else nan,)


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
