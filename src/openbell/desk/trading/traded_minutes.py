"""The minutes that orders fill on and alerts fire on: those of the feed, if it delivers the instrument.

A file can hold any price for a minute that the feed has not delivered yet. Imported minutes are shown in charts and count in
calculations, but they decide about money only where there is no other source, and in scenarios.
"""

from __future__ import annotations

import numpy as np

from openbell.desk.bars import BarService
from openbell.market.bars import Bars
from openbell.market.instruments import Instrument
from openbell.market.provenance import Origin
from openbell.market.series import Series
from openbell.stores.port import Span


class TradedMinutes:
    """Reads stored minutes without imported ones. Its methods may block."""

    def __init__(self, bars: BarService, *, present: bool) -> None:
        """`present`: False for a scenario, whose time may be one that was imported."""
        self._bars = bars
        self._present = present

    def read(self, series: Series, start: int, end: int) -> Bars:
        """The minutes of an instrument that opened in [start, end)."""
        return self.of(self._bars.store.read(series, start, end))

    def of(self, bars: Bars) -> Bars:
        """Minutes without those that were imported although the feed delivers the instrument."""
        if not len(bars) or not self.excludes_imports(bars.instrument):
            return bars
        origins = self._origins(bars.series, int(bars.time[0]), int(bars.time[-1]) + 1)
        if Origin.IMPORTED not in origins:
            return bars
        if origins == {Origin.IMPORTED}:
            return bars.take(slice(0, 0))
        return bars.take(
            np.array([self._origins(bars.series, t, t + 1) != {Origin.IMPORTED} for t in bars.time.tolist()])
        )

    def excludes_imports(self, instrument: Instrument) -> bool:
        """Returns True if imported minutes of an instrument decide nothing."""
        feed = self._bars.feed
        return self._present and feed.supports(instrument) and feed.route(instrument).source is not None

    def _origins(self, series: Series, start: int, end: int) -> set[Origin]:
        return {source.origin for source in self._bars.store.sources(series, Span(start, end))}
