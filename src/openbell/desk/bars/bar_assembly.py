"""What bars are made of: applies the rule of `market.series_plan` to the stored series and the feed's history.

Imported minutes of a stock with few trades may begin after the open of a session or end before its close. Such a session is
whole if the stock has made longer pauses in the month next to that edge. This is found when bars are read and not recorded
at the import: minutes that are imported later can show that the pauses were gaps of the first file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from openbell.desk.bars.history_fetcher import Failure, HistoryFetcher
from openbell.market import bars as barlib
from openbell.market.bars import MINUTE, Bars
from openbell.market.clock import Clock
from openbell.market.errors import FeedUnavailable, UnknownSymbol
from openbell.market.instruments import AssetClass
from openbell.market.lookback import bucket_start, lookback_start
from openbell.market.partial_bars import cut_bars, over_closed_hours
from openbell.market.provenance import Origin, adjustment_of
from openbell.market.series import Series, bases
from openbell.market.series_plan import PlanPart, base_of, buckets, parts_of, to_fetch
from openbell.market.session_table import SessionTable, table_for
from openbell.market.timeframes import Timeframe
from openbell.stores.port import BarStore, Span, Version

_DAY = 86400
_EVER = 2**40
_MONTH = 31 * 86400
_KEPT_PAUSES = 256


@dataclass(frozen=True, slots=True)
class _Counted:
    """The number of bars that a part held when its base was at `version`."""

    part: PlanPart
    version: Version
    count: int


class BarAssembly:
    """Finds, fetches and reads the series that bars of a timeframe are made of."""

    def __init__(self, store: BarStore, history: HistoryFetcher, clock: Clock, edges: QuietEdges) -> None:
        self._store = store
        self._history = history
        self._clock = clock
        self._edges = edges
        self._counted: dict[tuple[Series, Timeframe], _Counted] = {}

    async def fill_parts(self, series: Series, depth: int, end: int) -> Failure | None:
        """Fetch what `depth` bars before `end` are made of."""
        return await self.fill_span(series, lookback_start(series.instrument, series.timeframe, depth, end), end)

    async def fill_span(self, series: Series, start: int, end: int) -> Failure | None:
        """Fetch what the bars that open in [start, end) are made of."""
        try:
            natives = await self._history.natives(series.instrument)
        except (FeedUnavailable, UnknownSymbol) as error:
            return error
        for part in reversed(self._to_fetch(series, start, end)):
            if failure := await self._history.fill(series.at(part.base), Span(part.start, part.end)):
                return failure
        if self._history.known_natives(series.instrument) is not natives:  # one of them does not fit
            return await self.fill_span(series, start, end)
        return None

    def _to_fetch(self, series: Series, start: int, end: int) -> list[PlanPart]:
        natives = self._history.known_natives(series.instrument)
        return to_fetch(series, start, end, natives, self._clock.epoch())

    def missing(self, series: Series, depth: int, end: int) -> bool:
        """Returns True if the feed has bars for `depth` bars before `end` that are final and not stored. It may block."""
        start = lookback_start(series.instrument, series.timeframe, depth, end)
        for part in self._to_fetch(series, start, end):
            base = series.at(part.base)
            if self._history.gaps(base, Span(part.start, self._history.complete(base, part.end))):
                return True
        return False

    def candidates(self, series: Series) -> list[Series]:
        """The series that bars may be made of: those that are stored or native, in the order of preference."""
        if series.timeframe is Timeframe.M1:
            return [series]
        known = {
            *self._store.timeframes(series.instrument),
            *self._history.known_natives(series.instrument),
            Timeframe.M1,
        }
        return [series.at(base) for base in bases(series.instrument, series.timeframe) if base in known]

    def parts(self, series: Series, candidates: Sequence[Series], start: int, end: int) -> list[PlanPart]:
        """What the bars that open in [start, end) are made of, from what is covered now, oldest first."""
        if series.timeframe is Timeframe.M1:
            return [PlanPart(Timeframe.M1, start, end)]
        reach = self._history.reach(Series(series.instrument))
        cut = self._cut_bars(series, start, end, reach)
        if len(candidates) == 1 and reach is None:
            return _without([PlanPart(Timeframe.M1, start, end)], cut)
        covered: dict[Timeframe, list[tuple[int, int]]] = {}
        natives = self._history.known_natives(series.instrument)
        planned = base_of(series.instrument, series.timeframe, natives)
        # Months and longer wait until their last day is published: minutes are not fetched for them.
        waits = series.timeframe.months > 0 and planned not in {None, Timeframe.M1}
        believed = {planned} if waits else {planned, Timeframe.M1}
        for base in candidates:
            # At an earlier clock, a bar that the vendor had not published by then is made of what there was.
            until = self._history.complete(base, end) if base.timeframe in natives else end
            if until < end and self._has_later_imports(base, Span(until, end)):
                until = end
            if planned and base.timeframe not in believed:
                # Whether it is covered may depend on other questions; what the planned base can make must not.
                reached = self._history.reach(series.at(planned))
                until = until if reached is None else max(start, min(until, reached))
            gaps = self._edges.gaps if base.timeframe is Timeframe.M1 else self._store.gaps
            covered[base.timeframe] = _covered(gaps(base, Span(start, until)), start, until)
        for each in covered if series.timeframe.of_days else (Timeframe.M1,):
            covered[each] = over_closed_hours(series.instrument, covered[each])
        # Nothing is covered before this: the buckets of decades need not be looked at one by one.
        known = [reach or end, *(spans[0][0] for spans in covered.values() if spans)]
        first = bucket_start(series.instrument, series.timeframe, max(start, min(known)))
        parts = self._of_one_adjustment(series, parts_of(series, first, end, covered, end if waits else reach))
        if reach is None and start < first:  # minutes that others have stored are covered by nobody
            parts.insert(0, PlanPart(Timeframe.M1, start, first))
        return _without(parts, cut)

    def _cut_bars(self, series: Series, start: int, end: int, reach: int | None) -> list[tuple[int, int]]:
        """The bars in [start, end) that are not made of minutes, because only a part of their minutes is covered.

        Where the feed delivers minutes, only bars with imported ones, and those of which earlier minutes are missing: the
        last minutes of a live bar may be covered later. Bars whose minutes were lost are left out in both cases.
        """
        minutes = Series(series.instrument)
        gaps = self._edges.gaps(minutes, Span(start, end))
        if not gaps:
            return []
        covered = _covered(gaps, start, end)
        cut = [bar for bar in cut_bars(series.instrument, series.timeframe, covered) if bar[1] <= end]
        if reach is not None:
            begun = [at for at, _ in covered]
            cut = [
                bar
                for bar in cut
                if any(bar[0] < at < bar[1] for at in begun) or self._has_imports(minutes, Span(*bar))
            ]
        return sorted({*cut, *self._lost_bars(series, start, end)})

    def _lost_bars(self, series: Series, start: int, end: int) -> list[tuple[int, int]]:
        """The spans of bars in [start, end) some of whose minutes were lost."""
        lost = self._store.audit.lost_spans(Series(series.instrument), Span(start, end))
        if not lost:
            return []
        cut = cut_bars(series.instrument, series.timeframe, _covered(lost, start, end))
        touched = (bar for bar in cut if any(bar[0] < each.end and bar[1] > each.start for each in lost))
        return [*((each.start, each.end) for each in lost), *touched]

    def _has_later_imports(self, base: Series, span: Span) -> bool:
        """Returns True if bars of a span that the vendor has not published yet were imported: a file need not wait."""
        covered = _covered(self._store.gaps(base, span), span.start, span.end)
        return bool(covered) and self._has_imports(base, span)

    def _has_imports(self, series: Series, span: Span) -> bool:
        return any(source.origin is Origin.IMPORTED for source in self._store.sources.of(series, span))

    def _of_one_adjustment(self, series: Series, parts: list[PlanPart]) -> list[PlanPart]:
        """Parts without those whose prices are adjusted otherwise than those of the first base: the bars would jump."""
        used = {part.base for part in parts}
        if len(used) < 2:
            return parts
        adjusted = {base: self._adjustments(series.at(base)) for base in used}
        order = bases(series.instrument, series.timeframe)
        first = next((adjusted[base] for base in order if base in used and adjusted[base]), None)
        return parts if first is None else [part for part in parts if adjusted[part.base] <= first]

    def _adjustments(self, series: Series) -> set[str]:
        """How the stored bars of a series are adjusted."""
        sources = self._store.sources.of(series, Span(0, _EVER))
        return {adjustment_of(series.instrument, source) for source in sources}

    def bars_of(self, series: Series, parts: Sequence[PlanPart], count: int, skip: int = 0) -> Bars:
        """The newest `count` bars that parts hold, after leaving out the newest `skip`."""
        found = barlib.empty_of(series)
        for part in reversed(parts):
            wanted = count + skip - len(found)
            if wanted <= 0:
                break
            made = self._store.resampled(series.at(part.base), series.timeframe, wanted, part.end)
            found = barlib.merge(made.between(part.start, part.end), found)
        return found.take(slice(max(0, len(found) - count - skip), max(0, len(found) - skip))).copy()

    def read_span(self, series: Series, start: int, end: int) -> Bars:
        """The bars that open in [start, end) and had closed at `end`."""
        found = [barlib.empty_of(series)]
        first = bucket_start(series.instrument, series.timeframe, start)
        for part in self.parts(series, self.candidates(series), first, end):
            base = self._store.read(series.at(part.base), part.start, part.end)
            found.append(barlib.resample(base, series.timeframe, end))
        return barlib.merge(*found).between(start, end)

    def count(self, series: Series, end: int) -> int:
        """How many bars are stored that had closed at `end`."""
        return sum(self._count(series, part) for part in self.parts(series, self.candidates(series), 0, end))

    def _count(self, series: Series, part: PlanPart) -> int:
        """How many bars a part holds. Native bars are counted again only if the store has changed."""
        base = series.at(part.base)
        known = self._counted.get((series, part.base))
        if known and known.part == part and not self._store.versions.changed({base: known.version}):
            return known.count
        version = self._store.versions.of(base)
        found = self._store.count(base, series.timeframe, part.end)
        if part.start > 0:
            found -= self._store.count(base, series.timeframe, part.start)
        if part.base is not Timeframe.M1:
            self._counted[series, part.base] = _Counted(part, version, found)
        return found

    def reach(self, series: Series) -> int | None:
        """The start of the first whole bar that can be made of what the feed has; None if the feed has nothing."""
        base = base_of(series.instrument, series.timeframe, self._history.known_natives(series.instrument))
        reach = None if base is None else self._history.reach(series.at(base))
        if reach is None:
            return None
        # Two weeks hold a whole bucket of every timeframe up to a day, three nominal lengths that of a longer one.
        long = max(15 * _DAY, 3 * series.timeframe.seconds)
        starts, _ = buckets(series.instrument, series.timeframe, reach, reach + long)
        return int(starts[0]) if len(starts) else reach

    def more_to_ask(self, series: Series, before: int) -> bool:
        """Whether the feed may have bars from before a time."""
        reach = self.reach(series)
        return reach is not None and before > reach


def _without(parts: Sequence[PlanPart], cut: Sequence[tuple[int, int]]) -> list[PlanPart]:
    """Parts whose bars of minutes are without those that are cut."""
    found: list[PlanPart] = []
    for part in parts:
        at = part.start
        for start, end in cut if part.base is Timeframe.M1 else ():
            if at < end and start < part.end:
                found += [PlanPart(part.base, at, start)] if at < start else []
                at = end
        found += [PlanPart(part.base, at, part.end)] if at < part.end else []
    return found


def _covered(gaps: Sequence[Span], start: int, end: int) -> list[tuple[int, int]]:
    """The parts of [start, end) that are not gaps."""
    found, at = [], start
    for gap in gaps:
        if gap.start > at:
            found.append((at, gap.start))
        at = gap.end
    return [*found, (at, end)] if at < end else found


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
            if len(self._pauses) >= _KEPT_PAUSES:
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
