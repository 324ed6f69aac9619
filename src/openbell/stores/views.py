"""Read-only views of a home's bar stores: they create no folder and set no file aside.

Their buffer refuses every transaction, and every write needs one, so a write raises `StoreError`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import ParamSpec, TypeVar

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.errors import CorruptFile
from openbell.market.provenance import Origin
from openbell.market.series import Series, series_of
from openbell.market.session_table import Times
from openbell.stores import bar_files, coverage
from openbell.stores.bar_files import BarFile
from openbell.stores.buffer_view import BufferView
from openbell.stores.influx import TABLES, InfluxStore
from openbell.stores.influx_http import InfluxHttp
from openbell.stores.parquet import ParquetStore
from openbell.stores.periods import FIRST, LAST, period_span, slug_of
from openbell.stores.port import Problem, Span

P = ParamSpec("P")
T = TypeVar("T")


class ParquetView(ParquetStore):
    """The files and the buffer of a folder. A damaged file is left in place and not read; its period is a gap."""

    def __init__(self, root: Path, origins: frozenset[Origin] | None = None) -> None:
        self.root = root
        self._origins = origins
        self._buffer = BufferView(root / "buffer.sqlite", origins)
        self._counts = {}
        self._damaged: dict[BarFile, tuple[tuple[int, ...] | None, Problem]] = {}

    def _retry_without_damage(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
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
        """See the port. A period whose file is damaged or was removed is a gap."""
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
        parts = (self._retry_without_damage(self._fetched, series, each, besides=period) for period, each in lost)
        return _joined([*coverage.gaps(self._buffer, series.name, span), *(part for some in parts for part in some)])

    def problems(self) -> list[Problem]:
        """See the port."""
        return [*super().problems(), *(problem for _, problem in list(self._damaged.values()))]


class InfluxView(InfluxStore):
    """Bars in InfluxDB and in the home's buffer. Resampled bars are computed from minutes and not stored."""

    def __init__(
        self, http: InfluxHttp, folder: Path, origins: frozenset[Origin] | None = None, *, shared: bool = False
    ) -> None:
        super().__init__(
            http, folder, origins, shared=shared, buffer=BufferView(folder / "buffer.sqlite", origins, TABLES)
        )

    def _others_write(self, series: Series) -> bool:  # noqa: ARG002
        return True


def _joined(spans: Iterable[Span]) -> list[Span]:
    """Spans in order; those that touch are joined."""
    found: list[Span] = []
    for span in sorted(spans, key=lambda each: each.start):
        if found and span.start <= found[-1].end:
            found[-1] = Span(found[-1].start, max(found[-1].end, span.end))
        elif span.start < span.end:
            found.append(span)
    return found
