"""A buffer in front of an archive: small writes, merged reads, coverage, versions.

New minutes are durable in the buffer at once; bars of other timeframes, which come seldom, go straight to long-term storage
unless they replace others.
Stores differ in where that is. A bar that no read would accept is refused before anything is written.
"""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from math import inf
from typing import Generic, TypeVar

import numpy as np

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.errors import BadBars, StoreError
from openbell.market.instruments import Instrument
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores import coverage, newest_bars, resampling
from openbell.stores.audit import ArchiveAudit
from openbell.stores.buffer import Buffer
from openbell.stores.leases import BufferLeases
from openbell.stores.period_sources import PeriodSources
from openbell.stores.periods import FIRST, by_period
from openbell.stores.port import Archive, Lease, MadeBars, Span, StoreLeases, Version, Versions

A = TypeVar("A", bound=Archive)
BULK = 2000
"""A write of this many minutes of one instrument skips the buffer."""


Covers = Span | Mapping[Series, Sequence[Span]] | None


class BufferVersions:
    """The states of the series of one store: the buffer knows of every write. Implements `stores.port.Versions`."""

    is_quick = True
    """A query of a local file in which readers never wait for a writer, whatever the archive is."""

    def __init__(self, buffer: Buffer) -> None:
        self._buffer = buffer

    def of(self, series: Series) -> Version:
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

    def of_store(self) -> Hashable:
        """See the port."""
        return self._buffer.changes()

    def changed(self, versions: Mapping[Series, Version]) -> set[Series]:
        """See the port: one query, however many series."""
        now = self._buffer.versions(versions)
        return {each for each, version in versions.items() if now[each] != version or version.epoch % 2}

    def new_bars(self, versions: Mapping[Series, Version], span: Span, *, covered: bool = True) -> dict[Series, Bars]:
        """See the port."""
        return self._buffer.new_bars(versions, span, covered)


class BufferedStore(ABC, Generic[A]):
    """A buffer in front of an archive. Implements `stores.port.BarStore`, but for what concerns long-term storage."""

    def __init__(
        self, buffer: Buffer, archive: A, origins: frozenset[Origin] | None, made: MadeBars | None = None
    ) -> None:
        """`origins` are those whose bars may be stored here; None for any."""
        self._buffer = buffer
        self._archive = archive
        self._origins = origins
        self._home_leases = BufferLeases(buffer)
        self.leases: StoreLeases = self._home_leases
        self.sources = PeriodSources(buffer, archive)
        self.versions: Versions = BufferVersions(buffer)
        self.audit = ArchiveAudit(buffer, self.sources, archive, made)

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
            self._archive.undamaged(self._write_small, parts, source, covers, lease, replace)

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
            self._home_leases.check(lease)
            numbered = [(self._buffer.ensure_series(db, part.series.name), part) for part in parts]
            fresh = [(number, part) for number, part in numbered if len(part) and _is_small(part) and not replace]
            placed = self.sources.claim(db, fresh, source)
            self._before_put(db, fresh)
            self._buffer.put(db, placed, self._buffer.next_seq(db))
            if isinstance(covers, Span):
                coverage.cover(db, [number for number, _ in numbered], covers)
            elif covers:
                for number, part in numbered:
                    self._cover(db, number, part.series, covers)
            if covers:
                # What is covered decides what the bars of larger timeframes are made of.
                for number, part in numbered:
                    if part.timeframe is not Timeframe.M1:
                        self._buffer.touch(db, number)
                    elif source.origin is Origin.IMPORTED and not len(part):  # a file may begin or end inside a bar
                        self._buffer.end_change(db, number)

    def _cover(self, db: sqlite3.Connection, number: int, series: Series, covers: Covers) -> None:
        """Add what a write covers of one series to its coverage."""
        for span in [covers] if isinstance(covers, Span) else covers[series] if covers else ():
            coverage.cover(db, [number], span)

    def _before_put(self, db: sqlite3.Connection, parts: Sequence[tuple[int, Bars]]) -> None:
        """Called inside a write's transaction before its bars are put into the buffer; does nothing by default."""

    # Reading

    def read(self, series: Series, start: int, end: int) -> Bars:
        """See the port."""
        return self._archive.undamaged(self._read_merged, series, start, end, None)

    def tail(self, series: Series, count: int, end: int) -> Bars:
        """See the port."""
        return self._archive.undamaged(self._read_merged, series, FIRST, end, count).tail(count)

    def resampled(self, series: Series, timeframe: Timeframe, count: int, end: int, skip: int = 0) -> Bars:
        """See the port."""
        return resampling.latest(self.tail, series, timeframe, count, end, skip)

    def _read_merged(self, series: Series, start: int, end: int, newest: int | None) -> Bars:
        """Read the buffer, then long-term storage; repeat both if bars were moved in between. Buffered bars win."""
        while True:
            before = self._buffer.state(series)
            buffered = self._buffer.get(series, start, end, newest)
            stored = self._archive.read(series, start, end, newest)
            after = self._buffer.state(series)
            if (before.epoch, before.compacted_seq) == (after.epoch, after.compacted_seq):
                return barlib.merge(*stored, buffered) if stored else buffered

    # State

    def gaps(self, series: Series, span: Span) -> list[Span]:
        """See the port."""
        return coverage.gaps(self._buffer, series.name, span)

    def newest(self, timeframe: Timeframe, end: int) -> dict[Instrument, Bars]:
        """See the port."""
        found, others = newest_bars.recorded(self._buffer, timeframe, end)
        read = {series.instrument: self.resampled(series, timeframe, 1, end) for series in others}
        return found | {instrument: latest for instrument, latest in read.items() if len(latest)}

    def timeframes(self, instrument: Instrument) -> list[Timeframe]:
        """See the port."""
        return self._buffer.timeframes(instrument)

    def close(self) -> None:
        """See the port."""
        self._buffer.close()


