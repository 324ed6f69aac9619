"""Which source each period has, and which bars of two sources cannot stand together.

Two sources may each hold a part of one series, but not the same bar, and not prices that are adjusted in different ways: the
series would jump where they meet.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from openbell.market.bars import Bars
from openbell.market.errors import SourceConflict
from openbell.market.provenance import Origin, Source, adjustment_of
from openbell.market.series import Series
from openbell.market.session_table import Times
from openbell.market.timeframes import Timeframe
from openbell.stores import superseded_bars
from openbell.stores.buffer import Buffer
from openbell.stores.periods import FIRST, LAST, beside, by_period, overlap, period_span, slug_of
from openbell.stores.port import Archive, Span

_BREAK = 4 * 86400
"""Seconds without bars after which bars of one source are taken as two parts."""


class PlacedBars(NamedTuple):
    """Bars of one period of the series with the id `number`."""

    number: int
    bars: Bars
    period: str


class PeriodSources:
    """The sources of the bars of one store. Implements `stores.port.Sources`."""

    def __init__(self, buffer: Buffer, archive: Archive) -> None:
        self._buffer = buffer
        self._archive = archive

    def held(self, number: int | None, series: Series, period: str) -> Source | None:
        """The source of a period's bars; None if there are none, or if only a damaged file could name it."""
        recorded = None if number is None else self._buffer.period_source(self._buffer.db, number, period)
        return recorded or self._archive.named_sources(series, period).get(period)

    def period_for(self, number: int | None, period: str, bars: Bars, source: Source, *, replace: bool = False) -> str:
        """The period to which bars of a source go.

        Minutes go to the period that has the month's name unless it holds bars of another source. With `replace` they take
        it over if they leave no other bar in it.
        """
        if bars.timeframe is not Timeframe.M1:
            return period
        own = beside(period, source)
        if self.held(number, bars.series, own) == source:  # it stays there although the other may have become free
            return own
        owner = self.held(number, bars.series, period)
        if owner in {None, source}:
            return period
        held = self.times_of(bars.series, period) if replace else bars.time[:0]
        return period if len(held) and bars.time[0] <= held[0] and held[-1] <= bars.time[-1] else own

    def claim(self, db: sqlite3.Connection, parts: Sequence[tuple[int, Bars]], source: Source) -> list[PlacedBars]:
        """Record the source of every period that minutes go to. Raises `SourceConflict`. One query for most periods."""
        owned: dict[str, set[int]] = {}
        placed = []
        for number, bars in parts:
            for month, some in by_period(bars, source):
                if month not in owned:
                    owned[month] = self._buffer.series_of_source(db, source, month)
                period = month
                if number not in owned[month]:
                    period = self.period_for(number, month, some, source)
                    self.refuse_conflicts(number, period, some, source)
                    self._buffer.set_period_source(db, number, period, source)
                placed.append(PlacedBars(number, some, period))
        return placed

    def refuse_conflicts(self, number: int, period: str, bars: Bars, source: Source) -> None:
        """Raises `SourceConflict` if bars cannot be stored in their period without replacing others."""
        for other, owner in self.in_the_way(number, period, bars, source).items():
            raise conflict(bars.series, other, owner, source)

    def in_the_way(self, number: int | None, period: str, bars: Bars, source: Source) -> dict[str, Source]:
        """The periods whose bars of another source cannot stand beside bars of a period.

        A period without bars is in nobody's way: a process that was killed while it replaced bars may have left its source.
        """
        owner = self.held(number, bars.series, period)
        own = {} if owner is None or owner == source else {period: owner}
        return own | {
            other: owner
            for other, owner in self._others(period, bars, source).items()
            if (not _alike(bars.series, owner, source) and len(self.times_of(bars.series, other)))
            or self._shares_bars(bars, other)
        }

    def to_replace(self, number: int, period: str, bars: Bars, source: Source) -> dict[str, Span]:
        """The periods and spans from which bars are removed if bars of a period replace those of other sources."""
        span = Span(int(bars.time[0]), int(bars.time[-1]) + 1)
        found = {
            other: span if _alike(bars.series, owner, source) else Span(*period_span(other))
            for other, owner in self._others(period, bars, source).items()
        }
        if self.held(number, bars.series, period) not in {None, source}:
            found[period] = Span(*period_span(period))
        return {other: each for other, each in found.items() if self._has_bars(bars.series, other, each)}

    def _others(self, period: str, bars: Bars, source: Source) -> dict[str, Source]:
        """The periods of other sources that have times of a period.

        Also minutes of the month, if the buffer is new and only the archive names their source.
        """
        series = bars.series
        found = self.recorded(series, Span(*period_span(period)))
        found = {other: owner for other, owner in found.items() if owner != source and other != period}
        month = period.partition(".")[0]
        if series.timeframe is not Timeframe.M1 or month in {period, *found}:
            return found
        owner = self.held(self._buffer.find_series(series), series, month)
        if owner is None or owner == source or month in superseded_bars.recorded(self._buffer, series):
            return found
        return {**found, month: owner}

    def conflicts(self, bars: Bars, source: Source) -> list[str]:
        """See the port."""
        number, found = self._buffer.find_series(bars.series), dict[str, Source]()
        for period, part in by_period(bars, source):
            found |= self.in_the_way(number, self.period_for(number, period, part, source), part, source)
        return [f"{period.partition('.')[0]} ({owner})" for period, owner in found.items()]

    def _shares_bars(self, bars: Bars, period: str) -> bool:
        stored = self.times_of(bars.series, period, int(bars.time[0]), int(bars.time[-1]) + 1)
        return bool(np.isin(stored, bars.time, assume_unique=True).any())

    def times_of(self, series: Series, period: str, start: int = FIRST, end: int = LAST) -> Times:
        """The open times of a period's bars in [start, end), buffered ones included."""
        first, last = period_span(period)
        buffered = self._buffer.get(series, max(start, first), min(end, last), slug=slug_of(period))
        return np.union1d(self._archive.read_period(series, period, start, end).time, buffered.time)

    def of(self, series: Series, span: Span) -> set[Source]:
        """See the port. If none is recorded, the buffer may be new: those that the archive names count then."""
        return self._recorded_of(series, span) or set(self._archive.named_sources(series, span).values())

    def _recorded_of(self, series: Series, span: Span) -> set[Source]:
        """Periods of several sources overlap: those without bars in the span do not count."""
        found = self.recorded(series, span)
        calendar = Counter("" if series.timeframe is not Timeframe.M1 else each.partition(".")[0] for each in found)
        if set(calendar.values()) <= {1}:
            return set(found.values())
        return {source for period, source in found.items() if self._has_bars(series, period, span)}

    def _has_bars(self, series: Series, period: str, span: Span) -> bool:
        """Returns True if bars of a period opened in a span."""
        return len(self.times_of(series, period, span.start, span.end)) > 0

    def recorded(self, series: Series, span: Span) -> dict[str, Source]:
        """The recorded sources of the periods that overlap a span."""
        recorded = self._buffer.period_sources(series)
        return {period: source for period, source in recorded.items() if overlap(period, span)}

    def every(self, series: Series, span: Span) -> dict[str, Source]:
        """The sources of all periods that overlap a span, also of those that are not recorded."""
        return {**self._archive.named_sources(series, span), **self.recorded(series, span)}

    def fetched(self, series: Series, span: Span, *, besides: str = "") -> list[Span]:
        """The parts of a span whose bars can be fetched again: no feed has those of imports.

        If a period is given as `besides`, the parts without bars of any other period.
        """
        periods = self.every(series, span).items()
        kept = [period for period, source in periods if source.origin is Origin.IMPORTED or besides]
        times = (self.times_of(series, period, span.start, span.end) for period in kept if period != besides)
        return without(span, (run for some in times for run in _runs(some, series.timeframe)))


