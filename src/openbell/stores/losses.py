"""The part of a bar store that compares what was written with what is stored, and takes lost bars out of the coverage.

Bars are lost if a file is deleted or replaced by an older one, or if a database is dropped or restored from an older copy.
"""

from __future__ import annotations

import logging
import sqlite3
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path

from openbell.market.provenance import Origin, Source
from openbell.market.series import Series, series_of
from openbell.stores import coverage, newest_bars, stored_counts
from openbell.stores.period_sources import PeriodSources
from openbell.stores.periods import period_span, slug_of
from openbell.stores.port import Loss, Span
from openbell.stores.stored_counts import Counted

log = logging.getLogger(__name__)


class LossChecks(PeriodSources):
    """Implements the methods of `stores.port.BarStore` that concern lost bars."""

    # What the stores differ in

    @abstractmethod
    def _tallies(self, series: Series, recorded: Mapping[str, Counted | None]) -> dict[str, Counted]:
        """What long-term storage holds of some periods; a period that is certainly unchanged may be left out."""

    def _periods_to_check(self, series: Series) -> set[str]:
        """The periods of which long-term storage may hold bars."""
        return self._buffer.periods(series) | set(stored_counts.recorded(self._buffer, series))

    def _drop_made(self, db: sqlite3.Connection, series: Series, span: Span) -> None:
        """Remove bars that were made of lost bars; nothing by default."""

    @abstractmethod
    def _place_of(self, series: Series, period: str) -> Path:
        """Where the bars of a period are or were, for messages."""

    # The port

    def to_check(self) -> list[Series]:
        """See the port."""
        rows = self._buffer.query(
            "SELECT symbol FROM series WHERE symbol NOT LIKE '%@%' AND (EXISTS (SELECT 1 FROM months m"
            " WHERE m.series = series.id) OR EXISTS (SELECT 1 FROM stored t WHERE t.series = series.id)) ORDER BY symbol"
        )
        return [series_of(row[0]) for row in rows]

    def losses(self, series: Series) -> list[Loss]:
        """See the port."""
        periods = self._periods_to_check(series)
        recorded = stored_counts.recorded(self._buffer, series)
        found = self._tallies(series, {period: recorded.get(period) for period in periods})
        sources = self._buffer.period_sources(series)
        return [
            loss
            for period, now in sorted(found.items())
            if (loss := self._loss(series, period, recorded.get(period), now, sources.get(period)))
        ]

    def lacks_made(self) -> bool:
        """See the port. False for a store that keeps no such bars."""
        return False

    def mend_made(self) -> bool:
        """See the port. A store that keeps no such bars has nothing to do."""
        return False

    def uncounted(self) -> int:
        """See the port."""
        rows = self._buffer.query(
            "SELECT s.symbol, m.month FROM months m JOIN series s ON s.id = m.series"
            " LEFT JOIN stored t ON t.series = m.series AND t.period = m.month WHERE t.series IS NULL"
        )
        return sum(1 for name, period in rows if not self._only_buffered(series_of(name), period))

    def mend_losses(self, series: Series) -> list[Loss]:
        """See the port."""
        periods = self._periods_to_check(series)
        recorded = stored_counts.recorded(self._buffer, series)
        found = self._tallies(series, {period: recorded.get(period) for period in periods})
        changed = [
            period
            for period, now in sorted(found.items())
            if recorded.get(period) != now
            and (now.tally or period in recorded or not self._only_buffered(series, period))
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
            # A period with a source has bars. An earlier version wrote them without their number.
            if now.tally or source is None or self._only_buffered(series, period):
                return None
            return Loss(series, period, source, (Span(*period_span(period)),), 0, 0)
        spans = stored_counts.lost_spans(series.timeframe, period, recorded.tally, now.tally)
        if not spans:
            return None
        if not now.tally:
            spans = [Span(*period_span(period))]
        return Loss(series, period, source, tuple(spans), sum(recorded.tally.values()), sum(now.tally.values()))

    def _only_buffered(self, series: Series, period: str) -> bool:
        return self._buffer.holds(series, *period_span(period), slug_of(period))

    def _settle(self, series: Series, period: str) -> Loss | None:
        """Record what is stored of a period, and make lost bars a gap. Compares again under the write lock."""
        with self._buffer.transaction() as db:
            return self._settle_in(db, self._buffer.ensure_series(db, series.name), series, period)

    def _settle_in(self, db: sqlite3.Connection, number: int, series: Series, period: str) -> Loss | None:
        """The same inside a transaction."""
        recorded = stored_counts.get(db, number, period)
        now = self._tallies(series, {period: recorded}).get(period)
        if now is None or now == recorded:
            return None
        loss = self._loss(series, period, recorded, now, self._buffer.period_source(db, number, period))
        if loss:
            log.error("%s: %s", self._place_of(series, period), loss.described())
            self._uncover_lost(db, number, loss)
        # Without a loss: a file that was copied, more bars than a killed process has recorded, or an older home.
        stored_counts.put(db, number, period, now)
        return loss

    def _uncover_lost(self, db: sqlite3.Connection, number: int, loss: Loss) -> None:
        """Take lost bars out of the coverage, remove what was made of them, and record the loss."""
        series, period = loss.series, loss.period
        self._buffer.add_problem(db, self._place_of(series, period), loss.described())
        parts = self._parts_of_others(series, loss.spans, period)
        for part in parts:
            coverage.uncover(db, number, part)
            self._drop_made(db, series, part)
        if loss.source:
            source, counts = loss.source, (loss.written, loss.found)
            db.executemany(
                "INSERT INTO losses VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (number, period, source.origin.value, source.feed, source.adjustment, part.start, part.end, *counts)
                    for part in parts
                ],
            )
        if not loss.found and not self._only_buffered(series, period):
            self._buffer.clear_period_source(db, number, period)
        newest_bars.forget(db, number)
        self._buffer.reread(db, number)

    def _parts_of_others(self, series: Series, spans: Iterable[Span], period: str) -> list[Span]:
        """The parts of lost spans in which no other source has bars."""
        return [part for span in spans for part in self._fetched(series, span, besides=period)]
