"""The test suite for every feed. A subclass defines `make`, which returns a feed with the instruments `known` around NOW."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

import numpy as np
import pytest

from openbell.feeds.port import Batch, Feed
from openbell.market.bars import Bars, empty, faults, merge
from openbell.market.clock import Clock, FixedClock
from openbell.market.errors import NoSuchSeries
from openbell.market.extras import KINDS
from openbell.market.instruments import Instrument, parse
from tests.clocks import HandClock

NOW = 1_767_798_000  # 2026-01-07T15:00:00Z, a Wednesday, stocks open


class FeedContract:
    """History and stream of one feed."""

    known: tuple[Instrument, ...] = (parse("BTC/USD"), parse("AAPL"))
    delivers = True
    """False if the feed has no bars."""

    def make(self, clock: Clock, folder: Path) -> Feed:
        raise NotImplementedError

    @pytest.fixture
    def feed(self, tmp_path: Path) -> Feed:
        return self.make(FixedClock(NOW + 30), tmp_path)

    def history(self, feed: Feed, instrument: Instrument, start: int, end: int) -> Bars:
        return asyncio.run(feed.history(instrument, start, end))

    def test_has_a_name_and_a_source(self, feed: Feed) -> None:
        assert feed.name
        assert feed.source is None or feed.source.origin is feed.origin

    def test_history_is_sorted_without_duplicates_and_in_range(self, feed: Feed) -> None:
        for instrument in self.known:
            bars = self.history(feed, instrument, NOW - 7200, NOW - 600)
            assert bool(len(bars)) is self.delivers
            if len(bars):
                assert bars.instrument == instrument
                assert bars.time[0] >= NOW - 7200
                assert bars.time[-1] < NOW - 600
                assert (np.diff(bars.time) > 0).all()
                assert faults(bars, NOW + 30) == []

    def test_history_has_closed_bars_only(self, feed: Feed) -> None:
        for instrument in self.known:
            bars = self.history(feed, instrument, NOW - 600, NOW + 86400)
            if self.delivers:
                assert bars.time[-1] == NOW - 60
            else:
                assert len(bars) == 0

    def test_parts_of_the_history_merge_to_the_whole(self, feed: Feed) -> None:
        for instrument in self.known:
            whole = self.history(feed, instrument, NOW - 9000, NOW)
            parts = [
                self.history(feed, instrument, NOW - 9000 + at, NOW - 9000 + at + 1500) for at in range(0, 9000, 1500)
            ]
            assert merge(*parts).same_as(whole)

    def test_an_empty_range_has_no_bars(self, feed: Feed) -> None:
        assert len(self.history(feed, self.known[0], NOW, NOW)) == 0
        assert len(self.history(feed, self.known[0], NOW, NOW - 600)) == 0

    def test_the_watermark_is_never_ahead_of_the_clock(self, feed: Feed) -> None:
        assert feed.watermark(NOW) <= NOW
        assert feed.earliest(NOW) <= NOW

    @pytest.mark.parametrize("kind", [*KINDS, "phase of the moon"])
    def test_an_extra_series_is_sorted_and_in_range_or_refused(self, feed: Feed, kind: str) -> None:
        start, end = NOW - 3 * 86400, NOW + 86400
        for instrument in self.known:
            try:
                found = asyncio.run(feed.extra(kind, instrument, start, end))
            except NoSuchSeries as none:
                assert all(word in none.message for word in (feed.name, kind, instrument.symbol))
                continue
            assert kind in KINDS
            assert found.time.dtype == np.int64
            assert len(found.time) == len(found.value) > 0
            assert (np.diff(found.time) > 0).all()
            assert start <= found.time[0] <= found.time[-1] <= NOW + 30, "nothing from after the clock"
            assert np.isfinite(found.value).all()
            assert not len(asyncio.run(feed.extra(kind, instrument, NOW, NOW)).time)

    def test_the_stream_delivers_the_bars_of_the_history(self, tmp_path: Path) -> None:
        if not self.delivers:
            return

        async def main() -> None:
            clock = HandClock(NOW)
            feed = self.make(clock, tmp_path)
            batches: list[Batch] = []
            async with aclosing(feed.stream(self.known, NOW - 1800)) as stream:
                while not batches or batches[-1].complete_until < NOW + 600:
                    waiting = asyncio.ensure_future(anext(stream))
                    while not waiting.done():
                        if not batches or batches[-1].complete_until >= clock.epoch() - 60:
                            clock.advance(60)
                        await asyncio.sleep(0.001)
                    batches.append(waiting.result())
            until = [batch.complete_until for batch in batches]
            assert until == sorted(set(until)), "complete_until always increases"
            clock.advance(3600)
            for instrument in self.known:
                got = [bars for batch in batches for bars in batch.bars if bars.instrument == instrument]
                whole = await feed.history(instrument, NOW - 1800, until[-1])
                assert merge(empty(instrument), *got).same_as(whole)
                for batch in batches:
                    for bars in batch.bars:
                        assert bars.time[-1] < batch.complete_until

        asyncio.run(main())

    def test_a_stream_can_be_closed_while_it_waits(self, feed: Feed) -> None:
        async def main() -> None:
            async with aclosing(feed.stream(self.known, NOW)) as stream:
                waiting = asyncio.ensure_future(anext(stream))
                await asyncio.sleep(0)
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting

        asyncio.run(main())
