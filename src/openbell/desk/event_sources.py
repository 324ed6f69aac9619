"""The sources of the event hub's watcher: the bar store, the records, the watchlist file."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from openbell.desk.events.hub import (
    AlertChanged,
    AlertFired,
    BarsClosed,
    Event,
    NotificationAdded,
    OrderChanged,
    SpecSubmitted,
    StrategyChanged,
    WatchlistChanged,
    WebhookChanged,
)

if TYPE_CHECKING:
    from openbell.desk.bars.service import BarService
    from openbell.desk.bars.watchlist import WatchlistFile
    from openbell.stores.records.records import Records


class BarSource:
    """Reports bars that have closed, because the clock has advanced or because they were stored."""

    def __init__(self, bars: BarService) -> None:
        self._bars = bars
        self._seen: Hashable = None

    async def poll(self) -> Iterable[Event]:
        """See the port."""
        state = (self._bars.closed_until(), self._bars.store.versions.of_store())
        if state == self._seen:
            return ()
        self._seen = state
        return (BarsClosed(),)


class RecordSource:
    """Reports new entries of the ledger. The first poll reports every kind once."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._version: Hashable = object()
        self._seq: int | None = None

    async def poll(self) -> Iterable[Event]:
        """See the port."""
        version = self._records.version()
        if version == self._version:
            return ()
        from openbell.stores.records import journal

        if self._seq is None:
            self._seq = await self._records.read(journal.newest, check_head=False)
            self._version = version
            return (
                OrderChanged(),
                AlertChanged(),
                AlertFired(),
                NotificationAdded(),
                SpecSubmitted(),
                StrategyChanged(),
                WebhookChanged(),
            )
        seq = self._seq
        found = await self._records.read(journal.changes_after, seq, check_head=False)
        if found.complete or not self._records.clock.moving:
            self._version = (
                version  # otherwise entries are later than the clock: they are read again when it has advanced
            )
        self._seq = found.seq
        events: list[Event] = []
        if found.kinds & {"order", "fill", "switch", "account"}:
            events.append(OrderChanged())
        if "alert" in found.kinds:
            events.append(AlertChanged())
        if found.fired:
            events.append(AlertFired())
        if found.fired or found.kinds & {"received", "crossing_alert"}:
            events.append(NotificationAdded())
        if "spec" in found.kinds:
            events.append(SpecSubmitted())
        if found.kinds & {"implementation", "signal", "consensus"}:
            events.append(StrategyChanged())
        if "webhook" in found.kinds:
            events.append(WebhookChanged())
        return events


class WatchlistSource:
    """Reports edits of the watchlist file."""

    def __init__(self, watchlist: WatchlistFile) -> None:
        self._watchlist = watchlist
        self._seen: Hashable = object()

    async def poll(self) -> Iterable[Event]:
        """See the port."""
        state = self._watchlist.state()
        if state == self._seen:
            return ()
        self._seen = state
        return (WatchlistChanged(),)
