"""The test suite for every feed. A subclass defines `make`, which returns a feed with the instruments `known` around NOW."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from openbell.feeds.port import Batch, Feed
from openbell.market.bars import Bars, bucket_bounds, empty, faults, merge
from openbell.market.clock import Clock, FixedClock
from openbell.market.errors import NoSuchSeries
from openbell.market.extras import KINDS
from openbell.market.instruments import Instrument, parse
from openbell.market.lookback import lookback_start
from openbell.market.series import Series
from openbell.market.series_plan import Native, buckets
from openbell.market.timeframes import Timeframe
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
        return asyncio.run(feed.history(Series(instrument), start, end))

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
        async def main() -> None:
            for series in map(Series, self.known):
                whole = await feed.history(series, NOW - 9000, NOW)
                parts = [await feed.history(series, at, at + 1500) for at in range(NOW - 9000, NOW, 1500)]
                assert merge(*parts).same_as(whole)

        asyncio.run(main())

    # Every native timeframe

    def check_natives(self, feed: Feed, check: Callable[[Series, Native, int], Awaitable[None]]) -> None:
        """Calls `check` for each native series of the known instruments, with the start of its last dozen of bars."""

        async def main() -> None:
            for instrument in self.known if self.delivers else ():
                found = await feed.natives(instrument)
                assert Timeframe.M1 in found
                for timeframe, native in found.items():
                    first = lookback_start(instrument, timeframe, 12, NOW)
                    await check(Series(instrument, timeframe), native, max(first, native.earliest(NOW)))
            await feed.close()

        asyncio.run(main())

    def test_native_bars_are_closed_and_at_the_starts_of_our_buckets(self, feed: Feed) -> None:
        async def check(series: Series, _native: Native, start: int) -> None:
            bars = await feed.history(series, start, NOW + 3 * 86400)
            assert bars.series == series
            assert faults(bars, NOW + 30) == []
            assert (np.diff(bars.time) > 0).all()
            assert bars.time[0] >= start
            starts, ends = bucket_bounds(series.instrument, series.timeframe, bars.time)
            assert (bars.time == starts).all()
            assert ends[-1] <= NOW + 30, "the forming bar is not returned"
            expected, _ = buckets(series.instrument, series.timeframe, NOW - 9 * 86400, NOW)
            assert bars.time[-1] == expected[-1], "the newest closed bar is"
            assert len(await feed.history(series, NOW, NOW + 3 * 86400)) == 0

        self.check_natives(feed, check)

    def test_parts_of_native_history_merge_to_the_whole(self, feed: Feed) -> None:
        async def check(series: Series, _native: Native, start: int) -> None:
            whole = await feed.history(series, start, NOW)
            edges = np.linspace(start, NOW, 6).astype(int).tolist()
            parts = [await feed.history(series, a, b) for a, b in pairwise(edges)]
            assert merge(*parts).same_as(whole)
            at = int(whole.time[3])
            assert (await feed.history(series, at, at + 60)).time.tolist() == [at]

        self.check_natives(feed, check)

    def test_nothing_is_delivered_from_before_the_reach(self, feed: Feed) -> None:
        async def check(series: Series, native: Native, _start: int) -> None:
            earliest, step = native.earliest(NOW + 30) // 60 * 60, series.timeframe.seconds
            bars = await feed.history(series, max(0, earliest - 5 * step), earliest + 5 * step)
            assert not len(bars.between(0, earliest))

        self.check_natives(feed, check)

    def test_an_empty_range_has_no_bars(self, feed: Feed) -> None:
        assert len(self.history(feed, self.known[0], NOW, NOW)) == 0
        assert len(self.history(feed, self.known[0], NOW, NOW - 600)) == 0

    def test_the_watermark_is_never_ahead_of_the_clock(self, feed: Feed) -> None:
        assert feed.watermark(NOW) <= NOW
        for instrument in self.known if self.delivers else ():
            natives = asyncio.run(feed.natives(instrument))
            assert all(native.earliest(NOW) <= NOW for native in natives.values())

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
                whole = await feed.history(Series(instrument), NOW - 1800, until[-1])
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
