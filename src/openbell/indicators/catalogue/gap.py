"""Gaps: the first open of a trading day against the close of the day before, and the level that would fill the last gap.

Every daily and weekly bar has a gap. Within a day only its first bar has one, and the others have 0. For a stock the day is
the regular session: bars outside of it have no gap and fill none. A bar of an hour or more that holds the opening counts
with its own open.

`fill` is the close before the latest gap of at least `min_gap` per cent, up to the bar before the one that trades there; NaN
if no gap is open. A gap that its own bar fills is never open.
"""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import Channels, Line
from openbell.indicators.float_ties import at_least
from openbell.indicators.regular_hours import session_days
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars


def _compute(bars: Bars, min_gap: float) -> Channels:
    """A gap can only begin with a day, and its level only change there or where a bar trades at it."""
    lines = np.full((2, len(bars)), np.nan)
    day = session_days(bars)
    inside = np.flatnonzero(day >= 0)
    begins = inside[1:][np.diff(day[inside]) != 0]
    before = bars.close[inside[np.searchsorted(inside, begins) - 1]]
    lines[0, int(inside[0]) + 1 if len(inside) else len(bars) :] = 0.0
    lines[0, begins] = 100.0 * ((bars.open[begins] - before) / before)
    wide = np.flatnonzero(at_least(np.abs(bars.open[begins] - before), min_gap / 100.0 * before, before))
    ends = np.append(begins[wide], len(bars))
    for at, end, level in zip(ends[:-1].tolist(), ends[1:].tolist(), before[wide].tolist(), strict=True):
        part = slice(at, end)
        touched = bars.low[part] <= level if lines[0, at] > 0.0 else bars.high[part] >= level
        filled = touched & (day[part] >= 0)
        lines[1, at : at + int(filled.argmax()) if filled.any() else end] = level
    return Channels(lines=tuple(map(Line, ("gap", "fill"), lines)))


INDICATOR = Indicator(
    name="gap",
    title="Gap",
    description="First open of a day against the close before it, in per cent, and the level that fills the last gap",
    brief="First open of a day against the close before, in per cent",
    overlay=True,
    compute=_compute,
    warmup=lambda min_gap: 2,  # noqa: ARG005 - takes every parameter
    parameters=(Parameter("min_gap", 0.5, 0.01, 50.0),),
    inputs=("open", "high", "low", "close"),
    by_day=True,
    cumulative=True,  # a gap can stay open for any number of bars
    sparse=("fill",),
)
