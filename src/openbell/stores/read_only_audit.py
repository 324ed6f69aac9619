"""The audit of a read-only store, which creates no folder and sets no file aside.

The buffer of such a store refuses every transaction, and every write needs one, so a write raises `StoreError`.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from openbell.market.series import Series
from openbell.stores import coverage
from openbell.stores.audit import Audit
from openbell.stores.buffer import Buffer
from openbell.stores.period_sources import PeriodSources
from openbell.stores.port import Archive, Loss, Problem, Span


class ReadOnlyAudit(Audit):
    """Finds lost bars and, unlike that of a store, records nothing about them."""

    def __init__(
        self,
        buffer: Buffer,
        sources: PeriodSources,
        archive: Archive,
        *,
        kept_seconds: float = 0.0,
        damaged: Callable[[], list[Problem]] = list,
    ) -> None:
        """`kept_seconds` is how long the losses of a series are not looked for again; `damaged` returns more problems."""
        super().__init__(buffer, sources, archive)
        self._kept_seconds = kept_seconds
        self._damaged = damaged
        self._known: dict[Series, tuple[float, list[Loss]]] = {}

    def problems(self) -> list[Problem]:
        """See the port."""
        return [*super().problems(), *self._damaged()]

    def losses(self, series: Series) -> list[Loss]:
        """See the port."""
        at, found = self._known.get(series, (0.0, []))
        if not at or time.monotonic() - at > self._kept_seconds:
            found = super().losses(series)
            self._known[series] = time.monotonic(), found
        return found

    def lost_spans(self, series: Series, span: Span) -> list[Span]:
        """See the port: also those that no process has noticed yet."""
        return coverage.joined([*super().lost_spans(series, span), *(each for _, each in self.unmended(series, span))])

    def unmended(self, series: Series, span: Span) -> list[tuple[str, Span]]:
        """The lost parts of a span that are still recorded as covered, with their periods."""
        return [
            (loss.period, Span(max(each.start, span.start), min(each.end, span.end)))
            for loss in self.losses(series)
            for each in loss.spans
            if each.start < span.end and each.end > span.start
        ]
