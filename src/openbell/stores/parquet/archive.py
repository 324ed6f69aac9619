"""The files of the embedded store: found, read, changed, and set aside if they are damaged."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import ParamSpec, TypeVar

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.errors import CorruptFile, StoreError
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series, series_of
from openbell.market.session_table import Times
from openbell.market.timeframes import Timeframe
from openbell.stores import coverage, newest_bars, stored_counts, superseded_bars
from openbell.stores.buffer import Buffer
from openbell.stores.parquet import bar_files
from openbell.stores.parquet.bar_files import BarFile
from openbell.stores.period_sources import PeriodSources
from openbell.stores.periods import FIRST, LAST, overlap, period_span, slug_of
from openbell.stores.port import Counted, FileProblem, Span

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

_MOST_RETRIES = 10
"""How often a read may find damage that `_set_aside` does not find, before the error is raised."""


class ParquetArchive:
    """The files of a folder. Implements `stores.port.Archive`."""

    def __init__(self, root: Path, buffer: Buffer, origins: frozenset[Origin] | None) -> None:
        self.root = root
        self.buffer = buffer
        self._origins = origins
        self._tallied: dict[BarFile, Counted] = {}
        """The bars of files that were opened for `losses`."""

    def file(self, series: Series, period: str) -> BarFile:
        """The file of one period."""
        return bar_files.bar_file(self.root, series, period, self._origins)

    def times(self, file: BarFile) -> Times:
        """The open times of the bars in a file."""
        try:
            return bar_files.times(file)
        except FileNotFoundError:
            return barlib.empty_of(file.series).time

    def months(self, series: Series) -> dict[str, list[BarFile]]:
        """The files of the minutes of an instrument by month, oldest first."""
        found: dict[str, list[BarFile]] = {}
        for period in bar_files.existing(self.root, series):
            found.setdefault(period.partition(".")[0], []).append(self.file(series, period))
        return found

    def known_periods(self, series: Series) -> Iterable[str]:
        """The periods of a native series, also those of files that are not recorded yet."""
        recorded = self.buffer.periods(series)
        return recorded.union(bar_files.existing(self.root, series)) if self._may_lack(series, recorded) else recorded

    def _may_lack(self, series: Series, recorded: Collection[str]) -> bool:
        """Returns True if a native series may have files that are not recorded.

        If no period is recorded, the buffer may be new; if a change is not ended, a process may have been killed after it
        replaced files and before it recorded them. Otherwise the folder need not be listed.
        """
        return not recorded or self.buffer.state(series).is_changing

    def record_files(self, db: sqlite3.Connection, every: Iterable[Series]) -> None:
        """Record the files of native series that are not recorded. Raises `CorruptFile`.

        To be called before a change is ended: from then on readers use only recorded files, so bars that they have read
        would be missing until a later write to the same period.
        """
        natives = {each: self.buffer.periods(each) for each in every if each.timeframe is not Timeframe.M1}
        lacking = [each for each, recorded in natives.items() if self._may_lack(each, recorded)]
        for series, periods in bar_files.existing_of_each(self.root, lacking).items():
            for period in set(periods) - natives[series] - set(self.removed(series)):
                if source := bar_files.source_of(self.file(series, period)):
                    number = self.buffer.ensure_series(db, series.name)
                    self.buffer.set_period_source(db, number, period, source)

    def record(self, series: Series) -> None:
        """`record_files` in a transaction of its own."""
        with self.buffer.transaction() as db:
            self.record_files(db, [series])

    def named_sources(self, series: Series, of: Span | str) -> dict[str, Source]:
        """See `Archive`. For a span, lists a folder, which takes long while many files are written to it."""
        if isinstance(of, str):
            periods = [of]
        else:
            removed = self.removed(series)
            files = bar_files.existing(self.root, series)
            periods = [each for each in files if overlap(each, of) and each not in removed]
        named = {period: self._named_source(series, period) for period in periods}
        return {period: source for period, source in named.items() if source}

    def _named_source(self, series: Series, period: str) -> Source | None:
        """The source in the metadata of a file. A damaged file will be set aside by the write."""
        try:
            return bar_files.source_of(self.file(series, period))
        except CorruptFile:
            return None

    def removed(self, series: Series) -> dict[str, list[Span]]:
        """The spans of a series whose bars do not count, by period."""
        return superseded_bars.recorded(self.buffer, series)

    def read_period(self, series: Series, period: str, start: int, end: int) -> Bars:
        """See `Archive`."""
        return self._read_native(self.file(series, period), self.removed(series), start, end)

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

    def read(self, series: Series, start: int, end: int, newest: int | None) -> list[Bars]:
        """See `Archive`."""
        removed = self.removed(series)
        if series.timeframe is not Timeframe.M1:  # periods of two sources may overlap
            periods = (self.file(series, period) for period in self.known_periods(series))
            spans = ((file, period_span(file.period)) for file in periods)
            return [
                self._read_native(file, removed, start, end, newest) for file, (a, b) in spans if a < end and b > start
            ]
        found: list[Bars] = []
        rows = 0
        for month, files in reversed(self.months(series).items()):
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

    def write(
        self, db: sqlite3.Connection, number: int, file: BarFile, bars: Bars, source: Source, *, sync: bool = True
    ) -> None:
        """Replace a file, and record how many bars it has. Raises `StoreError`."""
        bar_files.write(file, bars, source, sync=sync)
        tally = stored_counts.tally_of(bars.timeframe, bars.time)
        counted = Counted(int(bars.time[-1]), tally, stored_counts.stamp_of(file.path))
        stored_counts.put(db, number, file.period, counted)

    def keep(self, db: sqlite3.Connection, number: int, file: BarFile, kept: Bars) -> None:
        """Leave only some of its bars in a file; without bars it is removed. Raises `StoreError`."""
        source = bar_files.source_of(file)
        if source and len(kept):
            self.write(db, number, file, kept, source)
            return
        stored_counts.forget(db, number, file.period)
        try:
            file.path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"cannot remove {file.path}: {error}") from error

    def drop(self, db: sqlite3.Connection, number: int, series: Series, spans: Sequence[Span]) -> None:
        """See `Archive`."""
        self.record_files(db, [series])
        for span in spans:
            for period in {*bar_files.existing(self.root, series), *self.buffer.periods(series)}:
                self._drop_period(db, number, self.file(series, period), span)

    def _drop_period(self, db: sqlite3.Connection, number: int, file: BarFile, span: Span) -> None:
        """Remove the bars of a span from one file, or the file if no other bars are in it."""
        start, end = period_span(file.period)
        if end <= span.start or start >= span.end:
            return
        newest_bars.forget(db, number)
        kept = superseded_bars.without(self._read_file(file), [span])
        self.keep(db, number, file, kept)
        if not len(kept) and not self.buffer.holds(file.series, start, end, slug_of(file.period)):
            self.buffer.clear_period_source(db, number, file.period)

    def undamaged(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function that uses files; if one of them is damaged, set it aside and call the function again."""
        retries = 0
        while True:
            try:
                return work(*args, **kwargs)
            except CorruptFile as damage:
                file = self.file(series_of(damage.details["symbol"]), damage.details["period"])
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
        with self.buffer.transaction() as db:
            reason = bar_files.damage(file)
            if not reason:
                return False
            number = self.buffer.ensure_series(db, file.series.name)
            self.buffer.add_problem(db, aside, reason)
            self.uncover(db, number, file.series, file.period)
            stored_counts.forget(db, number, file.period)
            if not self.buffer.holds(file.series, start, end, slug_of(file.period)):
                self.buffer.clear_period_source(db, number, file.period)
            self.buffer.reread(db, number)
        log.error("set aside %s: %s", aside, reason)
        with self.buffer.transaction():
            if bar_files.damage(file):
                try:
                    file.path.replace(aside)
                except OSError as error:
                    raise StoreError(f"cannot set {file.path} aside: {error}") from error
        return True

    def remove_replaced(self) -> None:
        """Remove bars that no longer count from their files, also those of a write that was killed."""
        for series, period in superseded_bars.pending(self.buffer):
            with self.buffer.transaction() as db:
                number = self.buffer.ensure_series(db, series.name)
                file, spans = self.file(series, period), self.removed(series).get(period, [])
                self.keep(db, number, file, superseded_bars.without(self._read_file(file), spans))
                superseded_bars.clear(db, number, period)

    def uncover(self, db: sqlite3.Connection, number: int, series: Series, period: str) -> None:
        """Make a period whose bars are lost a gap, but for the bars of other sources in the same time."""
        span = Span(*period_span(period))
        try:
            parts = PeriodSources(self.buffer, self).fetched(series, span, besides=period)
        except CorruptFile:  # of another source: it will be set aside in its turn
            parts = [span]
        for part in parts:
            coverage.uncover(db, number, part)

    def is_missing_files(self, series: Series) -> bool:
        """Returns True if a period with bars that are not buffered has no file."""
        recorded = self.buffer.periods(series)
        if series.timeframe is Timeframe.M1:
            missing = recorded - set(bar_files.existing(self.root, series))
        else:
            missing = {period for period in recorded if not self.file(series, period).path.exists()}
        return any(not self.buffer.holds_all_of(series, period) for period in missing)

    def periods(self, series: Series) -> set[str]:
        """See `Archive`. Bars that do not count are removed from their files first; the files are counted then."""
        found = stored_counts.periods(self.buffer, series) | set(bar_files.existing(self.root, series))
        return found - set(self.removed(series))

    def tallies(self, series: Series, recorded: Mapping[str, Counted | None]) -> dict[str, Counted]:
        """See `Archive`. A file that has the size and the time at which its bars were counted is not opened."""
        found = {}
        for period, known in recorded.items():
            file = self.file(series, period)
            stamp = stored_counts.stamp_of(file.path)
            if known is None or known.stamp != stamp:
                found[period] = self._tally(file, stamp)
        return found

    def _tally(self, file: BarFile, stamp: str) -> Counted:
        known = self._tallied.get(file)
        if known and stamp and known.stamp == stamp:
            return known
        times = self.times(file)
        last = int(times[-1]) if len(times) else 0
        counted = Counted(last, stored_counts.tally_of(file.series.timeframe, times), stamp)
        self._tallied[file] = counted
        return counted

    def place_of(self, series: Series, period: str) -> Path:
        """See `Archive`."""
        return self.file(series, period).path


