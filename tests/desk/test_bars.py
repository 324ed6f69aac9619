"""The bar service: read-through, single flight, closed bars only, other processes' writes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.desk.bars.history_fetcher import GroupedWrites
from openbell.desk.bars.service import BarService
from openbell.feeds.none.feed import NoFeed
from openbell.feeds.port import Feed
from openbell.feeds.sim.bars import minute_bars
from openbell.feeds.sim.feed import SimFeed
from openbell.market.bars import Bars, empty, make, merge, resample
from openbell.market.clock import FixedClock
from openbell.market.errors import FeedUnavailable, SourceConflict, StoreError, UnknownSymbol
from openbell.market.instruments import Instrument, parse
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.series_plan import buckets
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.port import Span
from openbell.stores.threads import CALLER, Threads
from tests.clocks import HandClock
from tests.desk.scripted import BTC, ScriptedFeed, bars
from tests.waiting import until

NOW = 1_767_744_000  # 2026-01-07T00:00:00Z
LIVE = Source(Origin.LIVE, "scripted")


def run(folder: Path, work: Callable[[ParquetStore], Coroutine[Any, Any, None]]) -> None:
    store = ParquetStore(folder)
    try:
        asyncio.run(work(store))
    finally:
        store.close()


def minutes(count: int, end: int = NOW) -> dict[int, float]:
    return {end - 60 * (count - n): 100.0 + n % 7 for n in range(count)}


def test_what_the_store_lacks_is_asked_once_and_stored(tmp_path: Path) -> None:
    async def work(store: ParquetStore) -> None:
        feed = ScriptedFeed()
        feed.table[BTC] = minutes(100)
        service = BarService(store, feed, FixedClock(NOW))
        first = await service.latest(BTC, Timeframe.M1)
        assert len(first) == 100
        asked = len(feed.asked)
        assert await service.latest(BTC, Timeframe.M1) is first
        other = BarService(store, feed, FixedClock(NOW))
        assert (await other.latest(BTC, Timeframe.M1)).same_as(first)
        assert len(feed.asked) == asked, "a covered span is not asked for again, quiet minutes included"

    run(tmp_path, work)


def test_callers_at_one_time_share_one_request(tmp_path: Path) -> None:
    async def work(store: ParquetStore) -> None:
        feed = ScriptedFeed()
        feed.table[BTC] = minutes(100)
        feed.gate = asyncio.Event()
        service = BarService(store, feed, FixedClock(NOW))
        calls = [asyncio.create_task(service.latest(BTC, Timeframe.M1)) for _ in range(20)]
        while not feed.asked:
            await asyncio.sleep(0)
        feed.gate.set()
        answers = await asyncio.gather(*calls)
        assert all(answer is answers[0] for answer in answers)
        spans = [(start, end) for _, start, end in feed.asked]
        assert len(spans) == len(set(spans))

    run(tmp_path, work)


def test_principals_at_one_time_share_one_request_to_the_vendor(tmp_path: Path) -> None:
    async def ask(service: BarService, principal: str) -> Bars:
        CALLER.set(principal)
        return await service.latest(BTC, Timeframe.M1)

    async def work(store: ParquetStore) -> None:
        feed = ScriptedFeed()
        feed.table[BTC] = minutes(100)
        feed.gate = asyncio.Event()
        service = BarService(store, feed, FixedClock(NOW))
        calls = [asyncio.create_task(ask(service, name)) for name in ("alice", "bob", "carol")]
        flights = service.history._flights
        await until(lambda: len(calls) in flights._waiting.values(), "all calls to wait for the request")
        calls[0].cancel()  # the others still get what its call has started
        feed.gate.set()
        _, *answers = await asyncio.gather(*calls, return_exceptions=True)
        assert [isinstance(answer, Bars) and len(answer) for answer in answers] == [100, 100]
        assert len(feed.asked) == len(set(feed.asked))
        assert service.history.fetches[BTC] == len(feed.asked)

    run(tmp_path, work)


def test_a_failing_feed_is_said_when_nothing_is_stored_and_covered_when_something_is(tmp_path: Path) -> None:
    async def work(store: ParquetStore) -> None:
        feed = ScriptedFeed()
        feed.down = True
        service = BarService(store, feed, FixedClock(NOW))
        with pytest.raises(FeedUnavailable):
            await service.latest(BTC, Timeframe.M1)
        store.write([bars(*minutes(50).items())], LIVE)
        assert len(await service.latest(BTC, Timeframe.M1)) == 50
        feed.down = False
        feed.table[BTC] = minutes(80)
        later = BarService(store, feed, FixedClock(NOW))
        assert len(await later.latest(BTC, Timeframe.M1)) == 80

    run(tmp_path, work)


def test_what_nobody_knows_is_unknown(tmp_path: Path) -> None:
    async def work(store: ParquetStore) -> None:
        service = BarService(store, NoFeed(), FixedClock(NOW))
        with pytest.raises(UnknownSymbol):
            await service.latest(parse("ZZZ"), Timeframe.M1)

    run(tmp_path, work)


def test_another_process_s_bars_are_seen(tmp_path: Path) -> None:
    async def work(store: ParquetStore) -> None:
        service = BarService(store, NoFeed(), FixedClock(NOW))
        store.write([bars(*minutes(60).items())], LIVE)
        before = await service.latest(BTC, Timeframe.M5)
        other = ParquetStore(tmp_path)
        correction = NOW - 60
        other.write([bars((correction, 555.0))], LIVE)
        after = await service.latest(BTC, Timeframe.M5)
        assert after.close[-1] == 555.0
        assert before.close[-1] != 555.0
        other.compact(NOW)
        assert (await service.latest(BTC, Timeframe.M5)).same_as(after)
        other.write([bars((NOW - 3600 - 60, 1.0))], LIVE)
        assert len(await service.latest(BTC, Timeframe.M1)) == 61
        other.close()

    run(tmp_path, work)


MANY = [parse(symbol) for symbol in ("BTC/USD", "ETH/USD", "SOL/USD", "AAPL", "MSFT")]


def test_the_bars_of_many_are_those_of_each(tmp_path: Path) -> None:
    """When they are first read, in memory, after another process's write, and in a new minute."""

    async def work(store: ParquetStore) -> None:
        clock = HandClock(NOW + 1)
        many, single = (BarService(store, NoFeed(), clock) for _ in range(2))
        other = ParquetStore(tmp_path)

        async def compare() -> dict[Instrument, Bars]:
            found = await many.latest_of([*MANY, parse("ZZZ")], Timeframe.M1)
            assert list(found) and parse("ZZZ") not in found
            for each in MANY:
                assert found[each].same_as(await single.latest(each, Timeframe.M1))
            return found

        for each in MANY:
            other.write([bars(*minutes(60).items(), instrument=each)], LIVE)
        first = await compare()
        again = await compare()
        assert all(again[each] is first[each] for each in MANY)
        other.write([bars((NOW - 120, 555.0), instrument=each) for each in MANY[:3]], LIVE)
        corrected = await compare()
        assert [corrected[each].close[-2] == 555.0 for each in MANY] == [True, True, True, False, False]
        clock.advance(60)
        assert [len(some) for some in (await compare()).values()] == [60] * len(MANY)
        other.write([bars((NOW, 7.0), instrument=each) for each in MANY[1:]], LIVE)
        fresh = await compare()
        assert [len(fresh[each]) for each in MANY] == [60, 61, 61, 61, 61]
        other.compact(NOW + 60)
        await compare()
        other.close()

    run(tmp_path, work)


