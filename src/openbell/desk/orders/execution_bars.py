"""The minutes by which orders fill, alerts fire and positions are valued: those of the feed, if it has the instrument.

A file can hold any price for a minute that the feed has not delivered yet. Imported minutes are shown in charts and count in
calculations, but they decide about money only where there is no other source, and in scenarios.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from openbell.desk.bars.service import BarService
from openbell.market.bars import MINUTE, Bars
from openbell.market.instruments import Instrument
from openbell.market.provenance import Origin
from openbell.market.series import Series
from openbell.stores.port import Span, Version

_PIECE = 3000
"""Minutes that are looked at together."""
_EVER = 2**40


@dataclass(frozen=True, slots=True)
class _Known:
    """A version of a series at which it had no bars from the time `since` on."""

    version: Version
    since: int


class TradedMinutes:
    """Reads stored minutes without imported ones. Its methods may block, except `filled`."""

    def __init__(self, bars: BarService, *, present: bool) -> None:
        """`present`: False for a scenario, whose time may be one that was imported."""
        self._bars = bars
        self._present = present
        self._known: dict[Instrument, _Known] = {}

    def read(self, series: Series, start: int, end: int) -> Bars:
        """The minutes of an instrument that opened in [start, end). `new` has those that are stored later."""
        found = self.of(self._bars.store.read(series, start, end))
        if self._bars.feed.source is not None:
            self._remember(series)
        return found

    async def filled(self, instrument: Instrument, start: int, end: int) -> Bars:
        """The minutes of [start, end), of which missing ones are fetched first. Raises why they cannot be."""
        if end > start and (failure := await self._bars.fill(instrument, Span(start, end))):
            raise failure
        return await self._bars.threads.run(self.read, Series(instrument), start, end)

    def new(self, instruments: Iterable[Instrument], start: int, end: int) -> dict[Instrument, Bars]:
        """The minutes of many instruments that opened in [start, end), in one read.

        Leaves out those that must be read one by one: they were not read before, or they have gaps or imported minutes.
        """
        known = {each: self._known[each] for each in instruments if each in self._known}
        versions = {Series(each): found.version for each, found in known.items() if found.since <= start}
        if not versions:
            return {}
        found = self._bars.store.versions.new_bars(versions, Span(start, end))
        return {series.instrument: bars for series, bars in found.items()}

    def _remember(self, series: Series) -> None:
        """Keep the version of a series, after which `new` reads its new minutes."""
        version = self._bars.store.versions.of(series)
        last = self._bars.store.tail(series, 1, _EVER)
        if len(last) and version.epoch % 2 == 0:  # otherwise it is being changed
            self._known[series.instrument] = _Known(version, int(last.time[-1]) + MINUTE)

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
        return {source.origin for source in self._bars.store.sources.of(series, Span(start, end))}
