"""The embedded bar store: Parquet months behind a SQLite buffer.

Small writes go to the buffer and are moved to the month files later (`compact`); large ones go straight to the files. A
month file is only ever changed while the buffer's write lock is held, and a bar leaves the buffer in the same transaction
in which its file has been replaced, so a reader that asks the buffer first and the files second misses nothing.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.errors import CorruptFile, SourceConflict, StoreError
from openbell.market.instruments import Instrument
from openbell.market.provenance import Source
from openbell.stores import leases, month_files
from openbell.stores.buffer import Buffer
from openbell.stores.month_files import MonthFile
from openbell.stores.port import Lease, Mark, Problem, Span

log = logging.getLogger(__name__)

BULK = 2000
"""Bars of one instrument in one write from which on the buffer would only be a detour."""
_FIRST, _LAST = -(2**62), 2**62


class ParquetStore:
    """Implements `stores.port.BarStore` in one folder (`data/` or `simulated/data/`)."""

    name = "parquet"

    def __init__(self, root: Path) -> None:
        self.root = root
        try:
            root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot use {root}: {error}") from error
        self._buffer = Buffer(root / "buffer.sqlite")

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
        """See the port. `replace` drops the months of other sources that stand in the way."""
        large = [part for part in parts if len(part) >= BULK or replace]
        small = [part for part in parts if len(part) < BULK and not replace]
        for part in large:
            for month, bars in month_files.by_month(part):
                self._write_month(month, bars, source, lease, replace)
        if not small and covers is None:
            return
        with self._buffer.transaction() as db:
            if lease:
                leases.check(db, lease)
            seq = self._buffer.next_seq(db)
            for part in small:
                series = self._buffer.claim_series(db, part.instrument)
                if len(part):
                    self._claim_months(db, series, part, source)
                    self._buffer.put(db, series, part, seq)
            if covers:
                for part in parts:
                    self._buffer.cover(db, self._buffer.claim_series(db, part.instrument), covers)

    def _claim_months(self, db: sqlite3.Connection, series: int, bars: Bars, source: Source) -> None:
        first, last = month_files.month_of(int(bars.time[0])), month_files.month_of(int(bars.time[-1]))
        months = {first, last} if len(bars) < 2 else {month for month, _ in month_files.by_month(bars)}
        for month in months:
            file = month_files.month_file(self.root, bars.instrument, month)
            if not self._owns(db, series, file, source):
                raise self._conflict(db, series, file, source)

    def _owns(self, db: sqlite3.Connection, series: int, file: MonthFile, source: Source) -> bool:
        """Whether a month is this source's, claiming it if it is nobody's."""
        marked = self._buffer.month_source(db, series, file.month)
        if marked is None:
            try:
                marked = month_files.source_of(file)
            except CorruptFile as damage:
                self._set_aside(db, series, file, str(damage))
            self._buffer.set_month_source(db, series, file.month, marked or source)
        return marked is None or marked == source

    def _conflict(self, db: sqlite3.Connection, series: int, file: MonthFile, source: Source) -> SourceConflict:
        there = self._buffer.month_source(db, series, file.month)
        return SourceConflict(
            f"{file.instrument} {file.month} holds bars of {there}; {source} would mix with them "
            "(openbell import --replace drops what is there)",
            symbol=file.instrument.symbol,
            month=file.month,
            stored=str(there),
            offered=str(source),
        )

    def _write_month(self, month: str, bars: Bars, source: Source, lease: Lease | None, replace: bool) -> None:
        """Merge bars into their month's file, and drop what the buffer held of the same minutes before."""
        with self._buffer.transaction() as db:
            if lease:
                leases.check(db, lease)
            series = self._buffer.claim_series(db, bars.instrument)
            file = month_files.month_file(self.root, bars.instrument, month)
            if not self._owns(db, series, file, source):
                if not replace:
                    raise self._conflict(db, series, file, source)
                self._drop_month(db, series, file)
                self._buffer.set_month_source(db, series, month, source)
            stored = self._read_file(db, series, file)
            month_files.write(file, barlib.merge(stored, bars), source)
            db.executemany("DELETE FROM bars WHERE series = ? AND time = ?", ((series, t) for t in bars.time.tolist()))
            self._changed(db, series)

    def _drop_month(self, db: sqlite3.Connection, series: int, file: MonthFile) -> None:
        start, end = month_files.month_span(file.month)
        file.path.unlink(missing_ok=True)
        db.execute("DELETE FROM bars WHERE series = ? AND time >= ? AND time < ?", (series, start, end))
        self._buffer.uncover(db, series, Span(start, end))

    def _changed(self, db: sqlite3.Connection, series: int) -> None:
        """Tell readers that more than the buffer's new bars has changed."""
        db.execute("UPDATE series SET epoch = epoch + 1, version = ? WHERE id = ?", (self._buffer.next_seq(db), series))

    def compact(self, before: int) -> int:
        """Move buffered bars that opened before `before` into their month files."""
        return sum(self._compact(instrument, before) for instrument in self._buffer.buffered())

    def _compact(self, instrument: Instrument, before: int) -> int:
        months = {month for month, _ in month_files.by_month(self._buffer.get(instrument, _FIRST, before))}
        return sum(self._compact_month(instrument, month, before) for month in sorted(months))

    def _compact_month(self, instrument: Instrument, month: str, before: int) -> int:
        start, end = month_files.month_span(month)
        with self._buffer.transaction() as db:
            series = self._buffer.claim_series(db, instrument)
            waiting = self._buffer.get(instrument, start, min(end, before))
            source = self._buffer.month_source(db, series, month)
            if not len(waiting) or source is None:
                return 0
            file = month_files.month_file(self.root, instrument, month)
            month_files.write(file, barlib.merge(self._read_file(db, series, file), waiting), source)
            db.execute(
                "DELETE FROM bars WHERE series = ? AND time >= ? AND time < ?", (series, start, min(end, before))
            )
            db.execute(
                "UPDATE series SET compacted_seq = version, compacted_from ="
                " CASE WHEN compacted_seq = 0 THEN ? ELSE min(compacted_from, ?) END WHERE id = ?",
                (int(waiting.time[0]), int(waiting.time[0]), series),
            )
        return len(waiting)

    # Reading

    def read(self, instrument: Instrument, start: int, end: int) -> Bars:
        """See the port."""
        return self._read(instrument, start, end, None)

    def tail(self, instrument: Instrument, count: int, end: int) -> Bars:
        """See the port."""
        return self._read(instrument, _FIRST, end, count).tail(count)

    def _read(self, instrument: Instrument, start: int, end: int, newest: int | None) -> Bars:
        """Buffer first, files second; again if bars were moved from one to the other in between."""
        while True:
            before = self._buffer.state(instrument)
            buffered = self._buffer.get(instrument, start, end, newest)
            stored = self._read_files(instrument, start, end, newest)
            after = self._buffer.state(instrument)
            if (before[0], before[2]) == (after[0], after[2]):
                return barlib.merge(*stored, buffered) if stored else buffered

    def _read_files(self, instrument: Instrument, start: int, end: int, newest: int | None) -> list[Bars]:
        found: list[Bars] = []
        rows = 0
        for file in reversed(month_files.existing(self.root, instrument)):
            first, last = month_files.month_span(file.month)
            if first >= end:
                continue
            if last <= start or (newest is not None and rows >= newest):
                break
            part = self._read_file(None, None, file, start, end, None if newest is None else newest - rows)
            rows += len(part)
            found.append(part)
        return found[::-1]

    def _read_file(
        self,
        db: sqlite3.Connection | None,
        series: int | None,
        file: MonthFile,
        start: int = _FIRST,
        end: int = _LAST,
        newest: int | None = None,
    ) -> Bars:
        """A file's bars; none if it is missing, or damaged and now set aside."""
        try:
            return month_files.read(file, start, end, newest)
        except FileNotFoundError:
            return barlib.empty(file.instrument)
        except CorruptFile as damage:
            if db is not None and series is not None:
                self._set_aside(db, series, file, str(damage))
            else:
                self._inspect(file)
            return barlib.empty(file.instrument)

    def _inspect(self, file: MonthFile) -> None:
        """Read a suspect file again under the write lock: another process may have mended or moved it."""
        with self._buffer.transaction() as db:
            self._read_file(db, self._buffer.claim_series(db, file.instrument), file)

    def _set_aside(self, db: sqlite3.Connection, series: int, file: MonthFile, reason: str) -> None:
        """Move a damaged file out of the way, remember it, and let the feed fill its month again."""
        aside = file.path.with_name(f"{file.path.name}.corrupt-{time.time_ns()}")
        file.path.replace(aside)
        log.error("set aside %s: %s", aside, reason)
        db.execute("INSERT INTO problems VALUES (?, ?, ?)", (time.time(), str(aside), reason))
        self._buffer.uncover(db, series, Span(*month_files.month_span(file.month)))
        self._changed(db, series)

    # State

    def mark(self, instrument: Instrument) -> Mark:
        """See the port."""
        return self._buffer.mark(instrument)

    def changed_since(self, instrument: Instrument, mark: Mark) -> int | None:
        """See the port."""
        epoch, version, compacted_seq, compacted_from = self._buffer.state(instrument)
        if epoch != mark.epoch:
            return _FIRST
        if version == mark.version:
            return None
        changed = self._buffer.earliest_since(instrument, mark.version)
        if compacted_seq > mark.version:
            return compacted_from if changed is None else min(changed, compacted_from)
        return changed

    def gaps(self, instrument: Instrument, span: Span) -> list[Span]:
        """See the port."""
        return self._buffer.gaps(instrument, span)

    def source(self, instrument: Instrument, epoch: int) -> Source | None:
        """What the bars of the month of `epoch` are marked with."""
        return month_files.source_of(month_files.month_file(self.root, instrument, month_files.month_of(epoch)))

    def instruments(self) -> list[Instrument]:
        """See the port."""
        return sorted(month_files.on_disk(self.root) | set(self._buffer.buffered()))

    def size(self) -> int:
        """See the port."""
        return sum(path.stat().st_size for path in self.root.rglob("*") if path.is_file())

    def problems(self) -> list[Problem]:
        """See the port."""
        return self._buffer.problems()

    def acquire(self, name: str, holder: str, ttl: float) -> Lease:
        """See the port."""
        return leases.acquire(self._buffer, name, holder, ttl)

    def renew(self, lease: Lease, ttl: float) -> None:
        """See the port."""
        leases.renew(self._buffer, lease, ttl)

    def release(self, lease: Lease) -> None:
        """See the port."""
        leases.release(self._buffer, lease)

    def close(self) -> None:
        """See the port."""
        self._buffer.close()
