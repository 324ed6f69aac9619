"""What the bar service makes bars of, with a vendor that has days, hours and minutes which do not agree."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from openbell.desk.bars.service import BarService
from openbell.feeds.none.feed import NoFeed
from openbell.market.bars import Bars, closed_at, resample
from openbell.market.clock import Clock, FixedClock, parse_time
from openbell.market.errors import FeedUnavailable
from openbell.market.instruments import Instrument, parse
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.series_plan import Native, buckets
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet import bar_files
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.port import Span
from tests.desk.facts import made_of
from tests.desk.scripted import ScriptedFeed
from tests.stores.samples import FILE, at, bars

AAPL, BTC = parse("AAPL"), parse("BTC/USD")
NOW = int(parse_time("2025-03-12T21:00:00Z"))
"""An hour after a session has closed."""
DAY = 86400
M1, H1, H4, D1, W1 = Timeframe.M1, Timeframe.H1, Timeframe.H4, Timeframe.D1, Timeframe.W1
IMPORT = Source(Origin.IMPORTED, "import")


class Vendor(ScriptedFeed):
    """Has native bars whose prices depend on the timeframe, so that it shows what an answer was made of."""

    def __init__(self, clock: Clock, natives: Mapping[Timeframe, Native]) -> None:
        super().__init__(known=(AAPL, BTC))
        self.offered = dict(natives)
        self.clock = clock
        self.requests: list[tuple[Series, int, int]] = []
        self.shift = 0
        """Seconds by which daily bars are cut at another time than ours."""

    async def natives(self, instrument: Instrument) -> Mapping[Timeframe, Native]:
        return self.offered

    async def history(self, series: Series, start: int, end: int) -> Bars:
        if self.down:
            raise FeedUnavailable("the vendor does not answer")
        self.requests.append((series, start, end))
        native = self.offered[series.timeframe]
        first = max(start, native.earliest(self.clock.epoch()))
        found = vendor_bars(series, first, min(end, int(self.clock.epoch())))
        if self.shift and series.timeframe is D1:
            return Bars(found.instrument, D1, found.time + self.shift, *found.columns()[1:])
        return found


def vendor_bars(series: Series, start: int, end: int) -> Bars:
    times, ends = buckets(series.instrument, series.timeframe, start, end + series.timeframe.seconds)
    if series.timeframe is M1 and series.instrument == AAPL:  # regular hours only
        days, closes = buckets(AAPL, D1, start - 2 * DAY, end + 2 * DAY)
        row = np.searchsorted(days, times, side="right") - 1
        inside = (row >= 0) & (times < closes[row])
        times, ends = times[inside], ends[inside]
    return bars(series, times[ends <= end], version=series.timeframe.seconds)


def run(folder: Path, work: Callable[[ParquetStore], Awaitable[None]]) -> None:
    async def main() -> None:
        with closing(ParquetStore(folder)) as store:
            await work(store)

    asyncio.run(main())


def desk(store: ParquetStore, now: float, natives: Mapping[Timeframe, Native]) -> tuple[BarService, Vendor]:
    clock = FixedClock(now)
    vendor = Vendor(clock, natives)
    return BarService(store, vendor, clock), vendor


ALL = {M1: Native(), H1: Native(delay=60.0), D1: Native(delay=7200.0)}


def test_native_bars_answer_with_few_requests_and_minutes_only_at_the_edge(tmp_path: Path) -> None:
    async def work(store: ParquetStore) -> None:
        service, vendor = desk(store, NOW, ALL)
        got = await service.newest(AAPL, D1, 200)
        today = int(parse_time("2025-03-12T13:30:00Z"))
        native = vendor_bars(Series(AAPL, D1), 0, today)
        edge = resample(vendor_bars(Series(AAPL), today, NOW), D1, NOW)
        assert got.take(slice(0, -1)).same_as(native.tail(199))
        assert got.tail(1).same_as(edge), "the day that is not published yet is made of minutes, as a whole"
        assert await made_of(service, got) == "1d+1m"
        assert await made_of(service, got.take(slice(0, -1))) == "1d"
        assert {series.timeframe for series, _, _ in vendor.requests} == {D1, M1}
        assert len(vendor.requests) == 2
        for timeframe, expected in ((W1, "1d"), (H4, "1h")):
            weeks = await service.newest(AAPL, timeframe, 20)
            base = vendor_bars(Series(AAPL, {W1: D1, H4: H1}[timeframe]), 0, NOW)
            assert weeks.same_as(resample(base, timeframe, NOW).tail(20))
            assert await made_of(service, weeks) == expected

    run(tmp_path, work)


def test_an_answer_as_of_a_moment_stays_when_more_is_fetched_and_published(tmp_path: Path) -> None:
    async def work(store: ParquetStore) -> None:
        async def answers() -> list[Bars]:
            service, _ = desk(store, NOW, ALL)
            return [await service.newest(symbol, each, 50) for symbol in (AAPL, BTC) for each in (H1, H4, D1, W1)]

        before = await answers()
        later, vendor = desk(store, NOW + 3 * DAY, ALL)
        for symbol in (AAPL, BTC):
            for timeframe in (D1, H1, M1):
                await later.newest(symbol, timeframe, 100)
            await later.fill(symbol, Span(NOW - 60 * DAY, NOW + 3 * DAY))
        assert vendor.requests
        assert all(now.same_as(then) for now, then in zip(await answers(), before, strict=True))

    run(tmp_path, work)


def test_a_published_bar_takes_the_place_of_the_one_made_of_minutes(tmp_path: Path) -> None:
    async def work(store: ParquetStore) -> None:
        clock = FixedClock(NOW)
        service = BarService(store, Vendor(clock, ALL), clock)
        assert await made_of(service, await service.newest(AAPL, D1, 1)) == "1m"
        later, _ = desk(store, NOW + 3 * 3600, ALL)
        got = await later.newest(AAPL, D1, 1)
        assert await made_of(later, got) == "1d"
        assert got.same_as(vendor_bars(Series(AAPL, D1), NOW - DAY, NOW + 3 * 3600))

    run(tmp_path, work)


@pytest.mark.parametrize("timeframe", [D1, W1])
def test_native_bars_that_are_cut_at_other_times_are_not_used(tmp_path: Path, timeframe: Timeframe) -> None:
    async def work(store: ParquetStore) -> None:
        service, vendor = desk(store, NOW, ALL)
        vendor.shift = 8 * 3600
        got = await service.newest(BTC, timeframe, 10)
        assert got.same_as(resample(vendor_bars(Series(BTC, H1), 0, NOW), timeframe, NOW).tail(10))
        assert await made_of(service, got) == "1h"
        assert len(store.read(Series(BTC, D1), 0, NOW)) == 0

    run(tmp_path, work)


def test_an_import_and_a_feed_each_give_their_part_of_a_series(tmp_path: Path) -> None:
    async def work(store: ParquetStore) -> None:
        old = bars(Series(AAPL, D1), buckets(AAPL, D1, NOW - 900 * DAY, NOW - 300 * DAY)[0], version=9)
        store.write([old], IMPORT, covers=Span(int(old.time[0]), closed_at(old)))
        since = closed_at(old) + 3600
        service, vendor = desk(store, NOW, {M1: Native(), D1: Native(since=since, delay=7200.0)})
        got, total = await service.page(AAPL, D1, 1000, 0)
        expected = vendor_bars(Series(AAPL, D1), since, NOW - DAY)
        assert got.between(0, since).same_as(old)
        assert got.between(since, NOW - DAY).same_as(expected)
        assert total == len(got) == len(old) + len(expected) + 1
        assert all(start >= since for series, start, _ in vendor.requests if series.timeframe is D1)

    run(tmp_path, work)


def test_a_symbol_with_days_only_answers_days_and_weeks(tmp_path: Path) -> None:
    async def work(store: ParquetStore) -> None:
        days = bars(Series(AAPL, D1), buckets(AAPL, D1, NOW - 3000 * DAY, NOW - 20 * DAY)[0])
        store.write([days], IMPORT, covers=Span(int(days.time[0]), closed_at(days)))
        service = BarService(store, NoFeed(), FixedClock(NOW))
        assert await service.known(AAPL)
        assert (await service.latest(AAPL, D1)).same_as(days.tail(3000))
        weeks = resample(days, W1, NOW).take(slice(0, -1))  # the days end on a Thursday: that week is not whole
        assert (await service.latest(AAPL, W1)).same_as(weeks)
        page, total = await service.page(AAPL, W1, 5, 2)
        assert page.same_as(weeks.take(slice(-7, -2)))
        assert total == len(weeks)
        for timeframe in (M1, H1, H4):
            assert len(await service.latest(AAPL, timeframe)) == 0
            assert (await service.page(AAPL, timeframe, 5, 0))[1] == 0

    run(tmp_path, work)


def test_the_total_follows_every_change_of_the_store(tmp_path: Path) -> None:
    async def work(store: ParquetStore) -> None:
        days = bars(Series(AAPL, D1), buckets(AAPL, D1, NOW - 900 * DAY, NOW)[0])
        service = BarService(store, NoFeed(), FixedClock(NOW))

        async def totals(service: BarService = service) -> list[int]:
            return [(await service.page(AAPL, timeframe, 2, 0))[1] for timeframe in (D1, D1, W1)]

        def expected(stored: Bars) -> list[int]:
            return [len(stored), len(stored), len(resample(stored, W1, NOW))]

        def write(some: Bars, source: Source, replace: bool = False) -> None:
            store.write([some], source, covers=Span(int(some.time[0]), closed_at(some)), replace=replace)

        monday = int(np.flatnonzero(np.diff(days.time) > 2 * DAY)[20]) + 1
        older, newer, other = days.take(slice(monday)), days.take(slice(monday, None)), Source(Origin.LIVE, "alpaca")
        some = newer.take(np.arange(len(newer)) % 20 != 5)
        write(some, IMPORT)
        assert await totals() == expected(some)
        store.write([newer], IMPORT)  # the span was covered before
        assert await totals() == expected(newer)
        with closing(ParquetStore(tmp_path)) as another:
            another.write([older], IMPORT, covers=Span(int(older.time[0]), closed_at(older)))
        assert await totals() == expected(days)
        write(newer, other, replace=True)
        assert await totals() == expected(days)
        (tmp_path / "stocks" / "1d" / "AAPL_all.import-raw.parquet").unlink()
        after = await totals()
        assert after == await totals(BarService(store, NoFeed(), FixedClock(NOW)))
        assert after[0] < len(days)

    run(tmp_path, work)


def test_a_vendor_that_fails_leaves_what_is_stored(tmp_path: Path) -> None:
    async def work(store: ParquetStore) -> None:
        service, _ = desk(store, NOW, ALL)
        before = await service.newest(AAPL, D1, 50)
        later, vendor = desk(store, NOW + 2 * DAY, ALL)
        vendor.down = True
        got = await later.newest(AAPL, D1, 50)
        assert got.time[-1] == before.time[-1]
        empty, vendor = desk(store, NOW, ALL)
        vendor.down = True
        with pytest.raises(FeedUnavailable):
            await empty.newest(BTC, D1, 5)

    run(tmp_path, work)


def test_bars_that_a_killed_writer_left_are_seen_at_every_timeframe(tmp_path: Path) -> None:
    """It was killed after it had replaced a file and before its commit, while this desk was reading."""

    async def work(store: ParquetStore) -> None:
        series = Series(AAPL, D1)
        old = vendor_bars(series, NOW - 90 * DAY, NOW)
        new = bars(series, old.time, 99)
        store.write([old], IMPORT, covers=Span(int(old.time[0]), NOW))
        service = BarService(store, NoFeed(), FixedClock(NOW))
        with store._buffer.transaction() as db:
            store._buffer.begin_change(db, store._buffer.ensure_series(db, series.name))
        for timeframe in (D1, W1):
            assert (await service.latest(AAPL, timeframe)).tail(5).same_as(resample(old, timeframe, NOW).tail(5))
        bar_files.write(bar_files.bar_file(tmp_path, series, "all.import-raw"), new, IMPORT)
        for timeframe in (D1, W1):
            assert (await service.latest(AAPL, timeframe)).tail(5).same_as(resample(new, timeframe, NOW).tail(5))

    run(tmp_path, work)


def test_a_feed_that_adjusts_otherwise_is_asked_once_and_not_mixed_with_stored_days(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    days = vendor_bars(Series(AAPL, D1), NOW - 300 * DAY, NOW - 5 * DAY)

    async def work(store: ParquetStore) -> None:
        covers = Span(int(days.time[0]), closed_at(days))
        store.write([days], replace(IMPORT, adjustment="all"), covers=covers)
        clock = FixedClock(NOW)
        vendor = Vendor(clock, {D1: Native(delay=16200), M1: Native()})
        service = BarService(store, vendor, clock)
        for _ in range(3):
            assert (await service.newest(AAPL, D1, 100)).same_as(days.tail(100)), "no raw day after adjusted ones"
            assert (await service.newest(AAPL, W1, 10)).time[-1] < days.time[-1]
        assert [series.timeframe for series, *_ in vendor.requests].count(D1) <= 2, "one gap on each side"
        assert caplog.text.count("which cannot be mixed") == 1
        assert "to use these, delete the stored files; stored bars are used" in caplog.text.replace(")", "")
        assert str(service.history.refused(days.series)).startswith("AAPL 1d all holds bars of imported/import/all")
        raw = vendor_bars(Series(AAPL, D1), NOW - 300 * DAY, NOW - 5 * DAY)
        store.write([raw], IMPORT, covers=covers, replace=True)
        found = await service.newest(AAPL, D1, 100)
        assert found.time[-1] > days.time[-1] + 4 * DAY
        assert service.history.refused(days.series) is None

    run(tmp_path, work)


def test_a_few_minutes_do_not_make_a_bar_that_longer_ones_cover_in_part(tmp_path: Path) -> None:
    """Twenty hours of a day are no day, and neither are ten minutes beside them."""
    day = at("2025-03-04")
    with closing(ParquetStore(tmp_path)) as store:
        hours = bars(Series(BTC, Timeframe.H1), day + 3600 * np.arange(20))
        store.write([hours], FILE, covers=Span(day, day + 20 * 3600))
        service = BarService(store, NoFeed(), FixedClock(day + 3 * 86400))
        assert len(asyncio.run(service.newest(BTC, Timeframe.D1, 5))) == 0
        minutes = bars(Series(BTC), day + 60 * np.arange(10))
        store.write([minutes], FILE, covers=Span(day, day + 600))
        assert len(asyncio.run(service.newest(BTC, Timeframe.D1, 5))) == 0
        whole = bars(Series(BTC), day + 60 * np.arange(1440))
        store.write([whole], FILE, covers=Span(day, day + 86400))
        assert len(asyncio.run(service.newest(BTC, Timeframe.D1, 5))) == 1
