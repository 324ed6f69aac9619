"""Fibonacci retracements of the last confirmed swing: from its end (0) back to its start (100).

Swings are highs and lows that are the extreme of `depth` bars on either side, known that many bars later. They alternate: a
more extreme one of the same kind replaces the end, a less extreme one is ignored. The lines are NaN until there are two.
"""

from __future__ import annotations

from math import isnan, nan

import numpy as np

from openbell.indicators.channels import Channels, Line
from openbell.indicators.lines import step_lines
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import swings
from openbell.market.bars import Bars

RATIOS = (0.236, 0.382, 0.5, 0.618, 0.786)
LINES = ("level_0", "level_23_6", "level_38_2", "level_50", "level_61_8", "level_78_6", "level_100", "direction")


class _Leg:
    """The last two alternating swings."""

    __slots__ = ("_end", "_start", "_values", "_way")

    def __init__(self) -> None:
        self._start = self._end = nan
        self._way = 0.0
        self._values: tuple[float, ...] = (nan,) * len(LINES)

    def update(self, high: float, low: float) -> tuple[float, ...]:
        """The values of `LINES` after a bar that confirms a swing high and a swing low; NaN if it confirms none."""
        if not isnan(high):
            self._take(high, 1.0)
        if not isnan(low):
            self._take(low, -1.0)
        return self._values

    def _take(self, price: float, way: float) -> None:
        if (price - self._end) * way <= 0.0:
            return
        if way != self._way:
            self._start, self._way = self._end, way
        self._end = price
        if not isnan(self._start):
            height = self._start - price
            self._values = (price, *[price + ratio * height for ratio in RATIOS], self._start, way)


def _compute(bars: Bars, depth: int) -> Channels:
    high, low = swings(bars, depth)
    # The lines change only at bars that confirm a swing.
    changes = np.flatnonzero(~(np.isnan(high) & np.isnan(low)))
    states = map(_Leg().update, high[changes].tolist(), low[changes].tolist())
    lines = step_lines(dict(zip(changes.tolist(), states, strict=True)), (nan,) * len(LINES), len(bars))
    return Channels(lines=tuple(map(Line, LINES, lines)))


INDICATOR = Indicator(
    name="fibonacci",
    title="Fibonacci",
    description="Fibonacci retracements of the last confirmed swing, and its direction",
    brief="Fibonacci retracements of the last confirmed swing",
    overlay=True,
    compute=_compute,
    warmup=lambda depth: 2 * depth + 1,
    parameters=(Parameter("depth", 10, 1, 200),),
    aliases=("fib", "fib_retracement"),
    inputs=("high", "low"),
    sparse=LINES,
)