def test_of_many_those_that_the_feed_fails_on_are_left_out(tmp_path: Path) -> None:
    async def work(store: ParquetStore) -> None:
        feed = ScriptedFeed(known=MANY)
        feed.down = True
        store.write([bars(*minutes(50).items())], LIVE)
        service = BarService(store, feed, FixedClock(NOW))
        found = await service.latest_of(MANY, Timeframe.M1)
        assert {each: len(some) for each, some in found.items()} == {BTC: 50}

    run(tmp_path, work)


class Counting(ParquetStore):
    """Counts its writes."""

    writes = 0

    def write(self, parts: Sequence[Bars], *given: Any, **more: Any) -> None:
        self.writes += 1
        super().write(parts, *given, **more)


def test_a_new_minute_of_many_is_stored_in_one_write(tmp_path: Path) -> None:
    async def work() -> None:
        store = Counting(tmp_path)
        clock = HandClock(NOW + 1)
        feed = ScriptedFeed(known=MANY)
        feed.table = {each: minutes(50) for each in MANY}
        service = BarService(store, feed, clock)
        await service.latest_of(MANY, Timeframe.M1)
        for each in MANY:
            feed.table[each][NOW] = 7.0
        clock.advance(60)
        before = store.writes
        found = await service.latest_of(MANY, Timeframe.M1)
        assert store.writes == before + 1
        assert [float(found[each].close[-1]) for each in MANY] == [7.0] * len(MANY)
        assert not any(store.gaps(Series(each), Span(NOW, NOW + 60)) for each in MANY)
        await service.threads.close()
        store.close()

    asyncio.run(work())


