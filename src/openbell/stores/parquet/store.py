"""The embedded bar store: Parquet files, one for each period of a series, behind a SQLite buffer.

Small writes of minutes go to the buffer and are moved to the files later (`compact`); others go straight to the files. A
file is changed only while the buffer's write lock is held, and a bar leaves the buffer in the transaction in which
its file was replaced. So a reader that reads the buffer first and the files second misses no bar.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ParamSpec, TypeVar

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.errors import CorruptFile, StoreError
from openbell.market.instruments import Instrument
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series, series_of
from openbell.market.session_table import Times
from openbell.market.timeframes import Timeframe
from openbell.market.trading_days import by_currency_day
from openbell.stores import coverage, newest_bars, superseded_bars
from openbell.stores.audit import ReadOnlyAudit
from openbell.stores.buffer import Buffer
from openbell.stores.buffer_view import BufferView
from openbell.stores.buffered import Covers
from openbell.stores.parquet import bar_files
from openbell.stores.parquet.bar_files import BarFile
from openbell.stores.parquet.files import FileStore, MonthFiles
from openbell.stores.period_sources import PlacedBars
from openbell.stores.periods import FIRST, LAST, Piece, batches, period_span, slug_of
from openbell.stores.port import FileProblem, Lease, Span

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

Removed = Mapping[str, Sequence[Span]]
"""The spans whose bars do not count, by period."""
_BATCH = 64
"""How many files of native series are written in one transaction, or as many as one series has."""


class ParquetStore(FileStore):
    """Implements `stores.port.BarStore` in one folder (`data/` or `simulated/data/`)."""

    name = "parquet"

    def __init__(self, root: Path, origins: frozenset[Origin] | None = None) -> None:
        """`origins` are those whose bars this folder may hold, None for any; a file of another origin is set aside."""
        try:
            root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot use {root}: {error}") from error
        super().__init__(root, Buffer(root / "buffer.sqlite", origins), origins)

    # Writing

    def _write_periods(
        self, pieces: Sequence[tuple[str, Bars]], source: Source, covers: Covers, lease: Lease | None, replace: bool
    ) -> None:
        if replace:
            retry = self.undamaged
            pieces = [piece for piece in pieces if not retry(self._replace, *piece, source, covers, lease)]
        for some in batches(pieces, _BATCH):
            self.undamaged(self._put, some, source, covers, lease)
        self.undamaged(self._remove_replaced)

    def _put(self, pieces: Sequence[Piece], source: Source, covers: Covers, lease: Lease | None) -> None:
        """Merge bars into the files of their periods. Native series are covered in the same transaction.

        Files and buffer cannot change at the same instant, so the change is announced first: if the process is killed in
        between, readers read everything again.
        """
        while pieces:
            with self._buffer.transaction() as db:
                self._home_leases.check(lease)
                every = {bars.series for _, bars in pieces}
                self._record_files(db, every)
                files = [self._place(db, period, bars, source) for period, bars in pieces]
                epochs = {
                    each: self._buffer.begin_change(db, self._buffer.ensure_series(db, each.name)) for each in every
                }
            with self._buffer.transaction() as db:
                self._home_leases.check(lease)
                states = {each: self._buffer.state(each) for each in epochs}
                announced = {each for each, state in states.items() if state.is_changing}
                # Another process may have announced a change since and been killed after it replaced files.
                self._record_files(db, (each for each in announced if states[each].epoch != epochs[each]))
                merged = [
                    file.series in announced and self._merge_period(db, file, bars, source)
                    for file, (_, bars) in zip(files, pieces, strict=True)
                ]
                bar_files.sync_folders(files)
                left = [piece for piece, done in zip(pieces, merged, strict=True) if not done]
                for series in {bars.series for _, bars in pieces} - {bars.series for _, bars in left}:
                    number = self._buffer.ensure_series(db, series.name)
                    self._buffer.end_change(db, number)
                    if series.timeframe is not Timeframe.M1:
                        self._cover(db, number, series, covers)
                        self._note_newest(db, number, series, [bars for _, bars in pieces if bars.series == series])
            pieces = left

    def _note_newest(self, db: sqlite3.Connection, number: int, series: Series, written: Sequence[Bars]) -> None:
        """Record the latest bar of a native series after it was written."""
        last = max(written, key=lambda bars: int(bars.time[-1]))
        if not newest_bars.record(db, number, last):
            latest = barlib.merge(*self._read_stored(series, FIRST, LAST, 1)) if self._periods(series) else last
            newest_bars.set_latest(db, number, latest if len(latest) else last)

    def _place(self, db: sqlite3.Connection, period: str, bars: Bars, source: Source) -> BarFile:
        """The file to which bars go. Raises `SourceConflict`."""
        number = self._buffer.ensure_series(db, bars.series.name)
        period = self.sources.period_for(number, period, bars, source)
        self.sources.refuse_conflicts(number, period, bars, source)
        return self._file(bars.series, period)

    def _merge_period(self, db: sqlite3.Connection, file: BarFile, bars: Bars, source: Source) -> bool:
        """Write the new file and remove its bars from the buffer. Returns False if another write came in between."""
        number = self._buffer.ensure_series(db, file.series.name)
        if self.sources.in_the_way(number, file.period, bars, source):
            return False
        self._notice_loss(db, number, file)
        stored = self.read_period(file.series, file.period, FIRST, LAST)
        self._write_file(db, number, file, barlib.merge(stored, bars), source, sync=False)
        superseded_bars.clear(db, number, file.period)
        self._buffer.set_period_source(db, number, file.period, source)
        if self._buffer.holds(file.series, int(bars.time[0]), int(bars.time[-1]) + 1):
            self._buffer.delete_times(db, number, bars.time.tolist())
        return True

    def _replace(self, period: str, bars: Bars, source: Source, covers: Covers, lease: Lease | None) -> bool:
        """Write bars in place of those of other sources. Returns False if there are none, and writes nothing then.

        Two files cannot change at the same instant: the new bars go to the buffer, in the transaction in which those of
        other files no longer count.
        """
        series = bars.series
        with self._buffer.transaction() as db:
            self._home_leases.check(lease)
            self._record_files(db, [series])
            number = self._buffer.ensure_series(db, series.name)
            period = self.sources.period_for(number, period, bars, source, replace=True)
            replaced = self.sources.to_replace(number, period, bars, source)
            if not replaced:
                return False
            for other, span in replaced.items():
                superseded_bars.add(db, number, other, span)
                self._buffer.delete(db, number, span, slug_of(other))
                coverage.uncover(db, number, span)
                if not len(self.sources.times_of(series, other)):
                    self._buffer.clear_period_source(db, number, other)
            self._buffer.set_period_source(db, number, period, source)
            self._buffer.put(db, [PlacedBars(number, bars, period)], self._buffer.next_seq(db))
            newest_bars.forget(db, number)
            if series.timeframe is not Timeframe.M1:
                self._cover(db, number, series, covers)
            self._buffer.end_change(db, number)
        self._compact_period(series, period, LAST)
        return True

    def compact(self, before: int) -> int:
        """See the port."""
        with self._buffer.transaction():
            bar_files.remove_unfinished(self.root)
        self.undamaged(self._remove_replaced)
        return sum(self._compact(series, before) for series in self._buffer.buffered())

    def _compact(self, series: Series, before: int) -> int:
        periods = self._buffer.waiting(series, before)
        return sum(self.undamaged(self._compact_period, series, period, before) for period in periods)

    def _compact_period(self, series: Series, period: str, before: int) -> int:
        start, end = period_span(period)
        slug = slug_of(period)
        with self._buffer.transaction() as db:
            number = self._buffer.ensure_series(db, series.name)
            waiting = self._buffer.get(series, start, min(end, before), slug=slug)
            source = self._buffer.period_source(db, number, period)
            if not len(waiting) or source is None:
                return 0
            self._notice_loss(db, number, self._file(series, period))
            merged = barlib.merge(self.read_period(series, period, FIRST, LAST), waiting)
            self._write_file(db, number, self._file(series, period), merged, source)
            superseded_bars.clear(db, number, period)
            self._buffer.delete(db, number, Span(start, min(end, before)), slug)
            self._buffer.end_compaction(db, number, int(waiting.time[0]))
        return len(waiting)

    def drop(self, db: sqlite3.Connection, number: int, series: Series, spans: Sequence[Span]) -> None:
        """See `Archive`."""
        self._record_files(db, [series])
        for span in spans:
            for period in {*bar_files.existing(self.root, series), *self._buffer.periods(series)}:
                self._drop_period(db, number, self._file(series, period), span)

    def _drop_period(self, db: sqlite3.Connection, number: int, file: BarFile, span: Span) -> None:
        """Remove the bars of a span from one file, or the file if no other bars are in it."""
        start, end = period_span(file.period)
        if end <= span.start or start >= span.end:
            return
        newest_bars.forget(db, number)
        kept = superseded_bars.without(self._read_file(file), [span])
        self._keep(db, number, file, kept)
        if not len(kept) and not self._buffer.holds(file.series, start, end, slug_of(file.period)):
            self._buffer.clear_period_source(db, number, file.period)

    # Reading

    def count(self, series: Series, timeframe: Timeframe, end: int) -> int:
        """See the port. Most bars up to a day do not cross the end of a period: each period's count is cached."""
        crosses = timeframe.seconds > Timeframe.D1.seconds or by_currency_day(series.instrument, timeframe)
        if crosses or series.timeframe is not Timeframe.M1:
            return barlib.count(series.instrument, timeframe, self._open_times(series, end), end)
        fresh = {period.partition(".")[0] for period in self._buffer.waiting(series, end)}
        months, removed = self._months(series), self._removed(series)
        return sum(
            self._count(series, timeframe, MonthFiles(month, months.get(month, ()), month in fresh), removed, end)
            for month in {*fresh, *months}
        )

    def _open_times(self, series: Series, end: int) -> Times:
        """The open times of all bars that opened before `end`, maybe of later ones too."""
        periods = () if series.timeframe is Timeframe.M1 else tuple(self._periods(series))
        if len(periods) == 1 and not self._removed(series) and not self._buffer.holds(series, FIRST, end):
            return self.undamaged(self._times, self._file(series, periods[0]))
        return self.read(series, FIRST, end).time

    def _count(self, series: Series, timeframe: Timeframe, month: MonthFiles, removed: Removed, end: int) -> int:
        """How many bars of a month had closed."""
        start, stop = period_span(month.name)
        if start >= end:
            return 0
        until = min(stop, end)
        files = tuple((bar_files.version(file), tuple(removed.get(file.period, ()))) for file in month.files)
        state = (until, files, self._buffer.state(series) if month.fresh else None)
        known = self._counts.get((series, month.name, timeframe))
        if known and known[0] == state:
            return known[1]
        if month.fresh or len(files) != 1 or files[0][1]:
            times = self.read(series, start, until).time
        else:
            times = self.undamaged(self._times, month.files[0])
        found = barlib.count(series.instrument, timeframe, times, until)
        self._counts[series, month.name, timeframe] = state, found
        return found

    def _read_stored(self, series: Series, start: int, end: int, newest: int | None) -> list[Bars]:
        removed = self._removed(series)
        if series.timeframe is not Timeframe.M1:  # periods of two sources may overlap
            periods = (self._file(series, period) for period in self._periods(series))
            spans = ((file, period_span(file.period)) for file in periods)
            return [
                self._read_native(file, removed, start, end, newest) for file, (a, b) in spans if a < end and b > start
            ]
        found: list[Bars] = []
        rows = 0
        for month, files in reversed(self._months(series).items()):
            first, last = period_span(month)
            if first >= end:
                continue
            if last <= start or (newest is not None and rows >= newest):
                break
            if all(bar_files.ends_before(file, start) for file in files):
                break
            wanted = None if newest is None else newest - rows
            parts = [self._read_native(file, removed, start, end, wanted) for file in files]
            rows += sum(map(len, parts))
            found += parts
        return found[::-1]

    # State

    def stored(self) -> list[Series]:
        """See the port."""
        return sorted(bar_files.on_disk(self.root) | set(self._buffer.buffered()))

    def timeframes(self, instrument: Instrument) -> list[Timeframe]:
        """See the port. If none is recorded, the buffer may be new: the files count then."""
        if found := super().timeframes(instrument):
            return found
        try:
            names = set(os.listdir(self.root / instrument.asset_class.value))
        except FileNotFoundError:
            return []
        others = (Series(instrument, each) for each in Timeframe if each is not Timeframe.M1)
        folders = {each: bar_files.folder(self.root, instrument.asset_class, each.timeframe).name for each in others}
        return [
            each.timeframe for each, name in folders.items() if name in names and bar_files.existing(self.root, each)
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


class ParquetView(ParquetStore):
    """The files and the buffer of a folder. A damaged file is left in place and not read; its period is a gap."""

    audit: ReadOnlyAudit

    def __init__(self, root: Path, origins: frozenset[Origin] | None = None) -> None:
        buffer = BufferView(root / "buffer.sqlite", origins)
        FileStore.__init__(self, root, buffer, origins)
        self._damaged: dict[BarFile, tuple[tuple[int, ...] | None, FileProblem]] = {}
        self.audit = ReadOnlyAudit(buffer, self.sources, self, damaged=self._problems)

    def undamaged(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function that uses files; if one of them is damaged, call it again without that file."""
        while True:
            try:
                return work(*args, **kwargs)
            except CorruptFile as damage:
                file = self._file(series_of(damage.details["symbol"]), damage.details["period"])
                if self._is_damaged(file):
                    raise
                problem = FileProblem(time.time(), str(file.path), f"{damage.message}; left in place and not read")
                self._damaged[file] = bar_files.version(file), problem

    def _is_damaged(self, file: BarFile) -> bool:
        return file in self._damaged and self._damaged[file][0] == bar_files.version(file)

    def _read_file(self, file: BarFile, start: int = FIRST, end: int = LAST, newest: int | None = None) -> Bars:
        return barlib.empty_of(file.series) if self._is_damaged(file) else super()._read_file(file, start, end, newest)

    def _times(self, file: BarFile) -> Times:
        return barlib.empty_of(file.series).time if self._is_damaged(file) else super()._times(file)

    def gaps(self, series: Series, span: Span) -> list[Span]:
        """See the port. A period whose file is damaged or was removed is a gap, and so are bars that a file has lost."""
        on_disk = set(bar_files.existing(self.root, series))
        damaged = {file.period for file in list(self._damaged) if file.series == series and self._is_damaged(file)}
        lost = [
            (period, Span(max(start, span.start), min(end, span.end)))
            for period in damaged | (self._buffer.periods(series) - on_disk)
            for start, end in [period_span(period)]
            if start < span.end
            and end > span.start
            and (period in damaged or not self._buffer.holds(series, start, end, slug_of(period)))
        ]
        lost += [(period, each) for period, each in self.audit.unmended(series, span) if period in on_disk]
        parts = (self.undamaged(self.sources.fetched, series, each, besides=period) for period, each in lost)
        return coverage.joined(
            [*coverage.gaps(self._buffer, series.name, span), *(part for some in parts for part in some)]
        )

    def _problems(self) -> list[FileProblem]:
        return [problem for _, problem in list(self._damaged.values())]
