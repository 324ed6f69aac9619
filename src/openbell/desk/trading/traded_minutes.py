"""The minutes by which orders fill, alerts fire and positions are valued: those of the feed, if it has the instrument.

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

_PIECE = 3000
"""Minutes that are looked at together."""


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

    def newest(self, series: Series, end: int) -> Bars:
        """The newest minute of an instrument that opened before `end`; empty if there is none."""
        count = 1
        while len(stored := self._bars.store.tail(series, count, end)):
            if len(found := self._newest_of(stored)):
                return found
            end, count = int(stored.time[0]), max(_PIECE, 2 * count)
        return stored

    def _newest_of(self, bars: Bars) -> Bars:
        """The last of some minutes that counts; found by halves, because `of` looks at each minute."""
        if len(bars) == 1 or not self.excludes_imports(bars.instrument):
            return self.of(bars.tail(1))
        origins = self._origins(bars.series, int(bars.time[0]), int(bars.time[-1]) + 1)
        if origins == {Origin.IMPORTED}:
            return bars.take(slice(0, 0))
        middle = len(bars) // 2
        later = self._newest_of(bars.take(slice(middle, None)))
        return later if len(later) else self._newest_of(bars.take(slice(0, middle)))

    def excludes_imports(self, instrument: Instrument) -> bool:
        """Returns True if imported minutes of an instrument decide nothing."""
        feed = self._bars.feed
        return self._present and feed.supports(instrument) and feed.route(instrument).source is not None

    def _origins(self, series: Series, start: int, end: int) -> set[Origin]:
        return {source.origin for source in self._bars.store.sources(series, Span(start, end))}