def test_bars_that_cannot_be_stored_do_not_keep_others_from_it(tmp_path: Path) -> None:
    """One instrument has prices of the same month that are adjusted otherwise."""
    coin, stock = MANY[0], MANY[3]

    async def work(store: ParquetStore) -> None:
        clock = HandClock(NOW + 1)
        feed = ScriptedFeed(known=MANY)
        feed.table = {each: {NOW: 7.0} for each in MANY}
        for each in (coin, stock):
            store.write([bars((NOW - 60, 5.0), instrument=each)], Source(Origin.IMPORTED, "csv", "all"))
        service = BarService(store, feed, clock)
        clock.advance(60)
        failures = await asyncio.gather(*(service.fill(each, Span(NOW, NOW + 60)) for each in MANY))
        refused = [each for each, failure in zip(MANY, failures, strict=True) if isinstance(failure, SourceConflict)]
        assert refused == [stock], "a coin is not adjusted for anything"
        assert [len(store.read(Series(each), NOW, NOW + 60)) for each in MANY] == [1, 1, 1, 0, 1]

    run(tmp_path, work)


def test_a_caller_that_leaves_has_its_bars_stored_all_the_same(tmp_path: Path) -> None:
    async def work(store: ParquetStore) -> None:
        threads = Threads()
        writes = GroupedWrites(store, threads)
        task = asyncio.create_task(writes.write(bars((NOW, 7.0)), LIVE, Span(NOW, NOW + 60)))
        await asyncio.sleep(0)
        task.cancel()
        await writes.write(bars((NOW, 8.0), instrument=MANY[1]), LIVE, Span(NOW, NOW + 60))
        await threads.close()
        assert [len(store.read(Series(each), NOW, NOW + 60)) for each in MANY[:2]] == [1, 1]

    run(tmp_path, work)


def test_a_bar_of_a_live_feed_closes_with_the_watermark_or_after_the_grace(tmp_path: Path) -> None:
    async def work(store: ParquetStore) -> None:
        clock = HandClock(NOW + 5)
        feed = ScriptedFeed()
        feed.table[BTC] = {**minutes(50), NOW - 60: 7.0}
        feed.mark = NOW - 30
        service = BarService(store, feed, clock)
        assert (await service.latest(BTC, Timeframe.M1)).time[-1] == NOW - 120
        feed.mark = NOW
        assert (await service.latest(BTC, Timeframe.M1)).time[-1] == NOW - 60
        feed.mark = NOW - 300
        silent = BarService(store, feed, clock)
        assert (await silent.latest(BTC, Timeframe.M1)).time[-1] == NOW - 120
        clock.advance(15.5)
        assert (await silent.latest(BTC, Timeframe.M1)).time[-1] == NOW - 60

    run(tmp_path, work)


def test_what_a_feed_delivers_after_its_grace_is_fetched_when_it_comes(tmp_path: Path) -> None:
    """The minute is answered without its bar, and not noted as covered: the feed's history may still grow there."""

    async def work(store: ParquetStore) -> None:
        clock = HandClock(NOW + 30)
        feed = ScriptedFeed()
        feed.table[BTC] = {time: close for time, close in minutes(50).items() if time < NOW - 60}
        feed.mark = NOW - 60.0
        assert (await BarService(store, feed, clock).latest(BTC, Timeframe.M1)).time[-1] == NOW - 120
        assert store.gaps(Series(BTC), Span(NOW - 3000, NOW)) == [Span(NOW - 60, NOW)]
        feed.table[BTC][NOW - 60], feed.mark = 7.0, float(NOW)
        clock.advance(60)
        assert (await BarService(store, feed, clock).latest(BTC, Timeframe.M1)).time[-1] == NOW - 60
        assert store.gaps(Series(BTC), Span(NOW - 3000, NOW)) == []

    run(tmp_path, work)


