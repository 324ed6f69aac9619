"""The part that bar stores with the SQLite buffer share: small writes, merged reads, sources, coverage, versions, leases.

New minutes are durable in the buffer at once; bars of other timeframes, which come seldom, go straight to long-term storage
unless they replace others.
Stores differ in where that is.
"""

from __future__ import annotations

import sqlite3
import time
from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence

from openbell.market import bars as barlib
from openbell.market.bars import MINUTE, Bars
from openbell.market.errors import StoreError
from openbell.market.instruments import Instrument
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores import coverage, leases, newest_bars
from openbell.stores.buffer import Buffer
from openbell.stores.buffer_leases import BufferLeases
from openbell.stores.losses import LossChecks
from openbell.stores.periods import FIRST, by_period
from openbell.stores.port import Lease, Premature, Problem, Span, Version
from openbell.stores.validation import validated

BULK = 2000
"""A write of this many minutes of one instrument skips the buffer."""


Covers = Span | Mapping[Series, Span] | None


class BufferedStore(LossChecks):
    """Implements the methods of `stores.port.BarStore` that need only the buffer."""

    _buffer: Buffer
    _origins: frozenset[Origin] | None
    """The origins whose bars may be stored here; None for any."""

    # Writing

    def write(
        self,
        parts: Sequence[Bars],
        source: Source,
        *,
        covers: Covers = None,
        lease: Lease | None = None,
        replace: bool = False,
    ) -> None:
        """See the port."""
        if self._origins is not None and source.origin not in self._origins:
            raise StoreError(f"{source.origin} bars cannot be stored among {', '.join(sorted(self._origins))} bars")
        parts = validated(parts)
        large = [part for part in parts if not _is_small(part) or replace]
        pieces = [piece for part in large for piece in by_period(part, source)]
        self._write_periods(pieces, source, covers, lease, replace)
        if len(large) < len(parts) or covers is not None:
            self._write_small(parts, source, covers, lease, replace)

    @abstractmethod
    def _write_periods(
        self, pieces: Sequence[tuple[str, Bars]], source: Source, covers: Covers, lease: Lease | None, replace: bool
    ) -> None:
        """Write bars to long-term storage, each piece of one period. `replace` first drops bars of another source.

        `covers` need not be recorded: `_write_small` does that afterwards.
        """

    def _write_small(
        self, parts: Sequence[Bars], source: Source, covers: Covers, lease: Lease | None, replace: bool
    ) -> None:
        """Write the small parts to the buffer, and the coverage of all parts."""
        with self._buffer.transaction() as db:
            self._check_lease(lease)
            numbered = [(self._buffer.ensure_series(db, part.series.name), part) for part in parts]
            fresh = [(number, part) for number, part in numbered if len(part) and _is_small(part) and not replace]
            placed = self._claim_periods(db, fresh, source)
            self._before_put(db, fresh)
            self._buffer.put(db, placed, self._buffer.next_seq(db))
            if isinstance(covers, Span):
                coverage.cover(db, [number for number, _ in numbered], covers)
            elif covers:
                for number, part in numbered:
                    coverage.cover(db, [number], covers[part.series])
            if covers:
                # What is covered decides what the bars of larger timeframes are made of.
                for number, part in numbered:
                    if part.timeframe is not Timeframe.M1:
                        self._buffer.touch(db, number)
                    elif source.origin is Origin.IMPORTED and not len(part):  # a file may begin or end inside a bar
                        self._buffer.end_change(db, number)

    def _before_put(self, db: sqlite3.Connection, parts: Sequence[tuple[int, Bars]]) -> None:
        """Called inside a write's transaction before its bars are put into the buffer; does nothing by default."""

    # Reading

    def _read_merged(self, series: Series, start: int, end: int, newest: int | None) -> Bars:
        """Read the buffer, then long-term storage; repeat both if bars were moved in between. Buffered bars win."""
        while True:
            before = self._buffer.state(series)
            buffered = self._buffer.get(series, start, end, newest)
            stored = self._read_stored(series, start, end, newest)
            after = self._buffer.state(series)
            if (before.epoch, before.compacted_seq) == (after.epoch, after.compacted_seq):
                return barlib.merge(*stored, buffered) if stored else buffered

    @abstractmethod
    def _read_stored(self, series: Series, start: int, end: int, newest: int | None) -> list[Bars]:
        """Bars of long-term storage that opened in [start, end), oldest first; at least the latest `newest` if given."""

    # State

    def version(self, series: Series) -> Version:
        """See the port."""
        return self._buffer.version(series)

    def changed_since(self, series: Series, version: Version) -> int | None:
        """See the port."""
        state = self._buffer.state(series)
        if state.epoch != version.epoch or state.is_changing:
            return FIRST
        if state.version == version.seq:
            return None
        changed = self._buffer.earliest_since(series, version.seq)
        if state.compacted_seq > version.seq:
            return state.compacted_from if changed is None else min(changed, state.compacted_from)
        return changed

    def changes(self) -> Hashable:
        """See the port."""
        return self._buffer.changes()

    def changed(self, versions: Mapping[Series, Version]) -> set[Series]:
        """See the port: one query, however many series."""
        now = self._buffer.versions(versions)
        return {each for each, version in versions.items() if now[each] != version or version.epoch % 2}

    def new_bars(self, versions: Mapping[Series, Version], span: Span, *, covered: bool = True) -> dict[Series, Bars]:
        """See the port."""
        return self._buffer.new_bars(versions, span, covered)

    def gaps(self, series: Series, span: Span) -> list[Span]:
        """See the port."""
        return coverage.gaps(self._buffer, series.name, span)

    def premature(self) -> list[Premature]:
        """See the port."""
        return [found for found in coverage.premature(self._buffer) if self._fetched(found.series, found.span)]

    def mend(self) -> list[Premature]:
        """See the port."""
        found = self.premature()
        for each in found:
            with self._buffer.transaction() as db:
                self._buffer.begin_change(db, self._buffer.ensure_series(db, each.series.name))
            self._mend(each)
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
            for gap in coverage.gaps(self._buffer, found.series.name, Span(unfinished, found.span.end)):
                for span in self._fetched(found.series, gap):
                    self._buffer.delete(db, number, span)
                    self._drop(db, number, found.series, span)
            self._buffer.end_change(db, number)

    @abstractmethod
    def _drop(self, db: sqlite3.Connection, number: int, series: Series, span: Span) -> None:
        """Remove the bars of a span from long-term storage; the transaction has removed the buffered ones."""

    def newest(self, timeframe: Timeframe, end: int) -> dict[Instrument, Bars]:
        """See the port."""
        found, others = newest_bars.recorded(self._buffer, timeframe, end)
        read = {series.instrument: self.resampled(series, timeframe, 1, end) for series in others}
        return found | {instrument: latest for instrument, latest in read.items() if len(latest)}

    @abstractmethod
    def resampled(self, series: Series, timeframe: Timeframe, count: int, end: int, skip: int = 0) -> Bars:
        """See the port."""

    def timeframes(self, instrument: Instrument) -> list[Timeframe]:
        """See the port."""
        return self._buffer.timeframes(instrument)

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


def _is_small(part: Bars) -> bool:
    """Returns True for bars that go to the buffer first."""
    return part.timeframe is Timeframe.M1 and len(part) < BULK
