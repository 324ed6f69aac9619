"""The part that bar stores with the SQLite buffer share: small writes, merged reads, sources, coverage, versions, leases.

New bars are durable in the buffer at once. Stores differ in where bars are kept in the long term.
"""

from __future__ import annotations

import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.errors import SourceConflict, StoreError
from openbell.market.instruments import Instrument
from openbell.market.provenance import Origin, Source
from openbell.stores import coverage, leases
from openbell.stores.buffer import Buffer
from openbell.stores.buffer_leases import BufferLeases
from openbell.stores.months import by_month, month_span, months_of
from openbell.stores.port import Lease, Premature, Problem, Span, Version
from openbell.stores.validation import validated

BULK = 2000
"""A write of this many bars of one instrument skips the buffer."""
FIRST, LAST = -(2**62), 2**62
"""Before and after every bar."""


class BufferedStore(ABC):
    """Implements the methods of `stores.port.BarStore` that need only the buffer."""

    _buffer: Buffer
    _origins: frozenset[Origin] | None
    """The origins whose bars may be stored here; None for any."""

    @abstractmethod
    def _owner(self, db: sqlite3.Connection, series: int, instrument: Instrument, month: str) -> Source | None:
        """The source of a month's bars; None if there are none."""

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
            raise StoreError(f"{source.origin} bars cannot be stored among {', '.join(sorted(self._origins))} bars")
        parts = validated(parts)
        large = [part for part in parts if len(part) >= BULK or replace]
        for part in large:
            for month, bars in by_month(part):
                self._write_month(month, bars, source, lease, replace)
        if len(large) < len(parts) or covers is not None:
            self._write_small(parts, source, covers, lease, replace)

    @abstractmethod
    def _write_month(self, month: str, bars: Bars, source: Source, lease: Lease | None, replace: bool) -> None:
        """Write many bars of one month to long-term storage. `replace` first drops bars of another source."""

    def _write_small(
        self, parts: Sequence[Bars], source: Source, covers: Span | None, lease: Lease | None, replace: bool
    ) -> None:
        """Write the small parts to the buffer, and the coverage of all parts."""
        with self._buffer.transaction() as db:
            self._check_lease(lease)
            numbered = [(self._buffer.ensure_series(db, part.instrument.symbol), part) for part in parts]
            fresh = [(series, part) for series, part in numbered if 0 < len(part) < BULK and not replace]
            self._claim_months(db, fresh, source)
            self._before_put(db, fresh)
            self._buffer.put(db, fresh, self._buffer.next_seq(db))
            if covers:
                coverage.cover(db, [series for series, _ in numbered], covers)

    def _before_put(self, db: sqlite3.Connection, parts: Sequence[tuple[int, Bars]]) -> None:  # noqa: B027
        """Called inside a write's transaction before its bars are put into the buffer; does nothing by default."""

    def _claim_months(self, db: sqlite3.Connection, parts: Sequence[tuple[int, Bars]], source: Source) -> None:
        """Record the source of every month that the parts touch. Raises `SourceConflict`. One query per month."""
        owned: dict[str, set[int]] = {}
        for series, bars in parts:
            for month in months_of(bars):
                if month not in owned:
                    owned[month] = self._buffer.series_of_source(db, source, month)
                if series in owned[month]:
                    continue
                owner = self._owner(db, series, bars.instrument, month)
                if owner not in {None, source}:
                    raise conflict(bars.instrument, month, owner, source)
                self._buffer.set_month_source(db, series, month, source)

    def conflicts(self, bars: Bars, source: Source) -> list[str]:
        """See the port."""
        series = self._buffer.find_series(bars.instrument)
        held = {month: self._held(series, bars.instrument, month) for month, _ in by_month(bars)}
        return [f"{month} ({owner})" for month, owner in held.items() if owner not in (None, source)]

    def _held(self, series: int | None, instrument: Instrument, month: str) -> Source | None:
        return None if series is None else self._owner(self._buffer.db, series, instrument, month)

    # Reading

    def _read_merged(self, instrument: Instrument, start: int, end: int, newest: int | None) -> Bars:
        """Read the buffer, then long-term storage; repeat both if bars were moved in between. Buffered bars win."""
        while True:
            before = self._buffer.state(instrument)
            buffered = self._buffer.get(instrument, start, end, newest)
            stored = self._read_stored(instrument, start, end, newest)
            after = self._buffer.state(instrument)
            if (before.epoch, before.compacted_seq) == (after.epoch, after.compacted_seq):
                return barlib.merge(*stored, buffered) if stored else buffered

    @abstractmethod
    def _read_stored(self, instrument: Instrument, start: int, end: int, newest: int | None) -> list[Bars]:
        """Bars of long-term storage that opened in [start, end); at least the latest `newest` if that is given."""

    # State

    def version(self, instrument: Instrument) -> Version:
        """See the port."""
        return self._buffer.version(instrument)

    def changed_since(self, instrument: Instrument, version: Version) -> int | None:
        """See the port."""
        state = self._buffer.state(instrument)
        if state.epoch != version.epoch or state.is_changing:
            return FIRST
        if state.version == version.seq:
            return None
        changed = self._buffer.earliest_since(instrument, version.seq)
        if state.compacted_seq > version.seq:
            return state.compacted_from if changed is None else min(changed, state.compacted_from)
        return changed

    def changes(self) -> Hashable:
        """See the port."""
        return self._buffer.changes()

    def changed(self, versions: Mapping[Instrument, Version]) -> set[Instrument]:
        """See the port: one query, however many instruments."""
        now = self._buffer.versions(versions)
        return {each for each, version in versions.items() if now[each] != version or version.epoch % 2}

    def new_bars(
        self, versions: Mapping[Instrument, Version], span: Span, *, covered: bool = True
    ) -> dict[Instrument, Bars]:
        """See the port."""
        return self._buffer.new_bars(versions, span, covered)

    def gaps(self, instrument: Instrument, span: Span) -> list[Span]:
        """See the port."""
        return coverage.gaps(self._buffer, instrument.symbol, span)

    def premature(self) -> list[Premature]:
        """See the port."""
        return [found for found in coverage.premature(self._buffer) if self._fetched(found.instrument, found.span)]

    def mend(self) -> list[Premature]:
        """See the port."""
        found = self.premature()
        for each in found:
            with self._buffer.transaction() as db:
                self._buffer.begin_change(db, self._buffer.ensure_series(db, each.instrument.symbol))
            self._mend(each)
        return found

    def _mend(self, found: Premature) -> None:
        """Remove the bars that had not closed, and their coverage, in one transaction."""
        with self._buffer.transaction() as db:
            series = self._buffer.ensure_series(db, found.instrument.symbol)
            coverage.remove_premature(db, series, found)
            unfinished = max(found.span.start, coverage.minute(min(found.written, time.time())))
            # Bars that another write has covered since are final.
            for gap in coverage.gaps(self._buffer, found.instrument.symbol, Span(unfinished, found.span.end)):
                for span in self._fetched(found.instrument, gap):
                    self._buffer.delete(db, series, span)
                    self._drop(db, series, found.instrument, span)
            self._buffer.end_change(db, series)

    def _fetched(self, instrument: Instrument, span: Span) -> list[Span]:
        """Returns the parts of a span whose bars can be fetched again: no feed has the bars of imported months."""
        parts, at = [], span.start
        imported = [
            month_span(month)
            for month, source in sorted(self._buffer.month_sources(instrument).items())
            if source.origin is Origin.IMPORTED
        ]
        for start, end in imported:
            if start < span.end and end > at:
                parts.append(Span(at, min(start, span.end)))
                at = max(at, end)
        parts.append(Span(at, span.end))
        return [part for part in parts if part.start < part.end]

    @abstractmethod
    def _drop(self, db: sqlite3.Connection, series: int, instrument: Instrument, span: Span) -> None:
        """Remove the bars of a span from long-term storage; the transaction has removed the buffered ones."""

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
    """The error for bars of another source in the same month."""
    return SourceConflict(
        f"{instrument} {month} holds bars of {owner}, which cannot be mixed with bars of {source} "
        "(openbell import --replace drops the stored ones)",
        symbol=instrument.symbol,
        month=month,
        stored=str(owner),
        offered=str(source),
    )