class ParquetArchiveView(ParquetArchive):
    """The files of a folder that is not changed. A damaged file is left in place and not read."""

    def __init__(self, root: Path, buffer: Buffer, origins: frozenset[Origin] | None) -> None:
        super().__init__(root, buffer, origins)
        self._damaged: dict[BarFile, tuple[tuple[int, ...] | None, FileProblem]] = {}

    def undamaged(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function that uses files; if one of them is damaged, call it again without that file."""
        while True:
            try:
                return work(*args, **kwargs)
            except CorruptFile as damage:
                file = self.file(series_of(damage.details["symbol"]), damage.details["period"])
                if self._is_damaged(file):
                    raise
                problem = FileProblem(time.time(), str(file.path), f"{damage.message}; left in place and not read")
                self._damaged[file] = bar_files.version(file), problem

    def _is_damaged(self, file: BarFile) -> bool:
        return file in self._damaged and self._damaged[file][0] == bar_files.version(file)

    def _read_file(self, file: BarFile, start: int = FIRST, end: int = LAST, newest: int | None = None) -> Bars:
        return barlib.empty_of(file.series) if self._is_damaged(file) else super()._read_file(file, start, end, newest)

    def times(self, file: BarFile) -> Times:
        """Those of a damaged file are left out."""
        return barlib.empty_of(file.series).time if self._is_damaged(file) else super().times(file)

    def damaged_periods(self, series: Series) -> set[str]:
        """The periods whose files are damaged."""
        return {file.period for file in list(self._damaged) if file.series == series and self._is_damaged(file)}

    def problems(self) -> list[FileProblem]:
        """The damaged files that were found, also those that were replaced since."""
        return [problem for _, problem in list(self._damaged.values())]
