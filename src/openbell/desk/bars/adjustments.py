"""Finds out that a vendor has adjusted its history again, as after a split: stored bars then have other prices.

A split changes all earlier prices of a source that adjusts for splits, a dividend those of one that adjusts for dividends.
So when bars are fetched, some that are stored beside them are fetched again and compared, also imported ones that are
adjusted for the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from openbell.market.bars import Bars, closed_at
from openbell.market.instruments import Instrument
from openbell.market.provenance import Adjustment, Origin, Source, adjustment_of
from openbell.market.series import Series
from openbell.stores.port import BarStore, FileProblem, Span

_COMPARED = 3
"""Bars that are fetched again on each side. A vendor corrects one bar now and then, but not three by the same factor."""
_NEAR = 4 * 86400
"""Seconds from a gap within which they are looked for, or ten bars if that is more."""
_CHANGED, _SAME = 5e-4, 1e-4
"""The least change of a price by an adjustment, and how much the changes of several bars may differ."""
_CHANGED_IN_FILE = 0.02
"""The least change of imported prices: those of another vendor differ a little without any adjustment."""
_CENT = 0.0051
"""How much adjusted prices may differ by rounding."""


@dataclass(frozen=True, slots=True)
class ComparedBars:
    """Stored bars of one source that are compared with those that are fetched."""

    bars: Bars
    source: Source


def to_compare(store: BarStore, series: Series, source: Source, gap: Span) -> list[ComparedBars]:
    """Returns stored bars before and after a gap that tell whether the source has adjusted its prices again.

    Empty if there are none, or if the source does not adjust.
    """
    if not is_adjusted(series, source):
        return []
    near = max(_NEAR, 10 * series.timeframe.seconds)
    before = store.tail(series, _COMPARED, gap.start)
    after = store.read(series, gap.end, gap.end + near).take(slice(0, _COMPARED))
    found = [before if len(before) and before.time[0] >= gap.start - near else before.take(slice(0, 0)), after]
    compared = []
    for bars in found:
        owners = store.sources.of(series, _span(bars)) if len(bars) == _COMPARED else set()
        if len(owners) == 1 and _is_comparable(series, owner := owners.pop(), source):
            compared.append(ComparedBars(bars, owner))
    return compared


def _is_comparable(series: Series, owner: Source, source: Source) -> bool:
    alike = adjustment_of(series.instrument, owner) == adjustment_of(series.instrument, source)
    return owner == source or (alike and owner.origin is Origin.IMPORTED)


def widened(gap: Span, stored: Sequence[ComparedBars]) -> Span:
    """A gap with the bars that are to be compared."""
    spans = [gap, *(_span(each.bars) for each in stored)]
    return Span(min(span.start for span in spans), max(span.end for span in spans))


def is_adjusted(series: Series, source: Source) -> bool:
    """Returns True if the prices of a series change when its source adjusts them: those of a stock that are not raw."""
    return adjustment_of(series.instrument, source) != Adjustment.RAW


def factor(compared: ComparedBars, fetched: Bars) -> float | None:
    """Returns by what the prices of stored bars have been multiplied; None if they have not."""
    stored = compared.bars
    least = _CHANGED_IN_FILE if compared.source.origin is Origin.IMPORTED else _CHANGED
    if not len(stored) or not np.isin(stored.time, fetched.time).all():
        return None
    now = fetched.take(np.isin(fetched.time, stored.time)).close
    middle = float(np.median(now / stored.close))
    same = np.abs(now - stored.close * middle) <= _SAME * now + _CENT
    return middle if abs(middle - 1) > least and same.all() and (np.abs(now - stored.close) > _CENT).all() else None


@dataclass(frozen=True, slots=True)
class Split:
    """A split that a vendor's prices have shown."""

    symbol: str
    found: float
    """The time at which it was found."""
    reason: str

    def note_on(self, quantity: object, opened_at: float) -> str | None:
        """Returns what to say about a position that was opened at a time; None if it was opened after the split."""
        if opened_at >= self.found:
            return None
        return f"the quantity of {quantity} may be from before a split: {self.reason}; paper positions are not adjusted"


def described(source: Source, instrument: Instrument, by: float) -> str:
    """Returns why bars are set aside whose prices were multiplied by `by`; `splits_in` reads it again."""
    return f"{source.feed} has multiplied its earlier prices of {instrument} by {by:.6g}, as after a split"


_DESCRIBED = re.compile(
    r"\S+ has multiplied its earlier prices of (?P<symbol>\S+) by (?P<by>[0-9.e+-]+), as after a split"
)


def splits_in(problems: Iterable[FileProblem]) -> dict[str, Split]:
    """Returns the latest split of each symbol among the bars that were set aside; dividends change prices less."""
    found: dict[str, Split] = {}
    for problem in problems:
        match = _DESCRIBED.match(problem.reason)
        if match and abs(float(match["by"]) - 1) > _CHANGED_IN_FILE:
            found[match["symbol"]] = Split(match["symbol"], problem.at, match[0])
    return found


def _span(bars: Bars) -> Span:
    return Span(int(bars.time[0]), closed_at(bars))
