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
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, ParamSpec, TypeVar

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.errors import StoreError
from openbell.market.instruments import Instrument
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.session_table import Times
from openbell.market.timeframes import Timeframe
from openbell.market.trading_days import by_currency_day
from openbell.stores import coverage, newest_bars, stored_counts, superseded_bars
from openbell.stores.audit import ReadOnlyAudit
from openbell.stores.buffer import Buffer
from openbell.stores.buffer_view import BufferView
from openbell.stores.buffered import BufferedStore, Covers
from openbell.stores.parquet import bar_files
from openbell.stores.parquet.archive import ParquetArchive, ParquetArchiveView
from openbell.stores.parquet.bar_files import BarFile
from openbell.stores.period_sources import PlacedBars
from openbell.stores.periods import FIRST, LAST, Piece, batches, period_span, slug_of
from openbell.stores.port import Lease, Span

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

Removed = Mapping[str, Sequence[Span]]
"""The spans whose bars do not count, by period."""
_BATCH = 64
"""How many files of native series are written in one transaction, or as many as one series has."""


class MonthFiles(NamedTuple):
    """The minutes of one month of a series."""

    name: str
    files: Sequence[BarFile]
    """One for each source."""
    fresh: bool
    """True if some of its minutes are still in the buffer."""


class ParquetStore(BufferedStore[ParquetArchive]):
    """Implements `stores.port.BarStore` in one folder (`data/` or `simulated/data/`)."""

    name = "parquet"

    def __init__(
        self, root: Path, origins: frozenset[Origin] | None = None, *, archive: ParquetArchive | None = None
    ) -> None:
        """`origins` are those whose bars this folder may hold, None for any; a file of another origin is set aside."""
        archive = archive or _opened(root, origins)
        super().__init__(archive.buffer, archive, origins)
        self.root = root
        self._checked: set[Series] = set()
        """The series whose files were compared with the numbers of their bars since this process opened the store."""
        self._counts: dict[tuple[Series, str, Timeframe], tuple[object, int]] = {}
        """The numbers of bars of months, with the state for which they are true."""

    # Writing

    def _write_periods(
        self, pieces: Sequence[tuple[str, Bars]], source: Source, covers: Covers, lease: Lease | None, replace: bool
    ) -> None:
        if replace:
            retry = self._archive.undamaged
            pieces = [piece for piece in pieces if not retry(self._replace, *piece, source, covers, lease)]
        for some in batches(pieces, _BATCH):
            self._archive.undamaged(self._put, some, source, covers, lease)
        self._archive.undamaged(self._archive.remove_replaced)

    def _put(self, pieces: Sequence[Piece], source: Source, covers: Covers, lease: Lease | None) -> None:
        """Merge bars into the files of their periods. Native series are covered in the same transaction.

        Files and buffer cannot change at the same instant, so the change is announced first: if the process is killed in
        between, readers read everything again.
        """
        while pieces:
            with self._buffer.transaction() as db:
                self._home_leases.check(lease)
                every = {bars.series for _, bars in pieces}
                self._archive.record_files(db, every)
                files = [self._place(db, period, bars, source) for period, bars in pieces]
                epochs = {
                    each: self._buffer.begin_change(db, self._buffer.ensure_series(db, each.name)) for each in every
                }
            with self._buffer.transaction() as db:
                self._home_leases.check(lease)
                states = {each: self._buffer.state(each) for each in epochs}
                announced = {each for each, state in states.items() if state.is_changing}
                # Another process may have announced a change since and been killed after it replaced files.
                self._archive.record_files(db, (each for each in announced if states[each].epoch != epochs[each]))
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
            latest = (
                barlib.merge(*self._archive.read(series, FIRST, LAST, 1))
                if self._archive.known_periods(series)
                else last
            )
            newest_bars.set_latest(db, number, latest if len(latest) else last)

    def _place(self, db: sqlite3.Connection, period: str, bars: Bars, source: Source) -> BarFile:
        """The file to which bars go. Raises `SourceConflict`."""
        number = self._buffer.ensure_series(db, bars.series.name)
        period = self.sources.period_for(number, period, bars, source)
        self.sources.refuse_conflicts(number, period, bars, source)
        return self._archive.file(bars.series, period)

    def _merge_period(self, db: sqlite3.Connection, file: BarFile, bars: Bars, source: Source) -> bool:
        """Write the new file and remove its bars from the buffer. Returns False if another write came in between."""
        number = self._buffer.ensure_series(db, file.series.name)
        if self.sources.in_the_way(number, file.period, bars, source):
            return False
        self._notice_loss(db, number, file)
        stored = self._archive.read_period(file.series, file.period, FIRST, LAST)
        self._archive.write(db, number, file, barlib.merge(stored, bars), source, sync=False)
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
            self._archive.record_files(db, [series])
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
            bar_files.remove_unfinished(self._archive.root)
        self._archive.undamaged(self._archive.remove_replaced)
        return sum(self._compact(series, before) for series in self._buffer.buffered())

    def _compact(self, series: Series, before: int) -> int:
        periods = self._buffer.waiting(series, before)
        return sum(self._archive.undamaged(self._compact_period, series, period, before) for period in periods)

    def _compact_period(self, series: Series, period: str, before: int) -> int:
        start, end = period_span(period)
        slug = slug_of(period)
        with self._buffer.transaction() as db:
            number = self._buffer.ensure_series(db, series.name)
            waiting = self._buffer.get(series, start, min(end, before), slug=slug)
            source = self._buffer.period_source(db, number, period)
            if not len(waiting) or source is None:
                return 0
            self._notice_loss(db, number, self._archive.file(series, period))
            merged = barlib.merge(self._archive.read_period(series, period, FIRST, LAST), waiting)
            self._archive.write(db, number, self._archive.file(series, period), merged, source)
            superseded_bars.clear(db, number, period)
            self._buffer.delete(db, number, Span(start, min(end, before)), slug)
            self._buffer.end_compaction(db, number, int(waiting.time[0]))
        return len(waiting)

    def set_aside(self, instrument: Instrument, source: Source, reason: str) -> bool:
        """See the port. Minutes in the buffer are moved to their files first."""
        for series in (Series(instrument), *(Series(instrument, each) for each in self.timeframes(instrument))):
            self._archive.undamaged(self._archive.record, series)
            ever = Span(FIRST, LAST)
            found = self.sources.recorded(series, ever) or self._archive.named_sources(series, ever)
            for period in [each for each, owner in found.items() if owner == source]:
                self._archive.undamaged(self._compact_period, series, period, LAST)
                self._put_aside(self._archive.file(series, period), source, reason)
        self._archive.undamaged(self._archive.remove_replaced)
        return True

    def _put_aside(self, file: BarFile, source: Source, reason: str) -> None:
        """Keep a second name of a file, and let its bars no longer count."""
        aside = file.path.with_name(f"{file.path.name}.aside-{time.time_ns()}")
        with self._buffer.transaction() as db:
            number = self._buffer.ensure_series(db, file.series.name)
            if self.sources.held(number, file.series, file.period) != source:
                return  # another process has done it
            try:
                with suppress(FileNotFoundError):  # it was removed by hand
                    aside.hardlink_to(file.path)
            except OSError as error:
                raise StoreError(f"cannot set {file.path} aside: {error}") from error
            self._buffer.add_problem(db, aside, reason)
            self._archive.uncover(db, number, file.series, file.period)
            self._buffer.delete(db, number, Span(*period_span(file.period)), slug_of(file.period))
            superseded_bars.add(db, number, file.period, Span(FIRST, LAST))
            stored_counts.forget(db, number, file.period)
            self._buffer.clear_period_source(db, number, file.period)
            newest_bars.forget(db, number)
            self._buffer.reread(db, number)
        log.warning("set aside %s: %s", aside, reason)

    def _notice_loss(self, db: sqlite3.Connection, number: int, file: BarFile) -> None:
        """Make bars that a file has lost gaps before it is written again: afterwards nothing would show the loss."""
        known = stored_counts.get(db, number, file.period)
        if (
            known
            and known.stamp != stored_counts.stamp_of(file.path)
            and file.period not in self._archive.removed(file.series)
        ):
            self.audit.settle_in(db, number, file.series, file.period)

    # Reading

    def count(self, series: Series, timeframe: Timeframe, end: int) -> int:
        """See the port. Most bars up to a day do not cross the end of a period: each period's count is cached."""
        crosses = timeframe.seconds > Timeframe.D1.seconds or by_currency_day(series.instrument, timeframe)
        if crosses or series.timeframe is not Timeframe.M1:
            return barlib.count(series.instrument, timeframe, self._open_times(series, end), end)
        fresh = {period.partition(".")[0] for period in self._buffer.waiting(series, end)}
        months, removed = self._archive.months(series), self._archive.removed(series)
        return sum(
            self._count(series, timeframe, MonthFiles(month, months.get(month, ()), month in fresh), removed, end)
            for month in {*fresh, *months}
        )

    def _open_times(self, series: Series, end: int) -> Times:
        """The open times of all bars that opened before `end`, maybe of later ones too."""
        periods = () if series.timeframe is Timeframe.M1 else tuple(self._archive.known_periods(series))
        if len(periods) == 1 and not self._archive.removed(series) and not self._buffer.holds(series, FIRST, end):
            return self._archive.undamaged(self._archive.times, self._archive.file(series, periods[0]))
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
            times = self._archive.undamaged(self._archive.times, month.files[0])
        found = barlib.count(series.instrument, timeframe, times, until)
        self._counts[series, month.name, timeframe] = state, found
        return found

    # State

    def gaps(self, series: Series, span: Span) -> list[Span]:
        """See the port. A period whose file was removed is a gap again, and so are bars that a file has lost."""
        if series not in self._checked or self._archive.is_missing_files(series):
            self.audit.mend_losses(series)
            self._checked.add(series)
        return super().gaps(series, span)

    def stored(self) -> list[Series]:
        """See the port."""
        return sorted(bar_files.on_disk(self._archive.root) | set(self._buffer.buffered()))

    def timeframes(self, instrument: Instrument) -> list[Timeframe]:
        """See the port. If none is recorded, the buffer may be new: the files count then."""
        if found := super().timeframes(instrument):
            return found
        try:
            names = set(os.listdir(self._archive.root / instrument.asset_class.value))
        except FileNotFoundError:
            return []
        others = (Series(instrument, each) for each in Timeframe if each is not Timeframe.M1)
        folders = {
            each: bar_files.folder(self._archive.root, instrument.asset_class, each.timeframe).name for each in others
        }
        return [
            each.timeframe
            for each, name in folders.items()
            if name in names and bar_files.existing(self._archive.root, each)
        ]

    def where(self) -> str:
        """See the port."""
        return str(self._archive.root)

    def size(self) -> int:
        """See the port."""
        total = 0
        for path in self._archive.root.rglob("*"):
            with suppress(FileNotFoundError):  # removed while counting
                found = path.stat()
                total += found.st_size if stat.S_ISREG(found.st_mode) else 0
        return total


