"""A read-only view of a home's bars in InfluxDB."""

from __future__ import annotations

from pathlib import Path

from openbell.market.provenance import Origin
from openbell.market.series import Series
from openbell.stores import coverage
from openbell.stores.buffer_view import BufferView
from openbell.stores.influx.http import InfluxHttp
from openbell.stores.influx.store import TABLES, InfluxStore
from openbell.stores.port import Span
from openbell.stores.read_only_audit import ReadOnlyAudit

_CHECKED_SECONDS = 300.0
"""How long the numbers of a series' bars in InfluxDB are not compared again: that takes a query for each of its sources."""


class InfluxView(InfluxStore):
    """Bars in InfluxDB and in the home's buffer. Resampled bars are computed from minutes and not stored."""

    audit: ReadOnlyAudit

    def __init__(
        self, http: InfluxHttp, folder: Path, origins: frozenset[Origin] | None = None, *, shared: bool = False
    ) -> None:
        buffer = BufferView(folder / "buffer.sqlite", origins, TABLES)
        super().__init__(http, folder, origins, shared=shared, buffer=buffer)
        self.audit = ReadOnlyAudit(buffer, self.sources, self, kept_seconds=_CHECKED_SECONDS)

    def gaps(self, series: Series, span: Span) -> list[Span]:
        """See the port. Bars that the database has lost are gaps."""
        parts = (
            self.sources.fetched(series, each, besides=period) for period, each in self.audit.unmended(series, span)
        )
        return coverage.joined([*super().gaps(series, span), *(part for some in parts for part in some)])

    def _others_write(self, series: Series) -> bool:  # noqa: ARG002
        return True
