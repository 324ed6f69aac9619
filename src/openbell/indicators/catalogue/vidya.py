"""Chande's variable index dynamic average: an exponential average whose weight shrinks with the momentum of the close.

The weight is 2 / (length + 1) times the absolute momentum oscillator, from 0 to 1: the average stands still while the price
does not move. It starts with the simple average.
"""

from __future__ import annotations

from math import isnan, nan

from openbell.indicators.catalogue.cmo import RunningCmo, cmo
from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.stepwise import stepwise
from openbell.indicators.windows import RunningMean, window_mean
from openbell.market.bars import Bars


class _Average:
    __slots__ = ("_factor", "_value")

    def __init__(self, length: int) -> None:
        self._factor = 2.0 / (length + 1)
        self._value = nan

    def update(self, close: float, momentum: float, seed: float) -> tuple[float, ...]:
        """The average after this close; NaN while the momentum or the seed is NaN."""
        if isnan(self._value):
            self._value = nan if isnan(momentum) else seed
        else:
            self._value += self._factor * (abs(momentum) / 100.0) * (close - self._value)
        return (self._value,)


def _compute(bars: Bars, length: int, cmo_length: int) -> Channels:
    close = bars.close
    (values,) = stepwise(_Average(length).update, 1, close, cmo(close, cmo_length), window_mean(close, length))
    return Channels(lines=(Line("VIDYA", values),))


class _Stream:
    def __init__(self, length: int, cmo_length: int) -> None:
        self._average = _Average(length)
        self._momentum = RunningCmo(cmo_length)
        self._seed = RunningMean(length)

    def update(self, bar: Bar) -> tuple[float, ...]:
        return self._average.update(bar.close, self._momentum.update(bar.close), self._seed.update(bar.close))


INDICATOR = Indicator(
    name="vidya",
    title="VIDYA",
    description="Variable index dynamic average: an EMA that slows down as the Chande momentum nears 0",
    overlay=True,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length, cmo_length: max(length, cmo_length + 1),
    parameters=(Parameter("length", 14, 1, 1000), Parameter("cmo_length", 9, 1, 500)),
    aliases=("variable_ema",),
    cumulative=True,  # old bars fade as slowly as the momentum is low
)
