"""The collector on a feed that fails: screening, corrections, gaps, reconnects, the lease."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from openbell.desk.bars import collector as module
from openbell.desk.bars.collector import Collector
from openbell.desk.bars.service import BarService
from openbell.desk.bars.watchlist import WatchlistFile
from openbell.desk.events import leased_work
from openbell.desk.events.supervision import WorkState
from openbell.feeds.port import Batch
from openbell.feeds.registry import RoutedFeed
from openbell.market.bars import Bars, make
from openbell.market.errors import FeedUnavailable, LeaseLost, StoreError, UnknownSymbol
from openbell.market.instruments import AssetClass, parse
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.port import Lease, Span
from tests.clocks import HandClock
from tests.desk.scripted import BTC, ScriptedFeed, bars, watching_hub
from tests.waiting import until

NOW = 1_767_744_000
ETH = parse("ETH/USD")


@asynccontextmanager
async def collecting(
    folder: Path, feed: ScriptedFeed, clock: HandClock, watchlist: str = "BTC/USD\n"
) -> AsyncIterator[tuple[Collector, ParquetStore]]:
    (folder / "watchlist.txt").write_text(watchlist)
    store = ParquetStore(folder / "data")
    watched = WatchlistFile(folder / "watchlist.txt")
    collector = Collector(BarService(store, feed, clock), watched, watching_hub(watched))
    task = asyncio.create_task(collector.run())
    try:
        yield collector, store
        if task.done():
            task.result()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        store.close()


def stored(store: ParquetStore, instrument: object = BTC) -> dict[int, float]:
    found = store.read(Series(instrument), 0, NOW + 10**6)  # type: ignore[arg-type]
    return dict(zip(found.time.tolist(), found.close.tolist(), strict=True))


def test_bad_bars_are_refused_with_a_counted_reason_and_the_rest_is_stored(tmp_path: Path) -> None:
    nan = float("nan")

    def one(at: int, o: float, h: float, low: float, c: float, v: float = 1.0) -> object:
        return make(BTC, Timeframe.M1, [at], [o], [h], [low], [c], [v])

    offered = (
        bars((NOW, 10.0)),
        one(NOW + 60, nan, 1, 1, 1),
        one(NOW + 60, 1, 1, 1, float("inf")),
        one(NOW + 60, -1, 1, -1, 1),
        one(NOW + 60, 0, 1, 0, 1),
        one(NOW + 60, 1, 1, 2, 1),
        one(NOW + 60, 5, 4, 1, 2),
        one(NOW + 60, 2, 4, 1, 5),
        one(NOW + 60, 1, 1, 1, 1, -5),
        one(NOW + 61, 1, 1, 1, 1),
        one(NOW + 86400, 1, 1, 1, 1),
        bars((NOW + 120, 12.0)),
    )

    async def main() -> None:
        clock = HandClock(NOW + 200)
        feed = ScriptedFeed(Batch(offered, NOW + 180))  # type: ignore[arg-type]
        feed.table[BTC] = {}
        async with collecting(tmp_path, feed, clock) as (collector, store):
            await until(lambda: collector.status.stored == 2)
            assert stored(store) == {NOW: 10.0, NOW + 120: 12.0}
            assert collector.status.refused == {
                "not finite": 2,
                "price not positive": 2,
                "high below low": 1,
                "open outside high and low": 1,
                "close outside high and low": 1,
                "volume negative": 1,
                "time not on the minute": 1,
                "from the future": 1,
            }

    asyncio.run(main())


def test_duplicates_reorders_and_corrections_leave_one_bar_each(tmp_path: Path) -> None:
    async def main() -> None:
        clock = HandClock(NOW + 600)
        feed = ScriptedFeed(
            Batch((bars((NOW, 1.0), (NOW + 60, 2.0)),), NOW + 120),
            Batch((bars((NOW, 1.0), (NOW + 60, 2.0)),), NOW + 120),
            Batch((bars((NOW + 180, 4.0), (NOW + 120, 3.0), (NOW + 180, 4.5)),), NOW + 240),
            Batch((bars((NOW + 60, 2.5)),), NOW + 240),
            Batch((), NOW + 300),
        )
        async with collecting(tmp_path, feed, clock) as (collector, store):
            await until(lambda: collector.status.through >= NOW + 300 and not feed.script)
            await until(lambda: len(stored(store)) == 4)
            assert stored(store) == {NOW: 1.0, NOW + 60: 2.5, NOW + 120: 3.0, NOW + 180: 4.5}

    asyncio.run(main())


def test_a_broken_stream_is_opened_again_and_the_gap_is_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LONGEST_PAUSE", 0.01)

    async def main() -> None:
        clock = HandClock(NOW)
        feed = ScriptedFeed(FeedUnavailable("dropped"), FeedUnavailable("dropped again"))
        feed.table[BTC] = {NOW - 60: 1.0}
        async with collecting(tmp_path, feed, clock) as (collector, store):
            await until(lambda: len(feed.streams) == 3)
            assert collector.status.reconnects == 2
            feed.table[BTC] |= {NOW + 60 * n: 2.0 + n for n in range(5)}
            feed.script.append(FeedUnavailable("dropped later"))
        clock.advance(300)
        async with collecting(tmp_path, feed, clock) as (collector, store):
            await until(lambda: len(feed.streams) >= 5)
            assert feed.streams[-1] == NOW + 300
            assert stored(store) == {NOW - 60: 1.0} | {NOW + 60 * n: 2.0 + n for n in range(5)}

    asyncio.run(main())


def test_the_watchlist_is_followed(tmp_path: Path) -> None:
    async def main() -> None:
        clock = HandClock(NOW)
        feed = ScriptedFeed(known=(BTC, ETH))
        async with collecting(tmp_path, feed, clock) as (collector, _store):
            await until(lambda: len(feed.streams) == 1)
            assert collector.status.watched == 1
        feed.script = [Batch((), NOW + 60)]
        async with collecting(tmp_path, feed, clock, "BTC/USD\nETH/USD\nZZZ\nbad symbol\n") as (collector, _store):
            await until(lambda: collector.status.detail == "collecting")
            assert collector.status.watched == 2, "what the feed does not know is left out"

    asyncio.run(main())


@pytest.mark.parametrize("adjustment", ["raw", "all"])
def test_collecting_goes_on_after_imported_minutes_unless_they_are_adjusted(tmp_path: Path, adjustment: str) -> None:
    async def main() -> None:
        clock = HandClock(NOW + 600)
        apple = parse("AAPL")
        batch = Batch((bars((NOW, 1.0), instrument=apple), bars((NOW, 2.0), instrument=ETH)), NOW + 60)
        feed = ScriptedFeed(batch, known=(apple, ETH))
        feed.table[apple] = {NOW - 120: 5.0}
        store = ParquetStore(tmp_path / "data")
        store.write([bars((NOW - 60, 9.0), instrument=apple)], Source(Origin.IMPORTED, "import", adjustment))
        store.close()
        async with collecting(tmp_path, feed, clock, "AAPL\nETH/USD\n") as (_collector, store):
            await until(lambda: stored(store, ETH) == {NOW: 2.0})
            collected = {NOW - 120: 5.0, NOW: 1.0} if adjustment == "raw" else {}
            assert stored(store, apple) == {NOW - 60: 9.0} | collected

    asyncio.run(main())


def test_a_feed_that_fails_does_not_keep_the_others_waiting(tmp_path: Path) -> None:
    async def main() -> None:
        apple = parse("AAPL")
        stocks, crypto = ScriptedFeed(known=(apple,)), ScriptedFeed(Batch((bars((NOW, 1.0)),), NOW + 60))
        stocks.name, stocks.down = "stocks", True
        feed: Any = RoutedFeed("both", Origin.LIVE, {AssetClass.STOCK: stocks, AssetClass.CRYPTO: crypto})
        async with collecting(tmp_path, feed, HandClock(NOW + 600), "AAPL\nBTC/USD\n") as (collector, store):
            await until(lambda: stored(store) == {NOW: 1.0})
            await until(lambda: "stocks: waiting for the feed" in collector.status.detail)
            assert "scripted: collecting" in collector.status.detail

    asyncio.run(main())


@pytest.mark.parametrize("source", [Source(Origin.LIVE, "scripted"), None], ids=["stored", "not stored"])
def test_symbols_without_a_route_wait_for_an_edit_and_others_are_collected(
    tmp_path: Path, source: Source | None
) -> None:
    async def main() -> None:
        crypto = ScriptedFeed(Batch((bars((NOW, 1.0)),), NOW + 60))
        crypto.source = source
        feed: Any = RoutedFeed("crypto=x", Origin.LIVE, {AssetClass.CRYPTO: crypto})
        async with collecting(tmp_path, feed, HandClock(NOW + 600), "AAPL\n") as (collector, _store):
            await until(lambda: collector.status.detail == "nothing to collect")
            assert collector.status.watched == 0
            (tmp_path / "watchlist.txt").write_text("AAPL\nBTC/USD\n")
            await until(lambda: collector.status.batches == 1)
            assert (collector.status.detail, collector.status.watched) == ("collecting", 1)

    asyncio.run(main())


def test_a_second_collector_stands_by_until_the_first_leaves(tmp_path: Path) -> None:
    async def main() -> None:
        clock = HandClock(NOW)
        one, two = ScriptedFeed(), ScriptedFeed()
        async with collecting(tmp_path, one, clock) as (first, _):
            await until(lambda: first.status.detail == "collecting")
            other = ParquetStore(tmp_path / "data")
            with pytest.raises(Exception, match="already running"):
                other.leases.acquire(module.LEASE, "somebody else", 15.0)
            other.close()
        async with collecting(tmp_path, two, clock) as (second, _):
            await until(lambda: second.status.detail == "collecting")

    asyncio.run(main())


def test_a_collector_that_lost_its_lease_writes_nothing_more(tmp_path: Path) -> None:
    async def main() -> None:
        clock = HandClock(NOW + 600)
        feed = ScriptedFeed()
        async with collecting(tmp_path, feed, clock) as (collector, store):
            await until(lambda: collector.status.detail == "collecting")
            other = ParquetStore(tmp_path / "data")
            with other._buffer.transaction() as db:
                db.execute("UPDATE leases SET token = token + 1, holder = 'another@elsewhere:1:1'")
            lease = Lease(module.LEASE, 1, "this one")
            with pytest.raises(LeaseLost):
                await collector._store_batch(Batch((bars((NOW, 1.0)),), NOW + 60), [BTC], NOW, lease)
            assert stored(store) == {}
            other.close()

    asyncio.run(main())


def test_a_symbol_that_the_vendor_turns_out_not_to_have_costs_only_itself(tmp_path: Path) -> None:
    """The vendor lists the symbol but has no bars of it; an edit of the watchlist makes the collector try it again."""

    class Picky(ScriptedFeed):
        async def history(self, series: Series, start: int, end: int) -> Bars:
            if series.instrument == ETH:
                self.asked.append((series.instrument, start, end))
                raise UnknownSymbol(series.instrument.symbol)
            return await super().history(series, start, end)

    async def main() -> None:
        feed = Picky(Batch((bars((NOW, 10.0)),), NOW + 60), known=(BTC, ETH))
        clock = HandClock(NOW + 90)
        async with collecting(tmp_path, feed, clock, "ETH/USD\nBTC/USD\n") as (collector, store):
            await until(lambda: bool(stored(store)), "the other symbol's bar")
            assert collector.status.watched == 1
            assert [asked for asked, _, _ in feed.asked].count(ETH) == 1

    asyncio.run(main())


def test_a_stream_that_always_breaks_at_once_is_tried_less_and_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def rest(seconds: float) -> None:
        pauses.append(seconds)

    async def main() -> None:
        monkeypatch.setattr(Collector, "_rest", staticmethod(rest))
        feed = ScriptedFeed(*[FeedUnavailable("broken")] * 6)
        async with collecting(tmp_path, feed, HandClock(NOW + 90)):
            await until(lambda: len(pauses) >= 5, "five pauses")
        for number, pause in enumerate(pauses[:5]):
            assert 2**number / 2 <= pause <= 2**number

    asyncio.run(main())


def test_a_feed_that_is_away_for_a_day_is_still_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause of 2 to the power of 1,024 seconds is too large for a float."""
    pauses: list[float] = []

    async def rest(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.sleep(0)

    async def main() -> None:
        monkeypatch.setattr(Collector, "_rest", staticmethod(rest))
        monkeypatch.setattr(Collector, "_catch_up", away)
        async with collecting(tmp_path, ScriptedFeed(), HandClock(NOW + 90)):
            await until(lambda: len(pauses) > 1_100, "the attempts of a day")
        assert 30 <= pauses[-1] <= 60

    async def away(*_given: object) -> int:
        raise FeedUnavailable("away")

    asyncio.run(main())


def test_a_store_that_fails_for_a_while_does_not_end_the_collector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        monkeypatch.setattr(leased_work, "PAUSE", 0.01)
        feed = ScriptedFeed(Batch((bars((NOW, 10.0)),), NOW + 60), Batch((bars((NOW, 10.0)),), NOW + 60))
        real, failures = ParquetStore.write, [StoreError("disk is full")]

        def write(self: ParquetStore, *parts: Any, **more: Any) -> None:
            if failures and any(len(part) for part in parts[0]):
                raise failures.pop()
            real(self, *parts, **more)

        monkeypatch.setattr(ParquetStore, "write", write)
        async with collecting(tmp_path, feed, HandClock(NOW + 90)) as (_, store):
            await until(lambda: bool(stored(store)), "the bar that came again")
        assert not failures

    asyncio.run(main())


def test_a_vendor_that_is_ahead_of_the_machine_covers_nothing_that_has_not_ended(tmp_path: Path) -> None:
    """For example a desk whose clock is fixed at tomorrow: the machine's time decides which bars have closed."""

    async def main() -> None:
        now = int(time.time() // 60 * 60)
        clock = HandClock(now + 86400)
        feed = ScriptedFeed(
            Batch((bars((now - 120, 1.0), (now - 60, 2.0), (now + 7200, 3.0)),), now + 86340),
            Batch((), now + 86340),
        )
        async with collecting(tmp_path, feed, clock) as (collector, store):
            await until(lambda: not feed.script and collector.status.batches == 2, "both batches")
            ended = int(time.time() // 60 * 60)
            assert store.read(Series(BTC), 0, 2**40).time.tolist() == [now - 120, now - 60]
            assert collector.status.refused == {"from the future": 1}
            assert now <= store.gaps(Series(BTC), Span(now, now + 86400))[0].start <= ended
            assert collector.status.through <= ended
            assert store.audit.premature() == []

    asyncio.run(main())


def test_prices_and_volumes_beyond_sense_are_refused(tmp_path: Path) -> None:
    def one(at: int, price: float, volume: float) -> Bars:
        return make(BTC, Timeframe.M1, [at], [price], [price], [price], [price], [volume])

    async def main() -> None:
        offered = (
            one(NOW, 1e15, 1e18),
            one(NOW + 60, 1.1e15, 1.0),
            one(NOW + 60, 1e-16, 1.0),
            one(NOW + 60, 1.0, 1e19),
        )
        feed = ScriptedFeed(Batch(offered, NOW + 180))
        async with collecting(tmp_path, feed, HandClock(NOW + 200)) as (collector, store):
            await until(lambda: collector.status.batches == 1)
            assert stored(store) == {NOW: 1e15}
            assert collector.status.refused == {"price above 1e15": 1, "price below 1e-15": 1, "volume above 1e18": 1}

    asyncio.run(main())


def test_an_adapter_that_raises_something_unknown_ends_neither_the_collector_nor_other_feeds(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        feed = ScriptedFeed(
            Batch((bars((NOW, 10.0)),), NOW + 60),
            KeyError("a field that the vendor no longer sends"),
            Batch((bars((NOW + 60, 11.0)),), NOW + 120),
        )
        states: list[WorkState] = []
        async with collecting(tmp_path, feed, HandClock(NOW + 200)) as (collector, store):

            def noted() -> bool:
                states.append(collector.status.state)
                return len(stored(store)) == 2

            await until(noted, "the bar after the fault")
            await until(lambda: collector.status.state is WorkState.WORKING)
        assert WorkState.FAILED in states
        assert next(each.exc_info for each in caplog.records if "failed with KeyError" in each.getMessage())

    asyncio.run(main())


def test_a_history_that_an_adapter_cannot_read_costs_only_its_own_symbol(tmp_path: Path) -> None:
    class Faulty(ScriptedFeed):
        async def history(self, series: Series, start: int, end: int) -> Bars:
            if series.instrument == ETH:
                raise KeyError("a field that the vendor no longer sends")
            return await super().history(series, start, end)

    async def main() -> None:
        feed = Faulty(Batch((bars((NOW, 10.0)),), NOW + 60), known=(BTC, ETH))
        async with collecting(tmp_path, feed, HandClock(NOW + 90), "ETH/USD\nBTC/USD\n") as (_, store):
            await until(lambda: bool(stored(store)), "the other symbol's bar")

    asyncio.run(main())


def test_a_refused_bar_leaves_only_the_minute_of_its_own_symbol_uncovered(tmp_path: Path) -> None:
    nan = float("nan")

    async def main() -> None:
        bad = make(ETH, Timeframe.M1, [NOW], [nan], [1.0], [1.0], [1.0], [1.0])
        feed = ScriptedFeed(Batch((bars((NOW, 10.0)), bad), NOW + 60), known=(BTC, ETH))
        feed.mark = NOW  # so that the history has not covered this minute before
        async with collecting(tmp_path, feed, HandClock(NOW + 60), "ETH/USD\nBTC/USD\n") as (collector, store):
            await until(lambda: collector.status.batches == 1, "the batch")
            minute = Span(NOW, NOW + 60)
            assert store.gaps(Series(BTC), minute) == []
            assert store.gaps(Series(ETH), minute) == [minute]

    asyncio.run(main())