@settings(deadline=None, max_examples=15)
@given(
    timeframe=st.sampled_from([Timeframe.M1, Timeframe.M5, Timeframe.M15, Timeframe.H1]),
    steps=st.lists(st.integers(1, 400), min_size=1, max_size=6),
    symbol=st.sampled_from(["BTC/USD", "AAPL"]),
)
def test_as_time_goes_on_the_ring_equals_a_fresh_read(
    tmp_path_factory: pytest.TempPathFactory, timeframe: Timeframe, steps: list[int], symbol: str
) -> None:
    async def work(store: ParquetStore) -> None:
        clock = HandClock(NOW + 61_200)
        instrument = parse(symbol)
        service = BarService(store, SimFeed(clock), clock)
        for step in steps:
            clock.advance(step * 37)
            kept = await service.latest(instrument, timeframe)
            fresh = await BarService(store, SimFeed(clock), clock).latest(instrument, timeframe)
            assert kept.same_as(fresh)
            end = service.closed_until()
            begin = int(kept.time[0]) // 86400 * 86400 - 86400
            whole = resample(minute_bars(instrument, 7, begin, end), timeframe, end)
            assert kept.same_as(whole.tail(len(kept)))
            assert len(kept) == 3000 or symbol == "AAPL"

    run(tmp_path_factory.mktemp("ring"), work)


def test_larger_bars_are_built_in_pieces_without_a_seam(tmp_path: Path) -> None:
    async def work(store: ParquetStore) -> None:
        clock = FixedClock(NOW)
        for symbol in ("ETH/USD", "SPY"):
            instrument = parse(symbol)
            await BarService(store, SimFeed(clock), clock).fill(instrument, Span(NOW - 300 * 86400, NOW))
            service = BarService(store, NoFeed(), clock)
            for timeframe in (Timeframe.H1, Timeframe.H4, Timeframe.D1, Timeframe.W1):
                got = await service.latest(instrument, timeframe)
                every = resample(store.read(Series(instrument), 0, NOW), timeframe, NOW)
                whole = buckets(instrument, timeframe, NOW - 300 * 86400, NOW)[0]  # not the week in which it begins
                assert got.same_as(every.take(np.isin(every.time, whole)).tail(3000)), (symbol, timeframe)
                assert (np.diff(got.time) > 0).all()

    run(tmp_path, work)


def test_simulated_history_before_the_feeds_edge_has_no_cut_bucket(tmp_path: Path) -> None:
    async def work(store: ParquetStore) -> None:
        clock = FixedClock(NOW + 12_345)
        service = BarService(store, SimFeed(clock), clock)
        got = await service.latest(parse("AAPL"), Timeframe.H1)
        feed = SimFeed(clock)
        day = int(got.time[0]) // 86400 * 86400
        whole = resample(await feed.history(Series(parse("AAPL")), day, day + 86400), Timeframe.H1, NOW)
        assert merge(got.between(day, day + 86400)).same_as(whole.between(int(got.time[0]), day + 86400))

    run(tmp_path, work)


def test_a_store_that_cannot_write_is_said_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(store: ParquetStore) -> None:
        def full(*_: Any, **__: Any) -> None:
            raise StoreError("disk is full")

        monkeypatch.setattr(store, "write", full)
        feed = ScriptedFeed()
        feed.table[BTC] = minutes(10)
        with pytest.raises(StoreError, match="disk is full"):
            await BarService(store, feed, FixedClock(NOW)).latest(BTC, Timeframe.M1)

    run(tmp_path, work)


# A clock ahead of the machine


