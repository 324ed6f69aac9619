"""The files of the embedded store: found, read, and set aside if they are damaged."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import ParamSpec, TypeVar

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.errors import CorruptFile, StoreError
from openbell.market.provenance import Source
from openbell.market.series import Series, series_of
from openbell.market.session_table import Times
from openbell.market.timeframes import Timeframe
from openbell.stores import bar_files, coverage, removals
from openbell.stores.bar_files import BarFile
from openbell.stores.buffered import BufferedStore
from openbell.stores.periods import FIRST, LAST, period_span
from openbell.stores.port import Span

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

_MOST_RETRIES = 10
"""How often a read may find damage that `_set_aside` does not find, before the error is raised."""


class FileStore(BufferedStore):
    """The part of a Parquet store that reads files and copes with damaged and missing ones."""

    root: Path

    def _file(self, series: Series, period: str) -> BarFile:
        return bar_files.bar_file(self.root, series, period, self._origins)

    def _times(self, file: BarFile) -> Times:
        try:
            return bar_files.times(file)
        except FileNotFoundError:
            return barlib.empty_of(file.series).time

    def _periods(self, series: Series) -> Iterable[str]:
        """The periods of a native series. If none is recorded, the buffer may be new: the files count then."""
        return self._buffer.periods(series) or bar_files.existing(self.root, series)

    def sources(self, series: Series, span: Span) -> set[Source]:
        """See the port. Of native bars, periods of several sources overlap: those without bars in the span do not count."""
        found = self._sources_by_period(series, span) or self._sources_of_files(series, span)
        if series.timeframe is Timeframe.M1 or len(found) == 1:
            return set(found.values())
        read = {period: self._read_period(series, period, span.start, span.end) for period in found}
        return {found[period] for period, bars in read.items() if len(bars)}

    def _sources_of_files(self, series: Series, span: Span) -> dict[str, Source]:
        """The sources that files name: the buffer may be new."""
        found: dict[str, Source] = {}
        for period in bar_files.existing(self.root, series):
            start, end = period_span(period)
            source = self._held(None, series, period) if start < span.end and end > span.start else None
            if source:
                found[period] = source
        return found

    def _removed(self, series: Series) -> dict[str, list[Span]]:
        """The spans of a series whose bars do not count, by period."""
        return removals.recorded(self._buffer, series)

    def _read_period(self, series: Series, period: str, start: int, end: int) -> Bars:
        return self._read_native(self._file(series, period), self._removed(series), start, end)

    def _read_native(
        self, file: BarFile, removed: Mapping[str, Sequence[Span]], start: int, end: int, newest: int | None = None
    ) -> Bars:
        """The bars of one file without those that do not count."""
        if spans := removed.get(file.period):
            return removals.without(self._read_file(file, start, end), spans)
        return self._read_file(file, start, end, newest)

    def _read_file(self, file: BarFile, start: int = FIRST, end: int = LAST, newest: int | None = None) -> Bars:
        try:
            return bar_files.read(file, start, end, newest)
        except FileNotFoundError:
            return barlib.empty_of(file.series)

    def _keep(self, file: BarFile, kept: Bars) -> None:
        """Leave only some of its bars in a file; without bars it is removed. Raises `StoreError`."""
        source = bar_files.source_of(file)
        if source and len(kept):
            bar_files.write(file, kept, source)
            return
        try:
            file.path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"cannot remove {file.path}: {error}") from error

    def _retry_without_damage(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
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
            coverage.uncover(db, number, Span(start, end))
            if not self._buffer.holds(file.series, start, end):
                self._buffer.clear_period_source(db, number, file.period)
            self._buffer.end_change(db, number)
        log.error("set aside %s: %s", aside, reason)
        with self._buffer.transaction():
            if bar_files.damage(file):
                try:
                    file.path.replace(aside)
                except OSError as error:
                    raise StoreError(f"cannot set {file.path} aside: {error}") from error
        return True

    # Missing files

    def gaps(self, series: Series, span: Span) -> list[Span]:
        """See the port. A period whose file was removed is a gap again."""
        self._uncover_missing(series)
        return super().gaps(series, span)

    def _uncover_missing(self, series: Series) -> None:
        """Remove the coverage of periods whose files were removed, and record each as a problem."""
        recorded = self._buffer.periods(series)
        if series.timeframe is Timeframe.M1:
            missing = recorded - set(bar_files.existing(self.root, series))
        else:
            missing = {period for period in recorded if not self._file(series, period).path.exists()}
        for period in missing:
            start, end = period_span(period)
            with self._buffer.transaction() as db:
                file = self._file(series, period)
                if file.path.exists() or period not in self._buffer.periods(series):
                    continue  # stored or removed by another process meanwhile
                if self._buffer.holds(series, start, end):
                    continue
                number = self._buffer.ensure_series(db, series.name)
                reason = "is gone; its bars will be fetched again if the feed has them"
                self._buffer.add_problem(db, file.path, reason)
                self._buffer.clear_period_source(db, number, period)
                coverage.uncover(db, number, Span(start, end))
                self._buffer.end_change(db, number)
            log.error("%s %s", file.path, reason)
