"""Double tops and double bottoms, confirmed by a close beyond the neckline.

A double top is two swing highs in a row within `tolerance` per cent of each other, with a swing low between them; the lowest
one is the neckline. Swings are the extreme of `depth` bars on either side and known that many bars later. The pattern waits
for a close below the neckline. It fails with a close above both tops, or when it is more than `max_bars` bars long. A double
bottom is its mirror image. A confirmed pattern ends the other one if that waits too.

`neckline` is that of the latest pattern that waits, up to the bar that confirms it; NaN if none does.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isnan, nan

import numpy as np

from openbell.indicators.channels import Channels, Direction, Line
from openbell.indicators.float_ties import TOLERANCE
from openbell.indicators.lines import step_lines
from openbell.indicators.rules import Rule, array_signals
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import swings
from openbell.market.bars import Bars, Values

_NEVER = (inf, nan, nan)
SIGNALS = {"double_bottom": Direction.UP, "double_top": Direction.DOWN}


class _Tops:
    """Double tops; for double bottoms, negate all prices. Bars are numbered by when they confirm a swing."""

    __slots__ = ("_at", "_begun", "_limit", "_longest", "_share", "_top", "_trough", "formed", "neckline")

    def __init__(self, tolerance: float, longest: int) -> None:
        self._share, self._longest = tolerance / 100.0, longest
        self._top = self._limit = nan
        self._at = self._begun = self.formed = -1
        self._trough = inf
        self.neckline = nan

    def follow(self, at: int, close: float, top: float, trough: float) -> bool:
        """Returns True if this bar confirms a double top. `top` and `trough` are the swings that it confirms, or NaN."""
        if not isnan(top):
            # Compared as `float_ties` does, with numbers instead of arrays.
            near = self._share * abs(self._top) - abs(top - self._top) >= -TOLERANCE * abs(top)
            if near and self._trough < inf:
                self.neckline, self._limit = self._trough, max(top, self._top)
                self._begun, self.formed = self._at, at
            self._top, self._at, self._trough = top, at, inf
        elif trough < self._trough:
            self._trough = trough
        if close > self._limit or at - self._begun > self._longest:
            self.drop()
        return close < self.neckline

    def drop(self) -> None:
        """Stop waiting."""
        self.neckline, self.formed = nan, -1

    def quiet(self) -> tuple[float, float, float]:
        """The lowest and the highest close that change nothing, and the last bar of which this holds."""
        if self.formed < 0:
            return -inf, inf, inf
        return self.neckline, self._limit, self._begun + self._longest


class _Patterns:
    def __init__(self, depth: int, tolerance: float, max_bars: int) -> None:
        # A swing is confirmed `depth` bars after its bar.
        self._tops = _Tops(tolerance, max_bars - depth)
        self._bottoms = _Tops(tolerance, max_bars - depth)

    def update(self, at: int, close: float, high: float, low: float) -> tuple[float, float]:
        """Neckline and pattern at a bar that confirms a swing high and a swing low; NaN if it confirms none."""
        tops, bottoms = self._tops, self._bottoms
        found = (tops.follow(at, close, high, low), bottoms.follow(at, -close, -low, -high))
        if found == (True, True):
            found = (tops.formed >= bottoms.formed, tops.formed < bottoms.formed)
        if any(found):
            neckline = tops.neckline if found[0] else -bottoms.neckline
            tops.drop()
            bottoms.drop()
            return neckline, -1.0 if found[0] else 1.0
        neckline = tops.neckline if tops.formed >= bottoms.formed else -bottoms.neckline
        return neckline, 0.0

    def quiet(self) -> tuple[float, float, float]:
        """A close between the first two numbers, at a bar not after the third, changes nothing unless there is a swing."""
        (floor, ceiling, end), (top, bottom, other_end) = self._tops.quiet(), self._bottoms.quiet()
        return max(floor, -bottom), min(ceiling, -top), min(end, other_end)


def _changes(bars: Bars, depth: int, patterns: _Patterns) -> dict[int, tuple[float, float]]:
    """Neckline and pattern at each bar that can change them."""
    changes = {}
    highs, lows = swings(bars, depth)
    confirms = np.flatnonzero(~(np.isnan(highs) & np.isnan(lows)))
    waiting = iter(
        [*zip(*(each.tolist() for each in (confirms, highs[confirms], lows[confirms])), strict=True), _NEVER]
    )
    swing, high, low = next(waiting)
    floor, ceiling, end = -inf, inf, inf
    for at, close in enumerate(bars.close.tolist()):
        if at < swing and at <= end and floor <= close <= ceiling:
            continue
        if at == swing:
            changes[at] = patterns.update(at, close, high, low)
            swing, high, low = next(waiting)
        else:
            changes[at] = patterns.update(at, close, nan, nan)
        floor, ceiling, end = patterns.quiet()
        if changes[at][1]:  # the neckline ends with the bar that confirms its pattern
            end = at
    return changes


def _rules(_before: Sequence[Values], now: Sequence[Values]) -> Sequence[Rule]:
    """The value of a signal is the neckline."""
    neckline, pattern = now
    return (("double_bottom", pattern > 0.0, neckline), ("double_top", pattern < 0.0, neckline))


def _compute(bars: Bars, depth: int, tolerance: float, max_bars: int) -> Channels:
    changes = _changes(bars, depth, _Patterns(depth, tolerance, max_bars))
    lines = step_lines(changes, (nan, 0.0), len(bars))
    lines[1][: 2 * depth] = np.nan
    return Channels(lines=tuple(map(Line, ("neckline", "pattern"), lines)), signals=array_signals(_rules, lines))


INDICATOR = Indicator(
    name="double_pattern",
    title="Double Pattern",
    description="Double tops (-1) and double bottoms (1) at the close that passes their neckline",
    brief="Double tops (-1) and double bottoms (1), once confirmed",
    overlay=True,
    compute=_compute,
    warmup=lambda depth, **_: 2 * depth + 1,
    parameters=(
        Parameter("depth", 5, 1, 50),
        Parameter("tolerance", 2.0, 0.01, 20.0),
        Parameter("max_bars", 120, 10, 1000),
    ),
    inputs=("high", "low", "close"),
    signals=SIGNALS,
    sparse=("neckline",),
)
