"""McGinley dynamic: an average that follows falling prices faster than rising ones.

The step towards the close is divided by the length times the fourth power of close / average. The divisor is at least 1:
after a crash the average reaches the close and does not pass it. It starts with the simple average.
"""

from __future__ import annotations

from math import isnan, nan

from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.stepwise import stepwise
from openbell.indicators.windows import RunningMean, window_mean
from openbell.market.bars import Bars


class _Average:
    __slots__ = ("_length", "_value")

    def __init__(self, length: int) -> None:
        self._length = length
        self._value = nan

    def update(self, close: float, seed: float) -> tuple[float, ...]:
        """The average after this close; NaN while the seed is NaN."""
        before = self._value
        if isnan(before) or before == 0.0:
            self._value = seed
        else:
            square = (close / before) * (close / before)
            self._value = before + (close - before) / max(1.0, self._length * square * square)
        return (self._value,)


def _compute(bars: Bars, length: int) -> Channels:
    (values,) = stepwise(_Average(length).update, 1, bars.close, window_mean(bars.close, length))
    return Channels(lines=(Line("McGinley", values),))


class _Stream:
    def __init__(self, length: int) -> None:
        self._average = _Average(length)
        self._seed = RunningMean(length)

    def update(self, bar: Bar) -> tuple[float, ...]:
        return self._average.update(bar.close, self._seed.update(bar.close))


INDICATOR = Indicator(
    name="mcginley",
    title="McGinley",
    description="McGinley dynamic: an average of the close that adjusts its speed to the market",
    overlay=True,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length: length,
    parameters=(Parameter("length", 10, 1, 500),),
    aliases=("mcginley_dynamic",),
)
