"""Classic pivot points: support and resistance from high, low and close of the previous session.

The levels of a bar come from the last session that had closed when the bar began (for stocks from its regular hours, as in
the daily bar), so bars in extended hours have levels too. They are NaN until the first session of the data has closed. A
session that is only partly in the data counts with that part.
"""

from __future__ import annotations

from math import inf, isnan, nan
from typing import TypeVar

import numpy as np

from openbell.indicators.channels import Channels, Line
from openbell.indicators.day_sums import day_starts
from openbell.indicators.regular_hours import session_days
from openbell.indicators.spec import Bar, Indicator
from openbell.market.bars import Bars, Values

Price = TypeVar("Price", float, Values)

LEVELS = ("P", "R1", "R2", "R3", "S1", "S2", "S3")
_NONE = (nan,) * len(LEVELS)


def levels(high: Price, low: Price, close: Price) -> tuple[Price, ...]:
    """The levels from a session's high, low and close, in the order of `LEVELS`."""
    middle = (high + low + close) / 3.0
    height = high - low
    return (
        middle,
        2.0 * middle - low,
        middle + height,
        2.0 * middle - low + height,
        2.0 * middle - high,
        middle - height,
        2.0 * middle - high - height,
    )


def pivots(bars: Bars, regular: Bars) -> Values:
    """A row for each of `LEVELS`."""
    out = np.full((len(LEVELS), len(bars)), np.nan)
    day = session_days(bars)
    traded = np.flatnonzero((day >= 0) & ~np.isnan(regular.close))
    if not len(traded):
        return out
    begins = day_starts(day[traded])
    high = np.maximum.reduceat(regular.high[traded], begins)
    low = np.minimum.reduceat(regular.low[traded], begins)
    close = regular.close[traded[np.append(begins[1:], len(traded)) - 1]]
    # The levels of a session apply from the first bar after it to the last bar of the next session.
    runs = np.append(day_starts(day), len(bars))
    since = runs[np.searchsorted(runs, traded[begins], side="right")]
    out[:, since[0] :] = np.repeat(levels(high, low, close), np.diff(since, append=len(bars)), axis=1)
    return out


def _compute(bars: Bars, regular: Bars) -> Channels:
    return Channels(lines=tuple(Line(label, row) for label, row in zip(LEVELS, pivots(bars, regular), strict=True)))


class _Stream:
    def __init__(self) -> None:
        self._day = -1
        self._high, self._low, self._close = -inf, inf, nan
        self._levels: tuple[float, ...] = _NONE

    def update(self, bar: Bar) -> tuple[float, ...]:
        if bar.day != self._day:
            if not isnan(self._close):
                self._levels = levels(self._high, self._low, self._close)
            self._day, self._high, self._low, self._close = bar.day, -inf, inf, nan
        if bar.day >= 0 and not isnan(bar.close):
            self._high, self._low, self._close = max(bar.high, self._high), min(bar.low, self._low), bar.close
        return self._levels


INDICATOR = Indicator(
    name="pivot",
    title="Pivots",
    description=(
        "Classic pivot points: three supports and resistances from high, low and close of the last session that had closed "
        "when the bar began (prior UTC day where trading never stops, prior week on weekly bars)"
    ),
    overlay=True,
    compute=_compute,
    stream=_Stream,
    warmup=lambda: 0,  # depends on where sessions start
    aliases=("pivot_points",),
    inputs=("high", "low", "close"),
    regular=True,
    by_day=True,
)