class Forming(ScriptedFeed):
    """A vendor that answers with whatever it has, the minute under way included."""

    async def history(self, series: Series, start: int, end: int) -> Bars:
        self.asked.append((series.instrument, start, end))
        now = int(time.time() // 60 * 60)
        return bars(*((t, 100.0) for t in range(max(start, now - 3600), now + 60, 60)), instrument=series.instrument)


@pytest.mark.parametrize("ahead", [90, 86400, 40 * 86400])
def test_a_clock_ahead_of_the_machine_stores_nothing_unfinished_and_covers_nothing_to_come(
    tmp_path: Path, ahead: int
) -> None:
    async def work(store: ParquetStore) -> None:
        began = int(time.time() // 60 * 60)
        service = BarService(store, Forming(), FixedClock(time.time() + ahead))
        shown = await service.latest(BTC, Timeframe.M1)
        await service.fill(BTC, Span(began - 600, began + ahead))
        ended = int(time.time() // 60 * 60)
        stored = store.read(Series(BTC), 0, 2**40)
        assert began - 60 <= shown.time[-1] <= ended - 60
        assert stored.time[-1] <= ended - 60, "the minute under way is not stored"
        assert store.gaps(Series(BTC), Span(began - 600, began + 86400))[-1].end == began + 86400
        assert store.gaps(Series(BTC), Span(began - 600, began + 86400))[-1].start <= ended
        assert store.audit.premature() == []

    run(tmp_path, work)


def test_what_a_vendor_says_of_the_time_to_come_is_not_believed(tmp_path: Path) -> None:
    async def work(store: ParquetStore) -> None:
        feed = ScriptedFeed()
        feed.table[BTC] = minutes(100, NOW + 3000)
        feed.mark = NOW + 86400
        service = BarService(store, feed, FixedClock(NOW))
        assert await service.fill(BTC, Span(NOW - 600, NOW + 3600)) is None
        assert store.read(Series(BTC), 0, 2**40).time[-1] == NOW - 60
        assert store.gaps(Series(BTC), Span(NOW - 600, NOW + 3600)) == [Span(NOW, NOW + 3600)]

    run(tmp_path, work)


def test_bars_of_a_history_that_cannot_be_true_are_left_out(tmp_path: Path) -> None:
    class Mad(ScriptedFeed):
        async def history(self, series: Series, start: int, end: int) -> Bars:
            t = [NOW - 180, NOW - 120, NOW - 60]
            price, volume = [1.0, 1e300, 3.0], [1.0, 1.0, 1e308]
            return make(series.instrument, Timeframe.M1, t, price, price, price, price, volume)

    async def work(store: ParquetStore) -> None:
        service = BarService(store, Mad(), FixedClock(NOW))
        got = await service.latest(BTC, Timeframe.M1)
        assert got.close.tolist() == [1.0]
        assert store.gaps(Series(BTC), Span(NOW - 180, NOW)) == [Span(NOW - 120, NOW)], "they may be corrected"
        asked = service.history.fetches[BTC]
        await service.fill(BTC, Span(NOW - 180, NOW))
        assert service.history.fetches[BTC] == asked, "not again at once"

    run(tmp_path, work)


# Pages and their total


async def every_page(service: BarService, instrument: Instrument, timeframe: Timeframe, limit: int) -> tuple[Bars, int]:
    """All bars, page after page as long as there are more, and the total that the last page named."""
    parts: list[Bars] = []
    offset, more = 0, True
    while more:
        page, total = await service.page(instrument, timeframe, limit, offset)
        assert len(page) == min(limit, max(0, total - offset)), (offset, total)
        parts.insert(0, page)
        offset, more = offset + limit, offset + limit < total
    return merge(empty(instrument, timeframe), *parts), total


@pytest.mark.parametrize("symbol", ["BTC/USD", "SPY", "BITQ", "EUR/USD"])
@pytest.mark.parametrize("timeframe", [Timeframe.M15, Timeframe.D1, Timeframe.W1])
def test_the_total_of_the_simulator_is_exact_whatever_was_asked_before(
    tmp_path: Path, symbol: str, timeframe: Timeframe
) -> None:
    instrument = parse(symbol)
    # In the middle of a session, of an hour and of a week.
    clock = FixedClock(NOW + 15 * 3600 + 1234)

    async def work(store: ParquetStore) -> None:
        service = BarService(store, SimFeed(clock), clock)
        few, first = await service.page(instrument, timeframe, 3, 0)
        assert len(store.read(Series(instrument), 0, 2**40)) < 200_000, "a few bars need no year of minutes"
        whole, last = await every_page(service, instrument, timeframe, 6000)
        again, after = await BarService(store, SimFeed(clock), clock).page(instrument, timeframe, 3, 0)
        assert first == last == after == len(whole)
        assert again.same_as(few)
        assert again.same_as(whole.tail(3))
        assert (await service.page(instrument, timeframe, 3, first + 5))[1] == first

    run(tmp_path, work)


def test_simulated_bars_from_before_the_feeds_reach_do_not_change_a_page(tmp_path: Path) -> None:
    async def work(store: ParquetStore) -> None:
        earlier, later = FixedClock(NOW - 60 * 86400), FixedClock(NOW)
        before = await every_page(BarService(store, SimFeed(later), later), BTC, Timeframe.D1, 100)
        await every_page(BarService(store, SimFeed(earlier), earlier), BTC, Timeframe.D1, 100)
        after = await every_page(BarService(store, SimFeed(later), later), BTC, Timeframe.D1, 100)
        assert after[1] == before[1]
        assert after[0].same_as(before[0])

    run(tmp_path, work)


class Seldom(ScriptedFeed):
    """A live vendor whose history is long and whose length nobody knows."""

    def earliest(self, now: float) -> int:
        return NOW - 3000 * 86400


@pytest.mark.parametrize("every", [1, 7, 300])
def test_pages_of_a_vendor_end_at_the_total_that_the_last_one_names(tmp_path: Path, every: int) -> None:
    """The pair began to trade some time ago, a bar every so many minutes."""

    async def work(store: ParquetStore) -> None:
        feed = Seldom()
        feed.table[BTC] = {NOW - 60 * every * n: 100.0 + n % 5 for n in range(1, 500)}
        clock = FixedClock(NOW)
        totals = []
        for limit in (100, 33, 1000):
            service = BarService(store, feed, clock)
            first = (await service.page(BTC, Timeframe.M1, 10, 0))[1]
            parts: list[Bars] = []
            offset, more = 0, True
            while more:
                page, total = await service.page(BTC, Timeframe.M1, limit, offset)
                assert len(page) == min(limit, 499 - offset)
                parts.insert(0, page)
                offset, more = offset + limit, offset + limit < total
            assert total == 499
            assert merge(*parts).time.tolist() == sorted(feed.table[BTC])
            totals.append(first)
        assert len(set(totals)) == 1, "the same question, the same answer"
        assert totals[0] >= 499, "an upper bound"
        assert (await service.page(BTC, Timeframe.M1, 10, 600))[1] == 499
        assert min(start for _, start, _ in feed.asked) > NOW - 300 * 86400, "not asked for ever"

    run(tmp_path, work)


@pytest.mark.parametrize("make_feed", [NoFeed, ScriptedFeed])
def test_without_a_feed_the_total_is_what_is_stored(tmp_path: Path, make_feed: Callable[[], Feed]) -> None:
    eth = parse("ETH/USD")  # not known to the scripted feed either

    async def work(store: ParquetStore) -> None:
        store.write([bars(*minutes(250).items(), instrument=eth)], LIVE)
        service = BarService(store, make_feed(), FixedClock(NOW))
        assert (await service.page(eth, Timeframe.M1, 5, 0))[1] == 250
        assert (await every_page(service, eth, Timeframe.M5, 7))[1] == 50

    run(tmp_path, work)


def test_a_pair_with_missing_minutes_is_asked_for_little_more(tmp_path: Path) -> None:
    async def work(store: ParquetStore) -> None:
        feed = ScriptedFeed(known=(BTC,))
        feed.table[BTC] = {NOW - 60 * n: 1.0 for n in range(1, 50_000) if n % 7}
        service = BarService(store, feed, HandClock(NOW + 1))
        page, _ = await service.page(BTC, Timeframe.M1, 20, 0)
        assert len(page) == 20
        assert sum(end - start for _, start, end in feed.asked) // 60 < 2000

    run(tmp_path, work)