def _alike(series: Series, one: Source, other: Source) -> bool:
    """Returns True if the prices of a series from two sources are adjusted in the same way."""
    return adjustment_of(series.instrument, one) == adjustment_of(series.instrument, other)


def _runs(times: Times, timeframe: Timeframe) -> Iterator[Span]:
    """From the first to the last of bars that follow each other without a break of several days or bars."""
    breaks = np.flatnonzero(np.diff(times) > max(_BREAK, 7 * timeframe.seconds)) + 1
    for some in np.split(times, breaks) if len(times) else ():
        yield Span(int(some[0]), int(some[-1]) + timeframe.seconds)


def without(span: Span, others: Iterable[Span]) -> list[Span]:
    """The parts of a span that lie in none of the others."""
    parts, at = [], span.start
    for other in sorted(others, key=lambda each: each.start):
        if other.start < span.end and other.end > at:
            parts.append(Span(at, other.start))
            at = max(at, other.end)
    parts.append(Span(at, span.end))
    return [part for part in parts if part.start < part.end]


def conflict(series: Series, period: str, owner: Source, source: Source) -> SourceConflict:
    """The error for bars of another source that stand in the way."""
    imported = source.origin is Origin.IMPORTED
    hint = "openbell import --replace drops the stored ones" if imported else "to use these, delete the stored files"
    return SourceConflict(
        f"{series} {period.partition('.')[0]} holds bars of {owner}, which cannot be mixed with bars of {source} ({hint})",
        symbol=series.instrument.symbol,
        month=period,
        stored=str(owner),
        offered=str(source),
    )
