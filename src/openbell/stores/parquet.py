"""The embedded bar store: Parquet month files behind a SQLite buffer.

Small writes go to the buffer and are moved to the month files later (`compact`); large ones go straight to the files. A
month file is changed only while the buffer's write lock is held, and a bar leaves the buffer in the transaction in which
its file was replaced. So a reader that reads the buffer first and the files second misses no bar.
"""

from __future__ import annotations

import logging
import sqlite3
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ParamSpec, TypeVar

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.errors import CorruptFile, StoreError
from openbell.market.instruments import Instrument, parse
from openbell.market.provenance import Origin, Source
from openbell.market.session_table import Times
from openbell.market.timeframes import Timeframe
from openbell.stores import coverage, month_files, resampling
from openbell.stores.buffer import Buffer
from openbell.stores.buffered import FIRST, LAST, BufferedStore, conflict
from openbell.stores.month_files import MonthFile
from openbell.stores.months import by_month, month_of, month_span
from openbell.stores.port import Lease, Premature, Span

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

_MOST_RETRIES = 10
"""How often a read may find damage that `_set_aside` does not find, before the error is raised."""


class ParquetStore(BufferedStore):
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

    def _file(self, instrument: Instrument, month: str) -> MonthFile:
        return month_files.month_file(self.root, instrument, month, self._origins)

    # Writing

    def _write_month(self, month: str, bars: Bars, source: Source, lease: Lease | None, replace: bool) -> None:
        self._retry_without_damage(self._put_month, month, bars, source, lease, replace)

    def _write_small(
        self, parts: Sequence[Bars], source: Source, covers: Span | None, lease: Lease | None, replace: bool
    ) -> None:
        self._retry_without_damage(super()._write_small, parts, source, covers, lease, replace)

    def _owner(self, db: sqlite3.Connection, series: int, instrument: Instrument, month: str) -> Source | None:
        """The source in the buffer or, if none is recorded there, in the month file."""
        recorded = self._buffer.month_source(db, series, month)
        return recorded or month_files.source_of(self._file(instrument, month))

    def _put_month(self, month: str, bars: Bars, source: Source, lease: Lease | None, replace: bool) -> None:
        """Merge bars into their month's file.

        File and buffer cannot change at the same instant, so the change is announced first: if the process is killed in
        between, readers read everything again.
        """
        file = self._file(bars.instrument, month)
        merged = False
        while not merged:
            if replace:
                self._compact_month(file.instrument, month, LAST)
            self._announce(file, source, lease, replace)
            merged = self._merge_month(file, bars, source, lease, replace)

    def _announce(self, file: MonthFile, source: Source, lease: Lease | None, replace: bool) -> None:
        """Make readers read again until the change is done; clear the source of a month that is to be replaced.

        From then on the source of the month is that of the file: the old one until the new file is in place.
        """
        start, end = month_span(file.month)
        with self._buffer.transaction() as db:
            self._check_lease(lease)
            series = self._buffer.ensure_series(db, file.instrument.symbol)
            owner = self._owner(db, series, file.instrument, file.month)
            if owner not in {None, source}:
                if not replace:
                    raise conflict(file.instrument, file.month, owner, source)
                if not self._buffer.holds(file.instrument, start, end):
                    self._buffer.clear_month_source(db, series, file.month)
                    coverage.uncover(db, series, Span(start, end))
            self._buffer.begin_change(db, series)

    def _merge_month(self, file: MonthFile, bars: Bars, source: Source, lease: Lease | None, replace: bool) -> bool:
        """Write the new file and remove its minutes from the buffer. Returns False if another write came in between."""
        with self._buffer.transaction() as db:
            self._check_lease(lease)
            series = self._buffer.ensure_series(db, file.instrument.symbol)
            announced = self._buffer.state(file.instrument).is_changing
            owner = self._owner(db, series, file.instrument, file.month)
            cleared = replace and self._buffer.month_source(db, series, file.month) is None
            if not announced or (owner not in {None, source} and not cleared):
                return False
            stored = self._read_file(file) if owner == source else barlib.empty(file.instrument)
            month_files.write(file, barlib.merge(stored, bars), source)
            self._buffer.set_month_source(db, series, file.month, source)
            if self._buffer.holds(file.instrument, int(bars.time[0]), int(bars.time[-1]) + 1):
                self._buffer.delete_times(db, series, bars.time.tolist())
            self._buffer.end_change(db, series)
        return True

    def compact(self, before: int) -> int:
        """See the port."""
        with self._buffer.transaction():
            month_files.remove_unfinished(self.root)
        return sum(self._compact(instrument, before) for instrument in self._buffer.instruments())

    def _compact(self, instrument: Instrument, before: int) -> int:
        months = {month for month, _ in by_month(self._buffer.get(instrument, FIRST, before))}
        return sum(
            self._retry_without_damage(self._compact_month, instrument, month, before) for month in sorted(months)
        )

    def _compact_month(self, instrument: Instrument, month: str, before: int) -> int:
        start, end = month_span(month)
        with self._buffer.transaction() as db:
            series = self._buffer.ensure_series(db, instrument.symbol)
            waiting = self._buffer.get(instrument, start, min(end, before))
            source = self._buffer.month_source(db, series, month)
            if not len(waiting) or source is None:
                return 0
            file = self._file(instrument, month)
            month_files.write(file, barlib.merge(self._read_file(file), waiting), source)
            self._buffer.delete(db, series, Span(start, min(end, before)))
            self._buffer.end_compaction(db, series, int(waiting.time[0]))
        return len(waiting)

    def _mend(self, found: Premature) -> None:
        self._retry_without_damage(super()._mend, found)

    def _drop(self, db: sqlite3.Connection, series: int, instrument: Instrument, span: Span) -> None:
        for month in {*month_files.existing(self.root, instrument), *self._buffer.months(instrument)}:
            start, end = month_span(month)
            if end <= span.start or start >= span.end:
                continue
            file = self._file(instrument, month)
            stored = self._read_file(file)
            kept = barlib.merge(stored.between(FIRST, span.start), stored.between(span.end, LAST))
            source = month_files.source_of(file)
            if source and 0 < len(kept) < len(stored):
                month_files.write(file, kept, source)
            elif not len(kept):
                file.path.unlink(missing_ok=True)
                if not self._buffer.holds(instrument, start, end):
                    self._buffer.clear_month_source(db, series, month)

    # Reading

    def read(self, instrument: Instrument, start: int, end: int) -> Bars:
        """See the port."""
        return self._retry_without_damage(self._read_merged, instrument, start, end, None)

    def tail(self, instrument: Instrument, count: int, end: int) -> Bars:
        """See the port."""
        return self._retry_without_damage(self._read_merged, instrument, FIRST, end, count).tail(count)

    def resampled(self, instrument: Instrument, timeframe: Timeframe, count: int, end: int, skip: int = 0) -> Bars:
        """See the port."""
        return resampling.latest(self.tail, instrument, timeframe, count, end, skip)

    def count(self, instrument: Instrument, timeframe: Timeframe, end: int) -> int:
        """See the port. Only weekly bars cross the end of a month; for the others each month's count is cached."""
        if timeframe is Timeframe.W1:
            return len(barlib.resample(self.read(instrument, FIRST, end), timeframe, end))
        fresh = {month for month, _ in by_month(self._buffer.get(instrument, FIRST, end))}
        months = sorted(fresh | set(month_files.existing(self.root, instrument)))
        return sum(self._count(instrument, timeframe, month, end, month in fresh) for month in months)

    def _count(self, instrument: Instrument, timeframe: Timeframe, month: str, end: int, fresh: bool) -> int:
        """How many bars of a month had closed; `fresh` if some of its minutes are still in the buffer."""
        start, stop = month_span(month)
        if start >= end:
            return 0
        file, until = self._file(instrument, month), min(stop, end)
        state = (until, month_files.version(file), self._buffer.state(instrument) if fresh else None)
        known = self._counts.get((file.path, timeframe))
        if known and known[0] == state:
            return known[1]
        times = self.read(instrument, start, until).time if fresh else self._retry_without_damage(self._times, file)
        found = barlib.count(instrument, timeframe, times, until)
        self._counts[file.path, timeframe] = state, found
        return found

    def _times(self, file: MonthFile) -> Times:
        try:
            return month_files.times(file)
        except FileNotFoundError:
            return barlib.empty(file.instrument).time

    def _read_stored(self, instrument: Instrument, start: int, end: int, newest: int | None) -> list[Bars]:
        found: list[Bars] = []
        rows = 0
        for month in reversed(month_files.existing(self.root, instrument)):
            file = self._file(instrument, month)
            first, last = month_span(file.month)
            if first >= end:
                continue
            if last <= start or (newest is not None and rows >= newest) or month_files.ends_before(file, start):
                break
            part = self._read_file(file, start, end, None if newest is None else newest - rows)
            rows += len(part)
            found.append(part)
        return found[::-1]

    def _read_file(self, file: MonthFile, start: int = FIRST, end: int = LAST, newest: int | None = None) -> Bars:
        try:
            return month_files.read(file, start, end, newest)
        except FileNotFoundError:
            return barlib.empty(file.instrument)

    def _retry_without_damage(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function that uses month files; if one of them is damaged, set it aside and call the function again."""
        retries = 0
        while True:
            try:
                return work(*args, **kwargs)
            except CorruptFile as damage:
                instrument = parse(damage.details["symbol"])
                file = self._file(instrument, damage.details["month"])
                retries += not self._set_aside(file)
                if retries > _MOST_RETRIES:
                    raise

    def _set_aside(self, file: MonthFile) -> bool:
        """Rename a damaged file and make its month a gap, so that it is fetched again. Returns False if it is undamaged.

        The buffer is changed before the file is renamed: if the process is killed in between, the month is a gap already
        and the next read finds the damage again. Each check is made under the write lock, because another process may
        have set the file aside meanwhile.
        """
        start, end = month_span(file.month)
        aside = file.path.with_name(f"{file.path.name}.corrupt-{time.time_ns()}")
        with self._buffer.transaction() as db:
            reason = month_files.damage(file)
            if not reason:
                return False
            series = self._buffer.ensure_series(db, file.instrument.symbol)
            self._buffer.add_problem(db, aside, reason)
            coverage.uncover(db, series, Span(start, end))
            if not self._buffer.holds(file.instrument, start, end):
                self._buffer.clear_month_source(db, series, file.month)
            self._buffer.end_change(db, series)
        log.error("set aside %s: %s", aside, reason)
        with self._buffer.transaction():
            if month_files.damage(file):
                try:
                    file.path.replace(aside)
                except OSError as error:
                    raise StoreError(f"cannot set {file.path} aside: {error}") from error
        return True

    # State

    def gaps(self, instrument: Instrument, span: Span) -> list[Span]:
        """See the port. A month whose file was removed is a gap again."""
        self._uncover_missing(instrument)
        return super().gaps(instrument, span)

    def _uncover_missing(self, instrument: Instrument) -> None:
        """Remove the coverage of months whose files were removed, and record each as a problem."""
        recorded = self._buffer.months(instrument)
        for month in recorded - set(month_files.existing(self.root, instrument)):
            start, end = month_span(month)
            with self._buffer.transaction() as db:
                file = self._file(instrument, month)
                if file.path.exists() or self._buffer.holds(instrument, start, end):
                    continue
                series = self._buffer.ensure_series(db, instrument.symbol)
                reason = "is gone; its bars will be fetched again if the feed has them"
                self._buffer.add_problem(db, file.path, reason)
                self._buffer.clear_month_source(db, series, month)
                coverage.uncover(db, series, Span(start, end))
                self._buffer.end_change(db, series)
            log.error("%s %s", file.path, reason)

    def source(self, instrument: Instrument, epoch: int) -> Source | None:
        """The source of the bars of the month of `epoch`, from the buffer or the month file; None if there are none."""
        file = month_files.month_file(self.root, instrument, month_of(epoch))
        series = self._buffer.find_series(instrument)
        recorded = None if series is None else self._buffer.month_source(self._buffer.db, series, file.month)
        return recorded or self._retry_without_damage(month_files.source_of, file)

    def _held(self, series: int | None, instrument: Instrument, month: str) -> Source | None:
        file = self._file(instrument, month)
        try:
            return super()._held(series, instrument, month) or month_files.source_of(file)
        except CorruptFile:
            return None  # it will be set aside by the write

    def instruments(self) -> list[Instrument]:
        """See the port."""
        return sorted(month_files.on_disk(self.root) | set(self._buffer.instruments()))

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
