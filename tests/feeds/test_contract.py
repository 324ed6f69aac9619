"""The feeds sim, replay and none, tested with the suite for every feed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from openbell.feeds.none.feed import NoFeed
from openbell.feeds.port import Feed
from openbell.feeds.replay.feed import ReplayFeed
from openbell.feeds.sim.bars import minute_bars
from openbell.feeds.sim.feed import SimFeed
from openbell.market.bars import resample
from openbell.market.clock import Clock
from openbell.market.instruments import parse
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet.store import ParquetStore
from tests.feeds.contract import NOW, FeedContract

DAY = 86400


class TestSim(FeedContract):
    def make(self, clock: Clock, folder: Path) -> Feed:
        return SimFeed(clock)

    @pytest.mark.parametrize("symbol", ["BTC/USD", "AAPL", "EUR/USD"])
    @pytest.mark.parametrize("timeframe", [Timeframe.H1, Timeframe.D1])
    def test_its_minutes_add_up_to_hours_and_days(self, feed: Feed, symbol: str, timeframe: Timeframe) -> None:
        series = Series(parse(symbol), timeframe)
        for end in (NOW, NOW - 330 * DAY):  # now, and shortly after the minutes begin
            start = end - 30 * DAY
            longer = asyncio.run(feed.history(series, start, end))
            minutes = asyncio.run(feed.history(Series(series.instrument), start - start % DAY, end + DAY))
            assert len(longer) > 15
            assert longer.same_as(resample(minutes, timeframe, NOW).between(start, end))


class TestReplay(FeedContract):
    def make(self, clock: Clock, folder: Path) -> Feed:
        store = ParquetStore(folder / "data")
        for instrument in self.known:
            bars = minute_bars(instrument, 3, NOW - 20 * DAY, NOW + DAY)
            longer = [resample(bars, each, NOW + 86400) for each in (Timeframe.M15, Timeframe.H4, Timeframe.D1)]
            for each in (bars, *longer):
                store.write([each], Source(Origin.IMPORTED, "import"))
        return ReplayFeed(store, clock)


class TestNone(FeedContract):
    delivers = False

    def make(self, clock: Clock, folder: Path) -> Feed:
        return NoFeed()
