"""The files of the embedded store: found, read, and set aside if they are damaged."""

from __future__ import annotations

import logging
import sqlite3
import time
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, ParamSpec, TypeVar

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.errors import CorruptFile, StoreError
from openbell.market.instruments import Instrument
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series, series_of
from openbell.market.session_table import Times
from openbell.market.timeframes import Timeframe
from openbell.stores import coverage, newest_bars, stored_counts, superseded_bars
from openbell.stores.buffer import Buffer
from openbell.stores.buffered import BufferedStore
from openbell.stores.parquet import bar_files
from openbell.stores.parquet.bar_files import BarFile
from openbell.stores.periods import FIRST, LAST, overlap, period_span, slug_of
from openbell.stores.port import Archive, Counted, Span

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

_MOST_RETRIES = 10
"""How often a read may find damage that `_set_aside` does not find, before the error is raised."""


class MonthFiles(NamedTuple):
    """The minutes of one month of a series."""

    name: str
    files: Sequence[BarFile]
    """One for each source."""
    fresh: bool
    """True if some of its minutes are still in the buffer."""


class FileStore(BufferedStore):
    """The part of a Parquet store that reads files and copes with damaged and missing ones."""

    def __init__(self, root: Path, buffer: Buffer, origins: frozenset[Origin] | None) -> None:
        super().__init__(buffer, origins)
        self.root = root
        self._checked: set[Series] = set()
        """The series whose files were compared with the numbers of their bars since this process opened the store."""
        self._tallied: dict[BarFile, Counted] = {}
        """The bars of files that were opened for `losses`."""
        self._counts: dict[tuple[Series, str, Timeframe], tuple[object, int]] = {}
        """The numbers of bars of months, with the state for which they are true."""

    def _archive(self) -> Archive:
        return self

    @abstractmethod
    def drop(self, db: sqlite3.Connection, number: int, series: Series, spans: Sequence[Span]) -> None:
        """See `Archive`."""

    def _file(self, series: Series, period: str) -> BarFile:
        return bar_files.bar_file(self.root, series, period, self._origins)

    def _times(self, file: BarFile) -> Times:
        try:
            return bar_files.times(file)
        except FileNotFoundError:
            return barlib.empty_of(file.series).time

    def _months(self, series: Series) -> dict[str, list[BarFile]]:
        """The files of the minutes of an instrument by month, oldest first."""
        found: dict[str, list[BarFile]] = {}
        for period in bar_files.existing(self.root, series):
            found.setdefault(period.partition(".")[0], []).append(self._file(series, period))
        return found

    def _periods(self, series: Series) -> Iterable[str]:
        """The periods of a native series, also those of files that are not recorded yet."""
        recorded = self._buffer.periods(series)
        return recorded.union(bar_files.existing(self.root, series)) if self._may_lack(series, recorded) else recorded

    def _may_lack(self, series: Series, recorded: Collection[str]) -> bool:
        """Returns True if a native series may have files that are not recorded.

        If no period is recorded, the buffer may be new; if a change is not ended, a process may have been killed after it
        replaced files and before it recorded them. Otherwise the folder need not be listed.
        """
        return not recorded or self._buffer.state(series).is_changing

    def _record_files(self, db: sqlite3.Connection, every: Iterable[Series]) -> None:
        """Record the files of native series that are not recorded. Raises `CorruptFile`.

        To be called before a change is ended: from then on readers use only recorded files, so bars that they have read
        would be missing until a later write to the same period.
        """
        natives = {each: self._buffer.periods(each) for each in every if each.timeframe is not Timeframe.M1}
        lacking = [each for each, recorded in natives.items() if self._may_lack(each, recorded)]
        for series, periods in bar_files.existing_of_each(self.root, lacking).items():
            for period in set(periods) - natives[series] - set(self._removed(series)):
                if source := bar_files.source_of(self._file(series, period)):
                    number = self._buffer.ensure_series(db, series.name)
                    self._buffer.set_period_source(db, number, period, source)

    def _record(self, series: Series) -> None:
        """`_record_files` in a transaction of its own."""
        with self._buffer.transaction() as db:
            self._record_files(db, [series])

    def named_sources(self, series: Series, of: Span | str) -> dict[str, Source]:
        """See `Archive`. For a span, lists a folder, which takes long while many files are written to it."""
        if isinstance(of, str):
            periods = [of]
        else:
            removed = self._removed(series)
            files = bar_files.existing(self.root, series)
            periods = [each for each in files if overlap(each, of) and each not in removed]
        named = {period: self._named_source(series, period) for period in periods}
        return {period: source for period, source in named.items() if source}

    def _named_source(self, series: Series, period: str) -> Source | None:
        """The source in the metadata of a file. A damaged file will be set aside by the write."""
        try:
            return bar_files.source_of(self._file(series, period))
        except CorruptFile:
            return None

    def _removed(self, series: Series) -> dict[str, list[Span]]:
        """The spans of a series whose bars do not count, by period."""
        return superseded_bars.recorded(self._buffer, series)

    def read_period(self, series: Series, period: str, start: int, end: int) -> Bars:
        """See `Archive`."""
        return self._read_native(self._file(series, period), self._removed(series), start, end)

    def _read_native(
        self, file: BarFile, removed: Mapping[str, Sequence[Span]], start: int, end: int, newest: int | None = None
    ) -> Bars:
        """The bars of one file without those that do not count."""
        if spans := removed.get(file.period):
            return superseded_bars.without(self._read_file(file, start, end), spans)
        return self._read_file(file, start, end, newest)

    def _read_file(self, file: BarFile, start: int = FIRST, end: int = LAST, newest: int | None = None) -> Bars:
        try:
            return bar_files.read(file, start, end, newest)
        except FileNotFoundError:
            return barlib.empty_of(file.series)

    def _write_file(
        self, db: sqlite3.Connection, number: int, file: BarFile, bars: Bars, source: Source, *, sync: bool = True
    ) -> None:
        """Replace a file, and record how many bars it has. Raises `StoreError`."""
        bar_files.write(file, bars, source, sync=sync)
        tally = stored_counts.tally_of(bars.timeframe, bars.time)
        counted = Counted(int(bars.time[-1]), tally, stored_counts.stamp_of(file.path))
        stored_counts.put(db, number, file.period, counted)

    def _keep(self, db: sqlite3.Connection, number: int, file: BarFile, kept: Bars) -> None:
        """Leave only some of its bars in a file; without bars it is removed. Raises `StoreError`."""
        source = bar_files.source_of(file)
        if source and len(kept):
            self._write_file(db, number, file, kept, source)
            return
        stored_counts.forget(db, number, file.period)
        try:
            file.path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"cannot remove {file.path}: {error}") from error

    def undamaged(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function that uses files; if one of them is damaged, set it aside and call the function again."""
        retries = 0
        while True:
            try:
                return work(*args, **kwargs)
            except CorruptFile as damage:
                file = self._file(series_of(damage.details["symbol"]), damage.details["period"])
                retries += not self._set_aside(file)
                if retries > _MOST_RETRIES:
                    raise

    def _set_aside(self, file: BarFile) -> bool:
        """Rename a damaged file and make its period a gap, so that it is fetched again. Returns False if it is undamaged.

        The buffer is changed before the file is renamed: if the process is killed in between, the period is a gap already
        and the next read finds the damage again. Each check is made under the write lock, because another process may
        have set the file aside meanwhile.
        """
        start, end = period_span(file.period)
        aside = file.path.with_name(f"{file.path.name}.corrupt-{time.time_ns()}")
        with self._buffer.transaction() as db:
            reason = bar_files.damage(file)
            if not reason:
                return False
            number = self._buffer.ensure_series(db, file.series.name)
            self._buffer.add_problem(db, aside, reason)
            self._uncover(db, number, file.series, file.period)
            stored_counts.forget(db, number, file.period)
            if not self._buffer.holds(file.series, start, end, slug_of(file.period)):
                self._buffer.clear_period_source(db, number, file.period)
            self._buffer.reread(db, number)
        log.error("set aside %s: %s", aside, reason)
        with self._buffer.transaction():
            if bar_files.damage(file):
                try:
                    file.path.replace(aside)
                except OSError as error:
                    raise StoreError(f"cannot set {file.path} aside: {error}") from error
        return True

    def set_aside(self, instrument: Instrument, source: Source, reason: str) -> bool:
        """See the port. Minutes in the buffer are moved to their files first."""
        for series in (Series(instrument), *(Series(instrument, each) for each in self.timeframes(instrument))):
            self.undamaged(self._record, series)
            ever = Span(FIRST, LAST)
            found = self.sources.recorded(series, ever) or self.named_sources(series, ever)
            for period in [each for each, owner in found.items() if owner == source]:
                self.undamaged(self._compact_period, series, period, LAST)
                self._put_aside(self._file(series, period), source, reason)
        self.undamaged(self._remove_replaced)
        return True

    @abstractmethod
    def _compact_period(self, series: Series, period: str, before: int) -> int:
        """Move the buffered bars of a period to its file. Returns how many were moved."""

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
            self._uncover(db, number, file.series, file.period)
            self._buffer.delete(db, number, Span(*period_span(file.period)), slug_of(file.period))
            superseded_bars.add(db, number, file.period, Span(FIRST, LAST))
            stored_counts.forget(db, number, file.period)
            self._buffer.clear_period_source(db, number, file.period)
            newest_bars.forget(db, number)
            self._buffer.reread(db, number)
        log.warning("set aside %s: %s", aside, reason)

    def _remove_replaced(self) -> None:
        """Remove bars that no longer count from their files, also those of a write that was killed."""
        for series, period in superseded_bars.pending(self._buffer):
            with self._buffer.transaction() as db:
                number = self._buffer.ensure_series(db, series.name)
                file, spans = self._file(series, period), self._removed(series).get(period, [])
                self._keep(db, number, file, superseded_bars.without(self._read_file(file), spans))
                superseded_bars.clear(db, number, period)

    def _uncover(self, db: sqlite3.Connection, number: int, series: Series, period: str) -> None:
        """Make a period whose bars are lost a gap, but for the bars of other sources in the same time."""
        span = Span(*period_span(period))
        try:
            parts = self.sources.fetched(series, span, besides=period)
        except CorruptFile:  # of another source: it will be set aside in its turn
            parts = [span]
        for part in parts:
            coverage.uncover(db, number, part)

    # Missing files and older ones

    def gaps(self, series: Series, span: Span) -> list[Span]:
        """See the port. A period whose file was removed is a gap again, and so are bars that a file has lost."""
        if series not in self._checked or self._is_missing_files(series):
            self.audit.mend_losses(series)
            self._checked.add(series)
        return super().gaps(series, span)

    def _is_missing_files(self, series: Series) -> bool:
        recorded = self._buffer.periods(series)
        if series.timeframe is Timeframe.M1:
            missing = recorded - set(bar_files.existing(self.root, series))
        else:
            missing = {period for period in recorded if not self._file(series, period).path.exists()}
        return any(not self._buffer.holds_all_of(series, period) for period in missing)

    def periods(self, series: Series) -> set[str]:
        """See `Archive`. Bars that do not count are removed from their files first; the files are counted then."""
        found = stored_counts.periods(self._buffer, series) | set(bar_files.existing(self.root, series))
        return found - set(self._removed(series))

    def tallies(self, series: Series, recorded: Mapping[str, Counted | None]) -> dict[str, Counted]:
        """See `Archive`. A file that has the size and the time at which its bars were counted is not opened."""
        found = {}
        for period, known in recorded.items():
            file = self._file(series, period)
            stamp = stored_counts.stamp_of(file.path)
            if known is None or known.stamp != stamp:
                found[period] = self._tally(file, stamp)
        return found

    def _tally(self, file: BarFile, stamp: str) -> Counted:
        known = self._tallied.get(file)
        if known and stamp and known.stamp == stamp:
            return known
        times = self._times(file)
        last = int(times[-1]) if len(times) else 0
        counted = Counted(last, stored_counts.tally_of(file.series.timeframe, times), stamp)
        self._tallied[file] = counted
        return counted

    def _notice_loss(self, db: sqlite3.Connection, number: int, file: BarFile) -> None:
        """Make bars that a file has lost gaps before it is written again: afterwards nothing would show the loss."""
        known = stored_counts.get(db, number, file.period)
        if known and known.stamp != stored_counts.stamp_of(file.path) and file.period not in self._removed(file.series):
            self.audit.settle_in(db, number, file.series, file.period)

    def place_of(self, series: Series, period: str) -> Path:
        """See `Archive`."""
        return self._file(series, period).path
