"""Compares what was written with what is stored, and takes lost bars and unfinished ones out of the coverage.

Bars are lost if a file is deleted or replaced by an older one, or if a database is dropped or restored from an older copy.
The audit of a read-only store records nothing: its buffer refuses every transaction.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Iterable

from openbell.market.bars import MINUTE
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series, series_of
from openbell.market.timeframes import Timeframe
from openbell.stores import coverage, newest_bars, stored_counts
from openbell.stores.buffer import Buffer
from openbell.stores.period_sources import PeriodSources
from openbell.stores.periods import period_span
from openbell.stores.port import Archive, Counted, FileProblem, Loss, MadeBars, Premature, Span

log = logging.getLogger(__name__)


class ArchiveAudit:
    """Compares what was written with what is stored. Implements `stores.port.BarAudit`."""

    def __init__(self, buffer: Buffer, sources: PeriodSources, archive: Archive, made: MadeBars | None = None) -> None:
        """`made` are the bars that the archive makes of others; None if it makes none."""
        self._buffer = buffer
        self._sources = sources
        self._archive = archive
        self._made = made

    def problems(self) -> list[FileProblem]:
        """See the port."""
        return self._buffer.problems()

    # What a wrong clock has covered

    def premature(self) -> list[Premature]:
        """See the port."""
        return [found for found in coverage.premature(self._buffer) if self._sources.fetched(found.series, found.span)]

    def mend(self) -> list[Premature]:
        """See the port."""
        found = self.premature()
        for each in found:
            with self._buffer.transaction() as db:
                self._buffer.begin_change(db, self._buffer.ensure_series(db, each.series.name))
            self._archive.undamaged(self._mend, each)
        return found

    def _mend(self, found: Premature) -> None:
        """Remove the bars that had not closed, and their coverage, in one transaction."""
        with self._buffer.transaction() as db:
            number = self._buffer.ensure_series(db, found.series.name)
            coverage.remove_premature(db, number, found)
            unfinished = max(found.span.start, coverage.minute(min(found.written, time.time())))
            # A longer bar that opened before had not closed either.
            unfinished -= found.series.timeframe.seconds - MINUTE
            # Bars that another write has covered since are final.
            gaps = coverage.gaps(self._buffer, found.series.name, Span(unfinished, found.span.end))
            spans = [span for gap in gaps for span in self._sources.fetched(found.series, gap)]
            for span in spans:
                self._buffer.delete(db, number, span)
            self._archive.drop(db, number, found.series, spans)
            self._buffer.end_change(db, number)

    # Lost bars

    def to_check(self) -> list[Series]:
        """See the port."""
        rows = self._buffer.query(
            "SELECT symbol FROM series WHERE symbol NOT LIKE '%@%' AND (EXISTS (SELECT 1 FROM months m"
            " WHERE m.series = series.id) OR EXISTS (SELECT 1 FROM stored t WHERE t.series = series.id)) ORDER BY symbol"
        )
        return [series_of(row[0]) for row in rows]

    def losses(self, series: Series) -> list[Loss]:
        """See the port. A damaged file is set aside, as by every read."""
        return self._archive.undamaged(self._losses, series)

    def _losses(self, series: Series) -> list[Loss]:
        periods = self._archive.periods(series)
        recorded = stored_counts.recorded(self._buffer, series)
        found = self._archive.tallies(series, {period: recorded.get(period) for period in periods})
        sources = self._buffer.period_sources(series)
        return [
            loss
            for period, now in sorted(found.items())
            if (loss := self._loss(series, period, recorded.get(period), now, sources.get(period)))
        ]

    def lacks_made(self) -> bool:
        """See the port."""
        return self._made is not None and self._made.are_lost()

    def mend_made(self) -> bool:
        """See the port."""
        return self._made is not None and self._made.mend()

    def mend_losses(self, series: Series) -> list[Loss]:
        """See the port."""
        return self._archive.undamaged(self._mend_losses, series)

    def _mend_losses(self, series: Series) -> list[Loss]:
        periods = self._archive.periods(series)
        recorded = stored_counts.recorded(self._buffer, series)
        found = self._archive.tallies(series, {period: recorded.get(period) for period in periods})
        changed = [
            period
            for period, now in sorted(found.items())
            if recorded.get(period) != now
            and (now.tally or period in recorded or not self._buffer.holds_all_of(series, period))
        ]
        return [loss for period in changed if (loss := self._settle(series, period))]

    def lost_for_good(self) -> list[Loss]:
        """See the port."""
        rows = self._buffer.query(
            "SELECT s.symbol, l.period, l.origin, l.feed, l.adjustment, l.start, l.end, l.written, l.found FROM losses l"
            " JOIN series s ON s.id = l.series WHERE l.origin = ? ORDER BY s.symbol, l.period",
            Origin.IMPORTED.value,
        )
        found = []
        for name, period, origin, feed, adjustment, start, end, written, left in rows:
            if coverage.gaps(self._buffer, name, span := Span(start, end)) == [span]:
                source = Source(Origin(origin), feed, adjustment)
                found.append(Loss(series_of(name), period, source, (span,), written, left))
        return found

    def lost_spans(self, series: Series, span: Span) -> list[Span]:
        """See the port."""
        rows = self._buffer.query(
            "SELECT max(l.start, ?), min(l.end, ?) FROM losses l JOIN series s ON s.id = l.series"
            " WHERE s.symbol = ? AND l.start < ? AND l.end > ? ORDER BY l.start",
            *(span.start, span.end, series.name, span.end, span.start),
        )
        return [gap for start, end in rows for gap in coverage.gaps(self._buffer, series.name, Span(start, end))]

    # One period

    def _loss(
        self, series: Series, period: str, recorded: Counted | None, now: Counted, source: Source | None
    ) -> Loss | None:
        if recorded is None:
            # A period with a source has bars. If the buffer was lost, their number was lost with it.
            if now.tally or source is None or self._buffer.holds_all_of(series, period):
                return None
            return Loss(series, period, source, (Span(*period_span(period)),), 0, 0)
        spans = stored_counts.lost_spans(series.timeframe, period, recorded.tally, now.tally)
        if not spans:
            return None
        if not now.tally:
            spans = [Span(*period_span(period))]
        return Loss(series, period, source, tuple(spans), sum(recorded.tally.values()), sum(now.tally.values()))

    def _settle(self, series: Series, period: str) -> Loss | None:
        """Record what is stored of a period, and make lost bars a gap. Compares again under the write lock."""
        with self._buffer.transaction() as db:
            return self.settle_in(db, self._buffer.ensure_series(db, series.name), series, period)

    def settle_in(self, db: sqlite3.Connection, number: int, series: Series, period: str) -> Loss | None:
        """The same inside a transaction."""
        recorded = stored_counts.get(db, number, period)
        now = self._archive.tallies(series, {period: recorded}).get(period)
        if now is None or now == recorded:
            return None
        loss = self._loss(series, period, recorded, now, self._buffer.period_source(db, number, period))
        if loss:
            log.error("%s: %s", self._archive.place_of(series, period), loss.described())
            self._uncover_lost(db, number, loss)
        # Without a loss: a file that was copied, or more bars than a killed process has recorded.
        stored_counts.put(db, number, period, now)
        return loss

    def _uncover_lost(self, db: sqlite3.Connection, number: int, loss: Loss) -> None:
        """Take lost bars out of the coverage, remove what was made of them, and record the loss."""
        series, period = loss.series, loss.period
        self._buffer.add_problem(db, self._archive.place_of(series, period), loss.described())
        parts = self._parts_of_others(series, loss.spans, period)
        for part in parts:
            coverage.uncover(db, number, part)
            if self._made is not None and series.timeframe is Timeframe.M1:
                self._made.drop(db, series, part)
        if loss.source:
            source, counts = loss.source, (loss.written, loss.found)
            db.executemany(
                "INSERT INTO losses VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (number, period, source.origin.value, source.feed, source.adjustment, part.start, part.end, *counts)
                    for part in parts
                ],
            )
        if not loss.found and not self._buffer.holds_all_of(series, period):
            self._buffer.clear_period_source(db, number, period)
        newest_bars.forget(db, number)
        self._buffer.reread(db, number)

    def _parts_of_others(self, series: Series, spans: Iterable[Span], period: str) -> list[Span]:
        """The parts of lost spans in which no other source has bars."""
        return [part for span in spans for part in self._sources.fetched(series, span, besides=period)]


class ReadOnlyAudit(ArchiveAudit):
    """Finds lost bars and, unlike that of a store, records nothing about them."""

    def __init__(
        self,
        buffer: Buffer,
        sources: PeriodSources,
        archive: Archive,
        made: MadeBars | None = None,
        *,
        kept_seconds: float = 0.0,
        damaged: Callable[[], list[FileProblem]] = list,
    ) -> None:
        """`kept_seconds` is how long the losses of a series are not looked for again; `damaged` returns more problems."""
        super().__init__(buffer, sources, archive, made)
        self._kept_seconds = kept_seconds
        self._damaged = damaged
        self._known: dict[Series, tuple[float, list[Loss]]] = {}

    def problems(self) -> list[FileProblem]:
        """See the port."""
        return [*super().problems(), *self._damaged()]

    def losses(self, series: Series) -> list[Loss]:
        """See the port."""
        at, found = self._known.get(series, (0.0, []))
        if not at or time.monotonic() - at > self._kept_seconds:
            found = super().losses(series)
            self._known[series] = time.monotonic(), found
        return found

    def lost_spans(self, series: Series, span: Span) -> list[Span]:
        """See the port: also those that no process has noticed yet."""
        return coverage.joined([*super().lost_spans(series, span), *(each for _, each in self.unmended(series, span))])

    def unmended(self, series: Series, span: Span) -> list[tuple[str, Span]]:
        """The lost parts of a span that are still recorded as covered, with their periods."""
        return [
            (loss.period, Span(max(each.start, span.start), min(each.end, span.end)))
            for loss in self.losses(series)
            for each in loss.spans
            if each.start < span.end and each.end > span.start
        ]
