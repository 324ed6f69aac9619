"""Coppock curve: the linearly weighted average of the sum of a long and a short rate of change of the close."""

from __future__ import annotations

from collections import deque
from math import isnan, nan

from openbell.indicators.catalogue.roc import roc
from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.sums import weighted_sum, weighted_sum_of
from openbell.indicators.weighted import linear_weights
from openbell.market.bars import Bars


def _compute(bars: Bars, wma_length: int, long_roc: int, short_roc: int) -> Channels:
    rates = roc(bars.close, long_roc) + roc(bars.close, short_roc)
    return Channels(lines=(Line("Coppock", weighted_sum(rates, linear_weights(wma_length))),), hlines=(ZERO,))


class _Stream:
    def __init__(self, wma_length: int, long_roc: int, short_roc: int) -> None:
        longest = max(long_roc, short_roc)
        self._closes = deque([nan] * longest, maxlen=longest)
        self._rates: deque[float] = deque(maxlen=wma_length)
        self._long, self._short = long_roc, short_roc
        self._weights = linear_weights(wma_length)

    def update(self, bar: Bar) -> tuple[float, ...]:
        close = bar.close
        before, lately = self._closes[-self._long], self._closes[-self._short]
        self._closes.append(close)
        rate = 100.0 * ((close - before) / before) + 100.0 * ((close - lately) / lately)
        if not isnan(rate):
            self._rates.append(rate)
        full = len(self._rates) == len(self._weights)
        return (weighted_sum_of(self._rates, self._weights) if full else nan,)


INDICATOR = Indicator(
    name="coppock",
    title="Coppock",
    description="Coppock curve: weighted average of the sum of a long and a short rate of change",
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=lambda wma_length, long_roc, short_roc: wma_length + max(long_roc, short_roc),
    parameters=(
        Parameter("wma_length", 10, 1, 300),
        Parameter("long_roc", 14, 1, 500, aliases=("long_roc_length",)),
        Parameter("short_roc", 11, 1, 500, aliases=("short_roc_length",)),
    ),
    aliases=("coppock_curve",),
)
