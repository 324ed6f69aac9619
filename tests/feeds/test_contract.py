"""The feeds sim, replay and none, tested with the suite for every feed."""

from __future__ import annotations

from pathlib import Path

from openbell.feeds.none.feed import NoFeed
from openbell.feeds.port import Feed
from openbell.feeds.replay.feed import ReplayFeed
from openbell.feeds.sim.feed import SimFeed
from openbell.feeds.sim.minutes import minute_bars
from openbell.market.clock import Clock
from openbell.market.provenance import Origin, Source
from openbell.stores.parquet import ParquetStore
from tests.feeds.contract import NOW, FeedContract


class TestSim(FeedContract):
    def make(self, clock: Clock, folder: Path) -> Feed:
        return SimFeed(clock)


class TestReplay(FeedContract):
    def make(self, clock: Clock, folder: Path) -> Feed:
        store = ParquetStore(folder / "data")
        for instrument in self.known:
            bars = minute_bars(instrument, 3, NOW - 86400, NOW + 86400)
            store.write([bars], Source(Origin.IMPORTED, "import"))
        return ReplayFeed(store, clock)


class TestNone(FeedContract):
    delivers = False

    def make(self, clock: Clock, folder: Path) -> Feed:
        return NoFeed()