def _is_small(part: Bars) -> bool:
    """Returns True for bars that go to the buffer first."""
    return part.timeframe is Timeframe.M1 and len(part) < BULK


def validated(parts: Sequence[Bars]) -> list[Bars]:
    """The parts, those of the same series merged; later parts win. Raises `BadBars`.

    Reading a file with one impossible bar treats the whole file as damaged, so such a bar is refused here.
    """
    for timeframe in {part.timeframe for part in parts if len(part)}:
        _check([part for part in parts if part.timeframe is timeframe and len(part)])
    merged: dict[Series, Bars] = {}
    for part in parts:
        series = part.series
        earlier = merged.get(series)
        merged[series] = part if earlier is None else barlib.merge(earlier, part)
    return list(merged.values())


def _check(parts: Sequence[Bars]) -> None:
    """Raises `BadBars`. Checks all parts at once: a minute of 500 symbols is 500 parts of one row each."""
    ends = np.cumsum([len(part) for part in parts])
    whole = parts[0]
    if len(parts) > 1:
        columns = [np.concatenate(group) for group in zip(*(part.columns() for part in parts), strict=True)]
        whole = Bars(whole.instrument, whole.timeframe, *columns)
    falling = np.flatnonzero(np.diff(whole.time) <= 0) + 1
    falling = falling[~np.isin(falling, ends)]
    if len(falling):
        raise _bad(parts[int(np.searchsorted(ends, falling[0], side="right"))], "out of order or double")
    if wrong := barlib.damage(whole, now=inf):
        reason, mask = wrong[0]
        raise _bad(parts[int(np.searchsorted(ends, np.flatnonzero(mask)[0], side="right"))], reason)
    for part in parts if whole.timeframe is not Timeframe.M1 else ():
        starts, _ = barlib.bucket_bounds(part.instrument, part.timeframe, part.time)
        if (starts != part.time).any():
            raise _bad(part, "not at the start of its bucket")


def _bad(part: Bars, reason: str) -> BadBars:
    symbol = part.series.name
    return BadBars(f"{symbol}: a bar is {reason}; nothing was stored", symbol=symbol, reason=reason)
