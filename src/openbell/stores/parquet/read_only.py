"""A read-only view of a home's Parquet files."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.errors import CorruptFile
from openbell.market.provenance import Origin
from openbell.market.series import Series, series_of
from openbell.market.session_table import Times
from openbell.stores import coverage
from openbell.stores.buffer_view import BufferView
from openbell.stores.parquet import bar_files, file_listing
from openbell.stores.parquet.bar_files import BarFile
from openbell.stores.parquet.files import FileStore
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.periods import FIRST, LAST, period_span, slug_of
from openbell.stores.port import Problem, Span
from openbell.stores.read_only_audit import ReadOnlyAudit

P = ParamSpec("P")
T = TypeVar("T")


class ParquetView(ParquetStore):
    """The files and the buffer of a folder. A damaged file is left in place and not read; its period is a gap."""

    audit: ReadOnlyAudit

    def __init__(self, root: Path, origins: frozenset[Origin] | None = None) -> None:
        buffer = BufferView(root / "buffer.sqlite", origins)
        FileStore.__init__(self, root, buffer, origins)
        self._damaged: dict[BarFile, tuple[tuple[int, ...] | None, Problem]] = {}
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
                problem = Problem(time.time(), str(file.path), f"{damage.message}; left in place and not read")
                self._damaged[file] = bar_files.version(file), problem

    def _is_damaged(self, file: BarFile) -> bool:
        return file in self._damaged and self._damaged[file][0] == bar_files.version(file)

    def _read_file(self, file: BarFile, start: int = FIRST, end: int = LAST, newest: int | None = None) -> Bars:
        return barlib.empty_of(file.series) if self._is_damaged(file) else super()._read_file(file, start, end, newest)

    def _times(self, file: BarFile) -> Times:
        return barlib.empty_of(file.series).time if self._is_damaged(file) else super()._times(file)

    def gaps(self, series: Series, span: Span) -> list[Span]:
        """See the port. A period whose file is damaged or was removed is a gap, and so are bars that a file has lost."""
        on_disk = set(file_listing.existing(self.root, series))
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

    def _problems(self) -> list[Problem]:
        return [problem for _, problem in list(self._damaged.values())]