class ParquetView(ParquetStore):
    """The files and the buffer of a folder. The period of a damaged file is a gap."""

    audit: ReadOnlyAudit

    def __init__(self, root: Path, origins: frozenset[Origin] | None = None) -> None:
        self._view = ParquetArchiveView(root, BufferView(root / "buffer.sqlite", origins), origins)
        super().__init__(root, origins, archive=self._view)
        self.audit = ReadOnlyAudit(self._buffer, self.sources, self._view, damaged=self._view.problems)

    def gaps(self, series: Series, span: Span) -> list[Span]:
        """See the port. A period whose file is damaged or was removed is a gap, and so are bars that a file has lost."""
        on_disk = set(bar_files.existing(self._archive.root, series))
        damaged = self._view.damaged_periods(series)
        lost = [
            (period, Span(max(start, span.start), min(end, span.end)))
            for period in damaged | (self._buffer.periods(series) - on_disk)
            for start, end in [period_span(period)]
            if start < span.end
            and end > span.start
            and (period in damaged or not self._buffer.holds(series, start, end, slug_of(period)))
        ]
        lost += [(period, each) for period, each in self.audit.unmended(series, span) if period in on_disk]
        parts = (self._archive.undamaged(self.sources.fetched, series, each, besides=period) for period, each in lost)
        return coverage.joined(
            [*coverage.gaps(self._buffer, series.name, span), *(part for some in parts for part in some)]
        )


def _opened(root: Path, origins: frozenset[Origin] | None) -> ParquetArchive:
    """The files and the buffer of a folder, which is created if needed."""
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot use {root}: {error}") from error
    return ParquetArchive(root, Buffer(root / "buffer.sqlite", origins), origins)
