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
from openbell.stores import bar_files, coverage, file_listing
from openbell.stores.bar_files import BarFile
from openbell.stores.buffer_view import BufferView
from openbell.stores.influx import TABLES, InfluxStore
from openbell.stores.influx_http import InfluxHttp
from openbell.stores.losses import LossChecks
from openbell.stores.parquet import ParquetStore
from openbell.stores.periods import FIRST, LAST, period_span, slug_of
from openbell.stores.port import Loss, Problem, Span

P = ParamSpec("P")
T = TypeVar("T")


class LossesOfViews(LossChecks):
    """The part of a view that finds lost bars and, unlike a store, records nothing about them."""

    def lost_spans(self, series: Series, span: Span) -> list[Span]:
        """See the port: also those that no process has noticed yet."""
        return _joined([*super().lost_spans(series, span), *(each for _, each in self._unmended(series, span))])

    def _unmended(self, series: Series, span: Span) -> list[tuple[str, Span]]:
        """The lost parts of a span that are still recorded as covered, with their periods."""
        return [
            (loss.period, Span(max(each.start, span.start), min(each.end, span.end)))
            for loss in self.losses(series)
            for each in loss.spans
            if each.start < span.end and each.end > span.start
        ]


class ParquetView(LossesOfViews, ParquetStore):
    """The files and the buffer of a folder. A damaged file is left in place and not read; its period is a gap."""

    def __init__(self, root: Path, origins: frozenset[Origin] | None = None) -> None:
        self.root = root
        self._origins = origins
        self._buffer = BufferView(root / "buffer.sqlite", origins)
        self._counts = {}
        self._checked = set()
        self._tallied = {}
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
        lost += [(period, each) for period, each in self._unmended(series, span) if period in on_disk]
        parts = (self._retry_without_damage(self._fetched, series, each, besides=period) for period, each in lost)
        return _joined([*coverage.gaps(self._buffer, series.name, span), *(part for some in parts for part in some)])

    def problems(self) -> list[Problem]:
        """See the port."""
        return [*super().problems(), *(problem for _, problem in list(self._damaged.values()))]


class InfluxView(LossesOfViews, InfluxStore):
    """Bars in InfluxDB and in the home's buffer. Resampled bars are computed from minutes and not stored."""

    _CHECKED_SECONDS = 300.0
    """How long the numbers of a series' bars are not compared again: that takes a query for each of its sources."""

    def __init__(
        self, http: InfluxHttp, folder: Path, origins: frozenset[Origin] | None = None, *, shared: bool = False
    ) -> None:
        super().__init__(
            http, folder, origins, shared=shared, buffer=BufferView(folder / "buffer.sqlite", origins, TABLES)
        )
        self._losses: dict[Series, tuple[float, list[Loss]]] = {}

    def losses(self, series: Series) -> list[Loss]:
        """See the port."""
        at, found = self._losses.get(series, (0.0, []))
        if not at or time.monotonic() - at > self._CHECKED_SECONDS:
            found = super().losses(series)
            self._losses[series] = time.monotonic(), found
        return found

    def gaps(self, series: Series, span: Span) -> list[Span]:
        """See the port. Bars that the database has lost are gaps."""
        parts = (self._fetched(series, each, besides=period) for period, each in self._unmended(series, span))
        return _joined([*super().gaps(series, span), *(part for some in parts for part in some)])

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
