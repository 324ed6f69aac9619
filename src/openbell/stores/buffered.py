"""What every bar store with the SQLite buffer shares: small writes, provenance, coverage, marks, leases.

New bars are durable in the buffer at once. Where they go in the long run, and how they are read from there, is what the
stores differ in.
"""

from __future__ import annotations

import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence

from openbell.market.bars import Bars
from openbell.market.errors import SourceConflict, StoreError
from openbell.market.instruments import Instrument
from openbell.market.provenance import Origin, Source
from openbell.stores import leases
from openbell.stores.buffer import Buffer, minute
from openbell.stores.buffer_leases import BufferLeases
from openbell.stores.months import by_month, months_of
from openbell.stores.offered import checked
from openbell.stores.port import Lease, Mark, Premature, Problem, Span

BULK = 2000
"""Bars of one instrument in one write from which on the buffer would only be a detour."""
FIRST, LAST = -(2**62), 2**62
"""Before and after every bar."""


class BufferedStore(ABC):
    """The half of a bar store that its buffer is enough for."""

    _buffer: Buffer
    _origins: frozenset[Origin] | None
    """The only ones whose bars may be kept here; None if any may."""

    @abstractmethod
    def _owner(self, db: sqlite3.Connection, series: int, instrument: Instrument, month: str) -> Source | None:
        """Whose the bars of a month are; None if there are none."""

    # Writing

    def write(
        self,
        parts: Sequence[Bars],
        source: Source,
        *,
        covers: Span | None = None,
        lease: Lease | None = None,
        replace: bool = False,
    ) -> None:
        """See the port."""
        if self._origins is not None and source.origin not in self._origins:
            raise StoreError(f"{source.origin} bars have no place among {', '.join(sorted(self._origins))} ones")
        parts = checked(parts)
        large = [part for part in parts if len(part) >= BULK or replace]
        for part in large:
            for month, bars in by_month(part):
                self._write_month(month, bars, source, lease, replace)
        if len(large) < len(parts) or covers is not None:
            self._write_small(parts, source, covers, lease, replace)

    @abstractmethod
    def _write_month(self, month: str, bars: Bars, source: Source, lease: Lease | None, replace: bool) -> None:
        """Put many bars of one month where they stay. `replace` drops those of another source first."""

    def _write_small(
        self, parts: Sequence[Bars], source: Source, covers: Span | None, lease: Lease | None, replace: bool
    ) -> None:
        """Put small parts in the buffer, and note what all of them cover."""
        with self._buffer.transaction() as db:
            self._check_lease(lease)
            numbered = [(self._buffer.claim_series(db, part.instrument), part) for part in parts]
            fresh = [(series, part) for series, part in numbered if 0 < len(part) < BULK and not replace]
            self._claim_months(db, fresh, source)
            self._touch(db, fresh)
            self._buffer.put(db, fresh, self._buffer.next_seq(db))
            if covers:
                self._buffer.cover(db, [series for series, _ in numbered], covers)

    def _touch(self, db: sqlite3.Connection, parts: Sequence[tuple[int, Bars]]) -> None:  # noqa: B027
        """What else a small write changes, in its own transaction: nothing, unless a store says so."""

    def _claim_months(self, db: sqlite3.Connection, parts: Sequence[tuple[int, Bars]], source: Source) -> None:
        """Make sure that every month touched is this source's; a month that all share is looked up once."""
        owned: dict[str, set[int]] = {}
        for series, bars in parts:
            for month in months_of(bars):
                if month not in owned:
                    owned[month] = self._buffer.months_of(db, source, month)
                if series in owned[month]:
                    continue
                owner = self._owner(db, series, bars.instrument, month)
                if owner not in {None, source}:
                    raise conflict(bars.instrument, month, owner, source)
                self._buffer.set_month_source(db, series, month, source)

    def _changed(self, db: sqlite3.Connection, series: int) -> None:
        """Tell readers that more than the buffer's new bars has changed, and that it is done."""
        db.execute(
            "UPDATE series SET epoch = epoch + 2 - epoch % 2, version = ? WHERE id = ?",
            (self._buffer.next_seq(db), series),
        )

    def conflicts(self, bars: Bars, source: Source) -> list[str]:
        """See the port."""
        series = self._buffer.series(bars.instrument)
        held = {month: self._held(series, bars.instrument, month) for month, _ in by_month(bars)}
        return [f"{month} ({owner})" for month, owner in held.items() if owner not in (None, source)]

    def _held(self, series: int | None, instrument: Instrument, month: str) -> Source | None:
        return None if series is None else self._owner(self._buffer.db, series, instrument, month)

    # State

    def mark(self, instrument: Instrument) -> Mark:
        """See the port."""
        return self._buffer.mark(instrument)

    def changed_since(self, instrument: Instrument, mark: Mark) -> int | None:
        """See the port."""
        epoch, version, compacted_seq, compacted_from = self._buffer.state(instrument)
        if epoch != mark.epoch or epoch % 2:
            return FIRST
        if version == mark.version:
            return None
        changed = self._buffer.earliest_since(instrument, mark.version)
        if compacted_seq > mark.version:
            return compacted_from if changed is None else min(changed, compacted_from)
        return changed

    def changes(self) -> Hashable:
        """See the port."""
        return self._buffer.changes()

    def changed(self, marks: Mapping[Instrument, Mark]) -> set[Instrument]:
        """See the port: one query, however many instruments."""
        now = self._buffer.marks(marks)
        return {each for each, mark in marks.items() if now[each] != mark or mark.epoch % 2}

    def news(self, marks: Mapping[Instrument, Mark], span: Span, *, covered: bool = True) -> dict[Instrument, Bars]:
        """See the port."""
        return self._buffer.news(marks, span, covered)

    def gaps(self, instrument: Instrument, span: Span) -> list[Span]:
        """See the port."""
        return self._buffer.gaps(instrument.symbol, span)

    def premature(self) -> list[Premature]:
        """See the port."""
        return self._buffer.premature()

    def mend(self) -> list[Premature]:
        """See the port."""
        found = self.premature()
        for each in found:
            with self._buffer.transaction() as db:
                series = self._buffer.claim_series(db, each.instrument)
                # Readers read again until the change is done, whenever this process is killed.
                db.execute("UPDATE series SET epoch = epoch + 1 WHERE id = ? AND epoch % 2 = 0", (series,))
            self._mend(each)
        return found

    def _mend(self, found: Premature) -> None:
        """Drop the bars that had not closed and their coverage, all in one transaction."""
        with self._buffer.transaction() as db:
            series = self._buffer.claim_series(db, found.instrument)
            self._buffer.cut_coverage(db, series, found)
            unfinished = max(found.span.start, minute(min(found.written, time.time())))
            # Bars that another write has covered since are final.
            for span in self._buffer.gaps(found.instrument.symbol, Span(unfinished, found.span.end)):
                db.execute(
                    "DELETE FROM bars WHERE series = ? AND time >= ? AND time < ?", (series, span.start, span.end)
                )
                self._drop(db, series, found.instrument, span)
            self._changed(db, series)

    @abstractmethod
    def _drop(self, db: sqlite3.Connection, series: int, instrument: Instrument, span: Span) -> None:
        """Remove the bars of a span from their long-term place, after the transaction has removed the buffered ones."""

    def problems(self) -> list[Problem]:
        """See the port."""
        return self._buffer.problems()

    # Leases

    def acquire(self, name: str, holder: str, ttl: float) -> Lease:
        """See the port."""
        with self._buffer.transaction():
            return leases.acquire(BufferLeases(self._buffer), name, holder, ttl)

    def renew(self, lease: Lease, ttl: float) -> None:
        """See the port."""
        with self._buffer.transaction():
            leases.renew(BufferLeases(self._buffer), lease, ttl)

    def release(self, lease: Lease) -> None:
        """See the port."""
        with self._buffer.transaction():
            leases.release(BufferLeases(self._buffer), lease)

    def lease_holder(self, name: str) -> str | None:
        """See the port."""
        return leases.current_holder(BufferLeases(self._buffer), name)

    def _check_lease(self, lease: Lease | None) -> None:
        """Raise `LeaseLost` if a write names a lease that is no longer current. Called inside the write's transaction."""
        if lease:
            leases.check(BufferLeases(self._buffer), lease)

    def close(self) -> None:
        """See the port."""
        self._buffer.close()


def conflict(instrument: Instrument, month: str, owner: Source | None, source: Source) -> SourceConflict:
    """Bars of another source stand where these would go."""
    return SourceConflict(
        f"{instrument} {month} holds bars of {owner}; {source} would mix with them "
        "(openbell import --replace drops what is there)",
        symbol=instrument.symbol,
        month=month,
        stored=str(owner),
        offered=str(source),
    )
