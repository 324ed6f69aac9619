"""Gaps: the first open of a trading day against the close of the day before, and the level that would fill the last gap.

Every daily and weekly bar has a gap. Within a day only its first bar has one, and the others have 0. For a stock the day is
the regular session: bars outside of it have no gap and fill none. A bar of an hour or more that holds the opening counts
with its own open.

`fill` is the close before the latest gap of at least `min_gap` per cent, up to the bar before the one that trades there; NaN
if no gap is open. A gap that its own bar fills is never open.
"""

from __future__ import annotations

from math import isnan, nan

from openbell.indicators.channels import Channels, Line
from openbell.indicators.regular_hours import session_days
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.stepwise import stepwise
from openbell.market.bars import Bars


class _Gaps:
    __slots__ = ("_close", "_day", "_fill", "_min", "_up")

    def __init__(self, min_gap: float) -> None:
        self._min = min_gap
        self._day = -1
        self._close = self._fill = nan
        self._up = False

    def update(self, opened: float, high: float, low: float, close: float, day: int) -> tuple[float, float]:
        """The gap of this bar, and the level that fills the latest one."""
        before = self._close
        gap = nan if isnan(before) else 0.0
        if day < 0:
            return gap, self._fill
        if day != self._day and not isnan(before):
            gap = 100.0 * ((opened - before) / before)
            if abs(gap) >= self._min:
                self._fill, self._up = before, gap > 0.0
        if low <= self._fill if self._up else high >= self._fill:
            self._fill = nan
        self._close, self._day = close, day
        return gap, self._fill


def _compute(bars: Bars, min_gap: float) -> Channels:
    columns = (bars.open, bars.high, bars.low, bars.close, session_days(bars))
    return Channels(lines=tuple(map(Line, ("gap", "fill"), stepwise(_Gaps(min_gap).update, 2, *columns))))


class _Stream:
    def __init__(self, min_gap: float) -> None:
        self._gaps = _Gaps(min_gap)

    def update(self, bar: Bar) -> tuple[float, ...]:
        return self._gaps.update(bar.open, bar.high, bar.low, bar.close, bar.day)


INDICATOR = Indicator(
    name="gap",
    title="Gap",
    description="First open of a day against the close before it, in per cent, and the level that fills the last gap",
    overlay=True,
    compute=_compute,
    stream=_Stream,
    warmup=lambda min_gap: 2,  # noqa: ARG005 - takes every parameter
    parameters=(Parameter("min_gap", 0.5, 0.01, 50.0),),
    inputs=("open", "high", "low", "close"),
    by_day=True,
    cumulative=True,  # a gap can stay open for any number of bars
    sparse=("fill",),
)
