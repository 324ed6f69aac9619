"""The embedded bar store: Parquet files, one for each period of a series, behind a SQLite buffer.

Small writes of minutes go to the buffer and are moved to the files later (`compact`); others go straight to the files. A
file is changed only while the buffer's write lock is held, and a bar leaves the buffer in the transaction in which
its file was replaced. So a reader that reads the buffer first and the files second misses no bar.
"""

from __future__ import annotations

import logging
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ParamSpec, TypeVar

import numpy as np

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.errors import CorruptFile, StoreError
from openbell.market.instruments import Instrument
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores import bar_files, coverage, newest_bars, removals, resampling
from openbell.stores.bar_files import BarFile
from openbell.stores.buffer import Buffer
from openbell.stores.buffered import Covers, conflict
from openbell.stores.parquet_files import FileStore
from openbell.stores.periods import FIRST, LAST, month_of, period_span
from openbell.stores.port import Lease, Premature, Span

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

EVER = Span(FIRST, LAST)
Piece = tuple[BarFile, Bars]
_BATCH = 64
"""How many files of native series are written in one transaction, or as many as one series has."""


class ParquetStore(FileStore):
    """Implements `stores.port.BarStore` in one folder (`data/` or `simulated/data/`)."""

    name = "parquet"

    def __init__(self, root: Path, origins: frozenset[Origin] | None = None) -> None:
        """`origins` are those whose bars this folder may hold, None for any; a file of another origin is set aside."""
        self.root = root
        self._origins = origins
        try:
            root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot use {root}: {error}") from error
        self._buffer = Buffer(root / "buffer.sqlite", origins)
        self._counts: dict[tuple[Path, Timeframe], tuple[object, int]] = {}

    # Writing

    def _write_periods(
        self, pieces: Sequence[tuple[str, Bars]], source: Source, covers: Covers, lease: Lease | None, replace: bool
    ) -> None:
        files = [(self._file(bars.series, period), bars) for period, bars in pieces]
        for some in _batches(files):
            self._retry_without_damage(self._put, some, source, covers, lease, replace)
        self._retry_without_damage(self._remove_replaced)

    def _write_small(
        self, parts: Sequence[Bars], source: Source, covers: Covers, lease: Lease | None, replace: bool
    ) -> None:
        self._retry_without_damage(super()._write_small, parts, source, covers, lease, replace)

    def _owner(self, db: sqlite3.Connection, number: int, series: Series, period: str) -> Source | None:
        """The source in the buffer or, if none is recorded there, in the file."""
        recorded = self._buffer.period_source(db, number, period)
        return recorded or bar_files.source_of(self._file(series, period))

    def _put(self, pieces: Sequence[Piece], source: Source, covers: Covers, lease: Lease | None, replace: bool) -> None:
        """Merge bars into the files of their periods. Native series are covered in the same transaction.

        Files and buffer cannot change at the same instant, so the change is announced first: if the process is killed in
        between, readers read everything again.
        """
        while pieces:
            for file, _ in pieces if replace else ():
                self._compact_period(file.series, file.period, LAST)
            with self._buffer.transaction() as db:
                self._check_lease(lease)
                for file, bars in pieces:
                    self._announce(db, file, bars, source, replace)
            with self._buffer.transaction() as db:
                self._check_lease(lease)
                announced = {file.series for file, _ in pieces if self._buffer.state(file.series).is_changing}
                merged = [
                    file.series in announced and self._merge_period(db, file, bars, source, replace)
                    for file, bars in pieces
                ]
                bar_files.sync_folders([file for file, _ in pieces])
                left = [piece for piece, done in zip(pieces, merged, strict=True) if not done]
                for series in {file.series for file, _ in pieces} - {file.series for file, _ in left}:
                    number = self._buffer.ensure_series(db, series.name)
                    self._buffer.end_change(db, number)
                    if series.timeframe is not Timeframe.M1:
                        if covers:
                            coverage.cover(db, [number], covers if isinstance(covers, Span) else covers[series])
                        self._note_newest(db, number, series, [bars for file, bars in pieces if file.series == series])
            pieces = left

    def _note_newest(self, db: sqlite3.Connection, number: int, series: Series, written: Sequence[Bars]) -> None:
        """Record the latest bar of a native series after it was written."""
        last = max(written, key=lambda bars: int(bars.time[-1]))
        if not newest_bars.record(db, number, last):
            latest = barlib.merge(*self._read_stored(series, FIRST, LAST, 1)) if self._periods(series) else last
            newest_bars.set_latest(db, number, latest if len(latest) else last)

    def _announce(self, db: sqlite3.Connection, file: BarFile, bars: Bars, source: Source, replace: bool) -> None:
        """Make readers read again until the change is done; clear the source of a period that is to be replaced.

        From then on the source of the period is that of the file: the old one until the new file is in place.
        """
        start, end = period_span(file.period)
        number = self._buffer.ensure_series(db, file.series.name)
        owner = self._owner(db, number, file.series, file.period)
        if owner not in {None, source}:
            if not replace:
                raise conflict(file.series, file.period, owner, source)
            if not self._buffer.holds(file.series, start, end):
                self._buffer.clear_period_source(db, number, file.period)
                coverage.uncover(db, number, Span(start, end))
        for other, holder in {} if replace else self._conflicting(file.period, bars, source).items():
            raise conflict(file.series, other, holder, source)
        self._buffer.begin_change(db, number)

    def _merge_period(self, db: sqlite3.Connection, file: BarFile, bars: Bars, source: Source, replace: bool) -> bool:
        """Write the new file and remove its minutes from the buffer. Returns False if another write came in between."""
        number = self._buffer.ensure_series(db, file.series.name)
        owner = self._owner(db, number, file.series, file.period)
        cleared = replace and self._buffer.period_source(db, number, file.period) is None
        if owner not in {None, source} and not cleared:
            return False
        stored = barlib.empty_of(file.series)
        if owner == source:
            stored = removals.without(self._read_file(file), self._removed(file.series).get(file.period, ()))
        for other, holder in self._conflicting(file.period, bars, source).items():
            span = Span(int(bars.time[0]), int(bars.time[-1]) + 1)
            span = span if holder.adjustment == source.adjustment else EVER
            self._replace(db, number, self._file(file.series, other), span)
            coverage.uncover(db, number, span)
        bar_files.write(file, barlib.merge(stored, bars), source, sync=False)
        removals.clear(db, number, file.period)
        self._buffer.set_period_source(db, number, file.period, source)
        if self._buffer.holds(file.series, int(bars.time[0]), int(bars.time[-1]) + 1):
            self._buffer.delete_times(db, number, bars.time.tolist())
        return True

    def _replace(self, db: sqlite3.Connection, number: int, file: BarFile, span: Span) -> None:
        """Let the bars of a span of one file no longer count, because bars of another source replace them."""
        newest_bars.forget(db, number)
        removals.add(db, number, file.period, span)
        if not len(self._read_period(file.series, file.period, FIRST, LAST)):
            self._buffer.clear_period_source(db, number, file.period)

    def _remove_replaced(self) -> None:
        """Remove bars that no longer count from their files, also those of a write that was killed."""
        for series, period in removals.pending(self._buffer):
            with self._buffer.transaction() as db:
                number = self._buffer.ensure_series(db, series.name)
                file, spans = self._file(series, period), self._removed(series).get(period, [])
                self._keep(file, removals.without(self._read_file(file), spans))
                removals.clear(db, number, period)

    def compact(self, before: int) -> int:
        """See the port."""
        with self._buffer.transaction():
            bar_files.remove_unfinished(self.root)
        self._retry_without_damage(self._remove_replaced)
        return sum(self._compact(series, before) for series in self._buffer.buffered())

    def _compact(self, series: Series, before: int) -> int:
        waiting = self._buffer.get(series, FIRST, before)
        periods = {month_of(day * 86400) for day in np.unique(waiting.time // 86400).tolist()}
        return sum(
            self._retry_without_damage(self._compact_period, series, period, before) for period in sorted(periods)
        )

    def _compact_period(self, series: Series, period: str, before: int) -> int:
        start, end = period_span(period)
        with self._buffer.transaction() as db:
            number = self._buffer.ensure_series(db, series.name)
            waiting = self._buffer.get(series, start, min(end, before))
            source = self._buffer.period_source(db, number, period)
            if not len(waiting) or source is None:
                return 0
            file = self._file(series, period)
            bar_files.write(file, barlib.merge(self._read_file(file), waiting), source)
            self._buffer.delete(db, number, Span(start, min(end, before)))
            self._buffer.end_compaction(db, number, int(waiting.time[0]))
        return len(waiting)

    def _mend(self, found: Premature) -> None:
        self._retry_without_damage(super()._mend, found)

    def _drop(self, db: sqlite3.Connection, number: int, series: Series, span: Span) -> None:
        for period in {*bar_files.existing(self.root, series), *self._buffer.periods(series)}:
            self._drop_period(db, number, self._file(series, period), span)

    def _drop_period(self, db: sqlite3.Connection, number: int, file: BarFile, span: Span) -> None:
        """Remove the bars of a span from one file, or the file if no other bars are in it."""
        start, end = period_span(file.period)
        if end <= span.start or start >= span.end:
            return
        newest_bars.forget(db, number)
        kept = removals.without(self._read_file(file), [span])
        self._keep(file, kept)
        if not len(kept) and not self._buffer.holds(file.series, start, end):
            self._buffer.clear_period_source(db, number, file.period)

    # Reading

    def read(self, series: Series, start: int, end: int) -> Bars:
        """See the port."""
        return self._retry_without_damage(self._read_merged, series, start, end, None)

    def tail(self, series: Series, count: int, end: int) -> Bars:
        """See the port."""
        return self._retry_without_damage(self._read_merged, series, FIRST, end, count).tail(count)

    def resampled(self, series: Series, timeframe: Timeframe, count: int, end: int, skip: int = 0) -> Bars:
        """See the port."""
        return resampling.latest(self.tail, series, timeframe, count, end, skip)

    def count(self, series: Series, timeframe: Timeframe, end: int) -> int:
        """See the port. Only weekly bars cross the end of a period; for the others each period's count is cached."""
        if timeframe is Timeframe.W1 or series.timeframe is not Timeframe.M1:
            return barlib.count(series.instrument, timeframe, self.read(series, FIRST, end).time, end)
        waiting = self._buffer.get(series, FIRST, end)
        fresh = {month_of(day * 86400) for day in np.unique(waiting.time // 86400).tolist()}
        periods = sorted(fresh | set(bar_files.existing(self.root, series)))
        return sum(self._count(series, timeframe, period, end, period in fresh) for period in periods)

    def _count(self, series: Series, timeframe: Timeframe, period: str, end: int, fresh: bool) -> int:
        """How many bars of a period had closed; `fresh` if some of its minutes are still in the buffer."""
        start, stop = period_span(period)
        if start >= end:
            return 0
        file, until = self._file(series, period), min(stop, end)
        state = (until, bar_files.version(file), self._buffer.state(series) if fresh else None)
        known = self._counts.get((file.path, timeframe))
        if known and known[0] == state:
            return known[1]
        times = self.read(series, start, until).time if fresh else self._retry_without_damage(self._times, file)
        found = barlib.count(series.instrument, timeframe, times, until)
        self._counts[file.path, timeframe] = state, found
        return found

    def _read_stored(self, series: Series, start: int, end: int, newest: int | None) -> list[Bars]:
        if series.timeframe is not Timeframe.M1:  # periods of two sources may overlap
            removed = self._removed(series)
            files = (self._file(series, period) for period in self._periods(series))
            spans = ((file, period_span(file.period)) for file in files)
            return [
                self._read_native(file, removed, start, end, newest) for file, (a, b) in spans if a < end and b > start
            ]
        found: list[Bars] = []
        rows = 0
        for period in reversed(bar_files.existing(self.root, series)):
            file = self._file(series, period)
            first, last = period_span(file.period)
            if first >= end:
                continue
            if last <= start or (newest is not None and rows >= newest) or bar_files.ends_before(file, start):
                break
            part = self._read_file(file, start, end, None if newest is None else newest - rows)
            rows += len(part)
            found.append(part)
        return found[::-1]

    # State

    def source(self, series: Series, epoch: int) -> Source | None:
        """The source of the minutes of the month of `epoch`, from the buffer or the file; None if there are none."""
        file = bar_files.bar_file(self.root, series, month_of(epoch))
        number = self._buffer.find_series(series)
        recorded = None if number is None else self._buffer.period_source(self._buffer.db, number, file.period)
        return recorded or self._retry_without_damage(bar_files.source_of, file)

    def _held(self, number: int | None, series: Series, period: str) -> Source | None:
        file = self._file(series, period)
        try:
            return super()._held(number, series, period) or bar_files.source_of(file)
        except CorruptFile:
            return None  # it will be set aside by the write

    def stored(self) -> list[Series]:
        """See the port."""
        return sorted(bar_files.on_disk(self.root) | set(self._buffer.buffered()))

    def timeframes(self, instrument: Instrument) -> list[Timeframe]:
        """See the port. If none is recorded, the buffer may be new: the files count then."""
        return super().timeframes(instrument) or [
            each
            for each in Timeframe
            if each is not Timeframe.M1 and bar_files.existing(self.root, Series(instrument, each))
        ]

    def where(self) -> str:
        """See the port."""
        return str(self.root)

    def size(self) -> int:
        """See the port."""
        total = 0
        for path in self.root.rglob("*"):
            with suppress(FileNotFoundError):  # removed while counting
                found = path.stat()
                total += found.st_size if stat.S_ISREG(found.st_mode) else 0
        return total


def _batches(pieces: Sequence[Piece]) -> Iterator[Sequence[Piece]]:
    """Months of minutes one by one, because each takes long; files of other series several at a time, each series whole."""
    yield from ([piece] for piece in pieces if piece[0].series.timeframe is Timeframe.M1)
    by_series: dict[Series, list[Piece]] = {}
    for piece in pieces:
        if piece[0].series.timeframe is not Timeframe.M1:
            by_series.setdefault(piece[0].series, []).append(piece)
    batch: list[Piece] = []
    for some in by_series.values():
        batch += some
        if len(batch) >= _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
