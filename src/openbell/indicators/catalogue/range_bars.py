"""Range bars: bars whose high and low are a percentage of their first price apart, built from closes.

A bar begins where the one before ended, the first one at the first close. It is complete when a close is its range above its
low (it rises) or below its high (it falls). Direction and count are 0 until the first bar is complete.
"""

from __future__ import annotations

from math import inf, log, log1p, nan

from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.stepwise import stepwise
from openbell.market.bars import Bars


class _RangeBars:
    __slots__ = ("_count", "_high", "_level", "_low", "_share", "_way")

    def __init__(self, percentage: float) -> None:
        self._share = percentage / 100.0
        self._level = self._high = self._low = nan
        self._way = self._count = 0.0

    def update(self, close: float) -> tuple[float, ...]:
        """Level, direction and count after this close."""
        if self._level != self._level:  # NaN before the first bar
            self._level = self._high = self._low = close
        height = self._share * self._level
        if close >= self._low + height > self._low:
            self._complete(1.0, self._low + height, close)
        elif close <= self._high - height < self._high:
            self._complete(-1.0, self._high - height, close)
        self._high, self._low = max(self._high, close), min(self._low, close)
        return self._level, self._way, self._count

    def _complete(self, way: float, level: float, close: float) -> None:
        """Complete the bar at a level, and the further ones that the close has passed: each starts at the last one's end."""
        step = log1p(way * self._share)
        ratio = close / level
        more = max(0.0, log(ratio) // step) if 0.0 < ratio < inf else 0.0
        self._level = self._high = self._low = level * (1.0 + way * self._share) ** more
        self._count = self._count + 1.0 + more if way == self._way else 1.0 + more
        self._way = way


def _compute(bars: Bars, percentage: float) -> Channels:
    level, way, count = stepwise(_RangeBars(percentage).update, 3, bars.close)
    return Channels(lines=(Line("level", level), Line("direction", way), Line("count", count)))


class _Stream:
    def __init__(self, percentage: float) -> None:
        self._bars = _RangeBars(percentage)

    def update(self, bar: Bar) -> tuple[float, ...]:
        return self._bars.update(bar.close)


INDICATOR = Indicator(
    name="range_bars",
    title="Range Bars",
    description="Bars with a range in per cent of the price: the last complete one's close, direction and count in a row",
    overlay=True,
    compute=_compute,
    stream=_Stream,
    warmup=lambda percentage: 1,  # noqa: ARG005 - takes every parameter
    parameters=(Parameter("percentage", 1.0, 0.05, 50.0),),
    cumulative=True,
)
