"""Sessions of stocks with few trades, whose imported minutes begin after the open or end before the close.

Such a session is whole if the stock has made longer pauses in the month next to that edge. This is found when bars are read
and not recorded at the import: minutes that are imported later can show that the pauses were gaps of the first file.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openbell.market.bars import MINUTE, Bars
from openbell.market.instruments import AssetClass
from openbell.market.provenance import Origin
from openbell.market.series import Series
from openbell.market.session_table import SessionTable, table_for
from openbell.stores.port import BarStore, Span, Version

_MONTH = 31 * 86400
_KEPT = 256


class QuietEdges:
    """Takes quiet edges of sessions out of the gaps of a store."""

    def __init__(self, store: BarStore) -> None:
        self._store = store
        self._pauses: dict[tuple[Series, Span], tuple[Version, int]] = {}

    def gaps(self, series: Series, span: Span) -> list[Span]:
        """Returns the gaps of a series of minutes in a span, without the quiet edges of imported sessions."""
        found = self._store.gaps(series, span)
        if series.instrument.asset_class is not AssetClass.STOCK or not found or found == [span]:
            return found
        table = table_for(span.start, span.end)
        cut = (self._without_edges(series, gap, span, table) for gap in found)
        return [gap for gap in cut if gap.start < gap.end]

    def _without_edges(self, series: Series, gap: Span, span: Span, table: SessionTable) -> Span:
        start, end = gap.start, gap.end
        before, after = table.regular(np.array([start - MINUTE, end])).tolist()
        if start > span.start and before >= 0:
            rest = int(table.close[before]) - start
            start += min(rest, end - start) if self._are_quiet(series, rest, Span(start - _MONTH, start)) else 0
        if end < span.end and after >= 0:
            rest = end - int(table.open[after])
            end -= min(rest, end - start) if self._are_quiet(series, rest, Span(end, end + _MONTH)) else 0
        return Span(start, end)

    def _are_quiet(self, series: Series, seconds: int, month: Span) -> bool:
        """Returns True if imported minutes have a pause within a session that is as long."""
        if not seconds:
            return True
        version = self._store.versions.of(series)
        known = self._pauses.get((series, month))
        if known is None or known[0] != version:
            if len(self._pauses) >= _KEPT:
                self._pauses.clear()
            known = self._pauses[series, month] = version, self._longest_pause(series, month)
        return seconds <= known[1]

    def _longest_pause(self, series: Series, month: Span) -> int:
        """Returns seconds; 0 if some of the minutes were not imported, because a feed can fill their gaps."""
        if any(source.origin is not Origin.IMPORTED for source in self._store.sources.of(series, month)):
            return 0
        bars = self._store.read(series, month.start, month.end)
        return max((longest_pause(part) for part in _covered_parts(bars, self._store.gaps(series, month))), default=0)


def longest_pause(bars: Bars) -> int:
    """Returns the longest time without a bar between two minutes of one session, in seconds."""
    if len(bars) < 2:
        return 0
    sessions = table_for(int(bars.time[0]), int(bars.time[-1])).regular(bars.time)
    same = (sessions[1:] == sessions[:-1]) & (sessions[1:] >= 0)
    return int((np.diff(bars.time)[same] - MINUTE).max(initial=0))


def _covered_parts(bars: Bars, gaps: Sequence[Span]) -> list[Bars]:
    """The bars between gaps: a gap is not a pause."""
    edges = [-(2**62), *(edge for gap in gaps for edge in (gap.start, gap.end)), 2**62]
    return [bars.between(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True)]
