"""Range bars: bars whose high and low are a percentage of their first price apart, built from closes.

A bar begins where the one before ended, the first one at the first close. It is complete when a close is its range above its
low (it rises) or below its high (it falls). Direction and count are 0 until the first bar is complete.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, isnan, log, log1p, nan

from openbell.indicators.channels import Channels, Line
from openbell.indicators.held import held
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.ties import TOLERANCE
from openbell.market.bars import Bars


class _RangeBars:
    """Level, direction and count of the complete bars."""

    __slots__ = ("_high", "_low", "_share", "state")

    def __init__(self, percentage: float) -> None:
        self._share = percentage / 100.0
        self._high = self._low = nan
        self.state = (nan, 0.0, 0.0)

    def follow(self, closes: Iterable[float]) -> dict[int, tuple[float, float, float]]:
        """The state after each close that changes it, by its number among these closes."""
        changes = {}
        high, low = self._high, self._low
        for at, close in enumerate(closes):
            if low <= close <= high:
                continue
            level, way, count = self.state
            if isnan(level):
                level = high = low = close
                self.state = changes[at] = level, way, count
            height = self._share * level
            # Compared as `ties` does, written out: calls would take longer than the step.
            room, top, bottom = TOLERANCE * close, low + height, high - height
            if close - top >= -room and top > low:
                high = low = self._complete(1.0, top, close)
                changes[at] = self.state
            elif bottom - close >= -room and bottom < high:
                high = low = self._complete(-1.0, bottom, close)
                changes[at] = self.state
            if close > high:
                high = close
            elif close < low:
                low = close
        self._high, self._low = high, low
        return changes

    def _complete(self, way: float, level: float, close: float) -> float:
        """Complete the bar at a level, and the further ones that the close has passed: each starts at the last one's end.

        Returns the end of the last one.
        """
        _, way_before, count = self.state
        step = log1p(way * self._share)
        ratio = close / level
        more = max(0.0, (log(ratio) + way * TOLERANCE) // step) if 0.0 < ratio < inf else 0.0
        level *= (1.0 + way * self._share) ** more
        self.state = level, way, count + 1.0 + more if way == way_before else 1.0 + more
        return level


def _compute(bars: Bars, percentage: float) -> Channels:
    changes = _RangeBars(percentage).follow(bars.close.tolist())
    lines = held(changes, (nan, nan, nan), len(bars))
    return Channels(lines=tuple(map(Line, ("level", "direction", "count"), lines)))


class _Stream:
    def __init__(self, percentage: float) -> None:
        self._bars = _RangeBars(percentage)

    def update(self, bar: Bar) -> tuple[float, ...]:
        self._bars.follow((bar.close,))
        return self._bars.state


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
