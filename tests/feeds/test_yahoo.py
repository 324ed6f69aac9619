"""The Yahoo feed, tested with a local server that has the protocol of Yahoo's charts and injects faults."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, closing
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from openbell.desk.bars import collector as collector_module
from openbell.desk.bars.collector import Collector
from openbell.desk.bars.service import BarService
from openbell.desk.bars.watchlist import WatchlistFile
from openbell.feeds.port import Batch, Feed
from openbell.feeds.yahoo import connection
from openbell.feeds.yahoo import feed as feed_module
from openbell.feeds.yahoo.candles import DELAY, yahoo_symbol
from openbell.feeds.yahoo.connection import shortest
from openbell.feeds.yahoo.feed import SETTLE, YahooFeed
from openbell.market.bars import Bars, empty, merge, resample
from openbell.market.clock import Clock, FixedClock, SystemClock
from openbell.market.errors import FeedUnavailable, NoSuchSeries, SettingsError, UnknownSymbol
from openbell.market.instruments import Instrument, parse
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.sessions import sessions_of
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.port import Span
from tests.client import Client, run
from tests.clocks import HandClock
from tests.counts import runs
from tests.desk.facts import made_of
from tests.desk.scripted import watching_hub
from tests.feeds.contract import NOW, FeedContract
from tests.feeds.exchange_server import Rate
from tests.feeds.prices import prices
from tests.feeds.yahoo_server import AAPL, BTC, DAY, EUR, Row, YahooServer
from tests.waiting import until

pytestmark = pytest.mark.skipif(find_spec("yfinance") is None, reason="pip install 'openbell[yahoo]'")

FAULT_SCHEDULES = runs(3, soak=60)
D1, H1, M1 = Timeframe.D1, Timeframe.H1, Timeframe.M1
SATURDAY = 1_768_053_600  # 2026-01-10T14:00:00Z
AFTER_CLOSE = 1_767_823_200  # 2026-01-07T22:00:00Z, an hour after the close


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[YahooServer]:
    with YahooServer(FixedClock(NOW + 30), latency=0.0) as running:
        running.rate = Rate(1e9, 1, {})
        monkeypatch.setattr(feed_module, "MACHINE", FixedClock(NOW + 30))
        yield running


async def no_pause(_seconds: float) -> None:
    await asyncio.sleep(0)


def make_feed(server: YahooServer, clock: Clock | None = None) -> YahooFeed:
    server.clock = clock or server.clock
    return YahooFeed(server.clock, proxy=server.proxy, pause=no_pause)


def history(feed: YahooFeed, series: Series, start: int, end: int) -> Bars:
    async def main() -> Bars:
        try:
            return await feed.history(series, start, end)
        finally:
            await feed.close()

    return asyncio.run(main())


class TestYahoo(FeedContract):
    known = (AAPL, BTC, EUR)

    @pytest.fixture(autouse=True)
    def running(self, server: YahooServer) -> None:
        self.server = server

    def make(self, clock: Clock, folder: Path) -> Feed:
        return make_feed(self.server, clock)


# What it is


def test_prices_are_adjusted_for_splits_and_the_source_says_so() -> None:
    feed = YahooFeed(FixedClock(NOW))
    assert (feed.name, str(feed.source), feed.origin) == ("yahoo", "live/yahoo/split", "live")


@pytest.mark.parametrize(
    ("ours", "yahoos"),
    [("AAPL", "AAPL"), ("BRK.B", "BRK-B"), ("BTC/USD", "BTC-USD"), ("UNI/USD", "UNI7083-USD"), ("EUR/USD", "EURUSD=X")],
)
def test_symbols_are_converted(ours: str, yahoos: str) -> None:
    assert yahoo_symbol(parse(ours)) == yahoos


def test_only_timeframes_with_our_buckets_are_native(server: YahooServer) -> None:
    feed = make_feed(server)
    natives = {each: asyncio.run(feed.natives(each)) for each in (AAPL, BTC, EUR)}
    short = ["M1", "M5", "M15"]
    assert [each.name for each in natives[AAPL]] == [*short, "D1"], "hours of stocks begin at 9:30"
    assert [each.name for each in natives[BTC]] == [*short, "H1", "D1"]
    assert [each.name for each in natives[EUR]] == [*short, "H1"], "days of forex begin at midnight in London"
    days = [int(NOW - natives[BTC][each].earliest(NOW)) / DAY for each in (M1, Timeframe.M5, Timeframe.M15, H1)]
    assert [round(each) for each in days] == [30, 60, 60, 730]


def test_the_reach_counts_from_the_machines_time_whatever_the_clock_shows(server: YahooServer) -> None:
    feed = make_feed(server, FixedClock(NOW - 20 * DAY))
    assert asyncio.run(feed.natives(BTC))[M1].earliest(NOW - 20 * DAY) > NOW - 30 * DAY
    assert len(history(feed, Series(BTC), NOW - 40 * DAY, NOW - 31 * DAY)) == 0
    assert server.queries == []


def test_the_watermark_is_behind_by_the_delay_of_exchanges() -> None:
    assert YahooFeed(FixedClock(NOW)).watermark(NOW) == NOW - DELAY


def test_there_are_no_extra_series() -> None:
    with pytest.raises(NoSuchSeries, match="set OPENBELL_FEED"):
        asyncio.run(YahooFeed(FixedClock(NOW)).extra("funding", BTC, 0, NOW))


# Bars


def test_minutes_are_fetched_in_pages_of_seven_days(server: YahooServer) -> None:
    bars = history(make_feed(server), Series(BTC), NOW - 29 * DAY, NOW)
    assert bars.time.tolist() == list(range(NOW - 29 * DAY, NOW, 60))
    spans = [int(query["period2"]) - int(query["period1"]) for _, query in server.queries]
    assert spans == [7 * DAY + 120] * 4 + [DAY + 120]


def test_a_stocks_hours_are_made_of_15_minutes(server: YahooServer, tmp_path: Path) -> None:
    async def main() -> tuple[Bars, str | None]:
        feed = make_feed(server)
        with closing(ParquetStore(tmp_path)) as store:
            service = BarService(store, feed, server.clock)
            bars = await service.newest(AAPL, H1, 50)
            return bars, await made_of(service, bars)

    bars, base = asyncio.run(main())
    assert base == "15m+1m"
    minutes = prices(Series(AAPL), NOW - 10 * DAY, NOW)
    expected = resample(minutes, H1, NOW).tail(50)
    assert bars.time.tolist() == expected.time.tolist()
    assert np.allclose(bars.close, expected.close, rtol=1e-7)
    assert {query["interval"] for _, query in server.queries} == {"15m", "1m"}
    assert all(query["includePrePost"] == "true" for _, query in server.queries)


def test_extended_hours_have_bars_without_volume(server: YahooServer) -> None:
    open_ = next(session.open for session in sessions_of(2026) if session.open > NOW - DAY)
    bars = history(make_feed(server), Series(AAPL), open_ - 1800, open_ + 1800)
    assert len(bars.between(0, open_)) > 0
    assert not bars.between(0, open_).volume.any()
    assert bars.between(open_, open_ + 1800).volume.all()


def test_prices_have_the_digits_that_were_traded() -> None:
    yahoos = np.array([237.4199981689453, 0.0000123, 91234.5703125, 1e300, np.nan])
    assert shortest(yahoos).tolist()[:4] == [237.42, 0.0000123, 91234.57, 1e300]
    assert np.isnan(shortest(yahoos)[4])


def test_the_day_in_progress_is_not_delivered(server: YahooServer) -> None:
    bars = history(make_feed(server), Series(AAPL, D1), NOW - 9 * DAY, NOW + DAY)
    today = next(session.open for session in sessions_of(2026) if session.close > NOW)
    assert today - DAY == bars.time[-1]


def test_of_a_day_that_comes_twice_the_later_row_is_used(server: YahooServer) -> None:
    def changed(_interval: str, rows: list[Row]) -> list[Row]:
        at, *values, volume = rows[-1]
        assert at % 60 == 1, "the time of the last trade"
        assert volume
        return [*rows[:-1], (at, *values, volume + 7)]  # type: ignore[list-item]

    feed = make_feed(server, FixedClock(AFTER_CLOSE))
    once = prices(Series(AAPL, D1), AFTER_CLOSE - 9 * DAY, AFTER_CLOSE)
    server.spoil = changed
    bars = history(feed, Series(AAPL, D1), AFTER_CLOSE - 9 * DAY, AFTER_CLOSE)
    assert bars.time.tolist() == once.time.tolist()
    assert bars.volume.tolist() == [*once.volume[:-1], once.volume[-1] + 7]


def test_unsorted_duplicate_and_empty_rows_are_handled(server: YahooServer) -> None:
    gap = NOW - 1800

    def spoiled(_interval: str, rows: list[Row]) -> list[Row]:
        empty_row: list[Row] = [(gap, None, None, None, None, None)]
        without = [row for row in rows if row[0] != gap]
        no_volume = [(*row[:5], None) if row[0] == NOW - 600 else row for row in without]
        return [*no_volume[5:-1], *no_volume[:10], *empty_row, no_volume[-1]]

    server.spoil = spoiled
    bars = history(make_feed(server), Series(BTC), NOW - 3600, NOW)
    assert bars.time.tolist() == [at for at in range(NOW - 3600, NOW, 60) if at != gap]
    assert bars.between(NOW - 600, NOW - 540).volume.tolist() == [0.0]


def without_prices(day: int) -> Any:
    def spoiled(_interval: str, rows: list[Row]) -> list[Row]:
        return [(row[0], None, None, None, None, None) if row[0] == day else row for row in rows]

    return spoiled


def test_a_new_day_without_prices_is_not_published_yet(server: YahooServer) -> None:
    midnight = NOW - NOW % DAY
    server.spoil = without_prices(midnight - DAY)
    with pytest.raises(FeedUnavailable, match="has not published the day 2026-01-06 of BTC/USD yet"):
        history(make_feed(server), Series(BTC, D1), NOW - 9 * DAY, NOW)
    server.spoil = without_prices(midnight - 3 * DAY)
    bars = history(make_feed(server), Series(BTC, D1), NOW - 9 * DAY, NOW)
    assert bars.time[-1] == midnight - DAY
    assert midnight - 3 * DAY not in bars.time, "a day without trades"


def test_a_time_without_bars_is_empty(server: YahooServer) -> None:
    before = server.listed - 30 * DAY
    assert len(history(make_feed(server), Series(AAPL, D1), before, before + 20 * DAY)) == 0
    server.spoil = lambda _interval, _rows: []
    assert len(history(make_feed(server), Series(BTC), NOW - 600, NOW)) == 0
    assert len(server.queries) == 2


def test_other_times_than_our_buckets_reach_the_desk_which_refuses_the_timeframe(
    server: YahooServer, tmp_path: Path
) -> None:
    def shifted(interval: str, rows: list[Row]) -> list[Row]:
        return [(row[0] + 3600, *row[1:]) for row in rows] if interval == "1d" else rows

    async def main() -> str | None:
        with closing(ParquetStore(tmp_path)) as store:
            service = BarService(store, make_feed(server), server.clock)
            return await made_of(service, await service.newest(BTC, D1, 5))

    server.spoil = shifted
    assert asyncio.run(main()) == "1h"


def test_after_a_split_stored_bars_are_set_aside_and_fetched_again_at_the_new_scale(
    server: YahooServer, tmp_path: Path
) -> None:
    split = NOW + DAY

    def halved(_interval: str, rows: list[Row]) -> list[Row]:
        factor = [2 if row[0] < split else 1 for row in rows]
        scaled = zip(rows, factor, strict=True)
        return [(row[0], *(value and value / by for value in row[1:5]), row[5]) for row, by in scaled]  # type: ignore[misc]

    async def closes(store: ParquetStore, timeframe: Timeframe, count: int) -> Bars:
        feed = make_feed(server)
        found = await BarService(store, feed, server.clock).newest(AAPL, timeframe, count)
        await feed.close()
        return found

    with closing(ParquetStore(tmp_path)) as store:
        before = asyncio.run(closes(store, D1, 20))
        asyncio.run(closes(store, M1, 50))
        server.spoil = halved
        server.clock = FixedClock(NOW + 2 * DAY)
        after = asyncio.run(closes(store, D1, 22))
        kept = after.take(np.isin(after.time, before.time))
        assert kept.close[:10] == pytest.approx(before.tail(len(kept)).close[:10] / 2)
        asides = sorted(path.name.partition(".aside-")[0] for path in tmp_path.rglob("*.aside-*"))
        assert asides == ["AAPL_2026-01.parquet", "AAPL_all.yahoo-split.parquet"]
        assert len(store.audit.problems()) == 2
        assert all("by 0.5, as after a split" in problem.reason for problem in store.audit.problems())
        minutes = asyncio.run(closes(store, M1, 3000))
        assert minutes.between(0, split).close.max() < before.close[-1] * 0.8, "no minute has its old price"
        requests = len(server.queries)
        asyncio.run(closes(store, D1, 22))
        assert len(server.queries) == requests, "it is done once"
        assert len(list(tmp_path.rglob("*.aside-*"))) == 2


@pytest.mark.parametrize("is_newer", [False, True], ids=["a file of before the split", "a file of after it"])
def test_an_imported_file_is_not_joined_to_prices_that_were_adjusted_since(
    server: YahooServer, tmp_path: Path, is_newer: bool
) -> None:
    imported = Source(Origin.IMPORTED, "import", "split")
    since = (
        "yahoo has multiplied its earlier prices of AAPL by 0.5, as after a split since the import; import a newer file"
    )

    async def days(store: ParquetStore, count: int) -> Bars:
        feed = make_feed(server)
        found = await BarService(store, feed, server.clock).newest(AAPL, D1, count)
        await feed.close()
        return found

    with closing(ParquetStore(tmp_path / "vendor")) as store:
        vendor = asyncio.run(days(store, 30))
    file, new = vendor.take(slice(0, 20)), vendor.tail(10)
    if not is_newer:
        file = replace(file, **{name: getattr(file, name) * 2 for name in ("open", "high", "low", "close")})
    with closing(ParquetStore(tmp_path / "home")) as store:
        store.write([file], imported, covers=Span(int(file.time[0]), int(new.time[0])))
        found = asyncio.run(days(store, 30))
        assert found.same_as(vendor), "no jump where the file ends"
        sources = store.sources.of(found.series, Span(0, 2**40))
        assert (imported in sources) == is_newer
        reasons = {problem.reason for problem in store.audit.problems()}
        assert reasons == (set() if is_newer else {since})


@pytest.mark.parametrize(("timeframe", "few", "many"), [(D1, 30, 300), (Timeframe.M15, 100, 400), (M1, 100, 900)])
def test_earlier_bars_that_are_fetched_after_a_split_do_not_mix_with_stored_ones(
    server: YahooServer, tmp_path: Path, timeframe: Timeframe, few: int, many: int
) -> None:
    def halved(_interval: str, rows: list[Row]) -> list[Row]:
        return [(row[0], *(value and value / 2 for value in row[1:5]), row[5]) for row in rows]  # type: ignore[misc]

    async def ask(store: ParquetStore, count: int) -> Bars:
        feed = make_feed(server)
        found = (await BarService(store, feed, server.clock).page(AAPL, timeframe, count, 0))[0]
        await feed.close()
        return found

    with closing(ParquetStore(tmp_path)) as store:
        before = asyncio.run(ask(store, few))
        server.spoil = halved
        after = asyncio.run(ask(store, many))
        assert after.tail(few).close == pytest.approx(before.close / 2), "all have the new prices"
        assert np.abs(np.diff(np.log(after.close))).max() < 0.3, "no jump"
        assert len(list(tmp_path.rglob("*.aside-*"))) >= 1


# Failures


def test_an_unknown_symbol_is_refused_and_not_asked_for_again(server: YahooServer) -> None:
    feed, nobody = make_feed(server), parse("NOBDY")
    assert feed.supports(nobody)
    for _ in range(2):
        with pytest.raises(UnknownSymbol, match="Yahoo does not list it"):
            history(feed, Series(nobody), NOW - 600, NOW)
    assert not feed.supports(nobody)
    assert server.counts == {"cookie": 1, "crumb": 1, "1m": 1}, "no other cookie is tried"


@pytest.mark.parametrize(
    ("meta", "reason"),
    [
        ({"currency": None}, "does not list it"),
        ({"instrumentType": "INDEX"}, "of the kind INDEX"),
        ({"exchangeTimezoneName": "Europe/London"}, "on an exchange in Europe/London"),
    ],
)
def test_a_symbol_that_is_something_else_at_yahoo_is_unknown(
    server: YahooServer, meta: dict[str, Any], reason: str
) -> None:
    server.meta = meta
    with pytest.raises(UnknownSymbol, match=reason):
        history(make_feed(server), Series(AAPL), NOW - 600, NOW)


BROKEN: list[tuple[int, str] | str] = [
    (500, "<html>error</html>"),
    (502, ""),
    (200, "<html>Will be right back</html>"),
    (200, '{"spark": {}}'),
    (200, '{"chart": {"result": [], "error": null}}'),
    (200, '{"chart": {"result": [{"meta": {"dataGranularity": "1m"}, "timestamp": [1]}], "error": null}}'),
    (404, "<html>Not Found</html>"),
    "drop",
]


@pytest.mark.parametrize("broken", BROKEN)
def test_an_outage_is_an_error_and_never_looks_like_no_bars(server: YahooServer, broken: tuple[int, str] | str) -> None:
    server.answers.append(broken)
    feed = make_feed(server)
    assert len(history(feed, Series(BTC), NOW - 600, NOW)) == 10, "a retry succeeds"
    server.answers.extend([broken] * 2 * connection.TRIES)  # curl repeats a request once if the connection drops
    with pytest.raises(FeedUnavailable, match=r"Yahoo does not respond .* try again later"):
        history(feed, Series(BTC), NOW - 600, NOW)


def test_bars_of_another_length_are_refused(server: YahooServer) -> None:
    server.meta = {"dataGranularity": "1h"}
    with pytest.raises(FeedUnavailable, match="bars of 1h instead of 15m"):
        history(make_feed(server), Series(BTC, Timeframe.M15), NOW - DAY, NOW)


def test_errors_of_yahoo_are_passed_on(server: YahooServer, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = make_feed(server)
    server.clock = FixedClock(NOW + 40 * DAY)
    with pytest.raises(FeedUnavailable, match="must be within the last 30 days"):
        history(feed, Series(BTC), NOW - 600, NOW)


def test_a_server_that_cannot_be_reached_is_an_error(server: YahooServer) -> None:
    feed = YahooFeed(server.clock, proxy="http://127.0.0.1:9/", pause=no_pause)
    with pytest.raises(FeedUnavailable, match="check the network"):
        history(feed, Series(BTC), NOW - 600, NOW)


def test_an_expired_crumb_is_replaced(server: YahooServer) -> None:
    feed = make_feed(server)

    async def main() -> None:
        await feed.history(Series(BTC), NOW - 600, NOW)
        server.crumb = "another"
        assert len(await feed.history(Series(BTC), NOW - 600, NOW)) == 10
        await feed.history(Series(BTC), NOW - 600, NOW)
        await feed.close()

    asyncio.run(main())
    assert server.counts["crumb"] == 2
    assert server.counts["1m"] == 4


def test_a_client_that_yahoo_does_not_accept_raises_an_error_with_the_update(server: YahooServer) -> None:
    server.answers.extend([(403, "")] * 2)
    with pytest.raises(FeedUnavailable, match=r"HTTP 403.* pip install --upgrade yfinance"):
        history(make_feed(server), Series(BTC), NOW - 600, NOW)


def test_a_refused_burst_is_repeated_after_a_pause(server: YahooServer) -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    feed = YahooFeed(server.clock, proxy=server.proxy, pause=pause)
    server.answers.append((429, "Too Many Requests"))
    assert len(history(feed, Series(BTC), NOW - 600, NOW)) == 10
    assert len(pauses) == 1


def test_after_too_many_requests_none_is_sent_for_a_minute(server: YahooServer) -> None:
    feed = make_feed(server)
    server.answers.extend([(429, "Too Many Requests")] * connection.TRIES)
    with pytest.raises(FeedUnavailable, match=r"HTTP 429\): try again in 60 s; if this persists, watch fewer symbols"):
        history(feed, Series(BTC), NOW - 600, NOW)
    sent = server.total
    with pytest.raises(FeedUnavailable, match=r"refuses more requests from this address: try again in \d\d s"):
        history(feed, Series(AAPL), NOW - 600, NOW)
    assert server.total == sent


def test_many_calls_at_once_stay_below_the_limit_for_bursts(server: YahooServer) -> None:
    async def main() -> None:
        feed = make_feed(server)
        server.latency, server.rate = 0.08, YahooServer.rate
        spans = [(NOW - 600 * at, NOW - 600 * at + 600) for at in range(1, 31)]
        await asyncio.gather(*(feed.history(Series(BTC), *span) for span in spans))
        await feed.close()

    asyncio.run(main())
    assert server.counts["1m"] == 30
    assert server.refused == 0


def test_a_cancelled_call_returns_at_once_and_sends_nothing_more(
    server: YahooServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "TIMEOUT", 1.0)

    async def main() -> None:
        feed = make_feed(server)
        server.answers.extend(["hang"] * 5)  # both threads wait until the time-out
        calls = [asyncio.ensure_future(feed.history(Series(BTC), NOW - 600, NOW)) for _ in range(5)]
        await until(lambda: bool(server.queries), "the first request")
        for call in calls:
            call.cancel()
        assert all(
            isinstance(each, asyncio.CancelledError) for each in await asyncio.gather(*calls, return_exceptions=True)
        )
        await asyncio.wait_for(feed.close(), 5)
        assert len(server.queries) <= 2, "at most the requests that the two threads had begun"

    asyncio.run(main())


def test_without_yfinance_the_error_has_the_command_that_installs_it(
    server: YahooServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection._load.cache_clear()
    monkeypatch.setitem(sys.modules, "yfinance", None)
    with pytest.raises(SettingsError, match=r"-m pip install 'openbell\[yahoo\]'"):
        history(make_feed(server), Series(BTC), NOW - 600, NOW)


# The stream


@asynccontextmanager
async def streaming(feed: YahooFeed, *instruments: Instrument, since: int) -> AsyncIterator[list[Batch]]:
    """Provides the list to which the batches of a stream are added as they arrive."""
    found: list[Batch] = []

    async def follow() -> None:
        async with aclosing(feed.stream(instruments, since)) as batches:
            async for batch in batches:
                found.append(batch)  # noqa: PERF401 - the test reads the list meanwhile

    task = asyncio.ensure_future(follow())
    try:
        yield found
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await feed.close()


def test_late_rows_are_delivered_and_complete_until_waits_for_them(server: YahooServer) -> None:
    async def main() -> None:
        clock = HandClock(NOW)
        feed = make_feed(server, clock)
        server.delay = 900
        async with streaming(feed, BTC, since=NOW - 1800) as batches:
            for minute in range(1, 6):
                clock.advance(60)
                await until(lambda: bool(batches) and batches[-1].complete_until == clock.epoch() - 900, str(minute))
                assert feed.watermark(clock.epoch()) == clock.epoch() - 900
        bars = merge(empty(BTC), *(part for batch in batches for part in batch.bars))
        assert bars.time.tolist() == list(range(NOW - 1800, NOW + 300 - 900, 60))
        assert feed.watermark(clock.epoch()) == clock.epoch() - DELAY, "the stream has ended"

    asyncio.run(main())


def test_a_changed_bar_is_delivered_again_and_an_unchanged_one_is_not(server: YahooServer) -> None:
    changed = NOW - 600

    def corrected(_interval: str, rows: list[Row]) -> list[Row]:
        return [(*row[:5], 5.0) if row[0] == changed else row for row in rows]

    async def main() -> None:
        clock = HandClock(NOW + 10)
        async with streaming(make_feed(server, clock), BTC, since=NOW - 900) as batches:
            await until(lambda: len(batches) == 1, "the first batch")
            server.spoil = corrected
            clock.advance(60)
            await until(lambda: len(batches) == 2, "the second batch")
        assert [part.time.tolist() for part in batches[1].bars] == [[changed, NOW]]
        assert batches[1].bars[0].volume[0] == 5.0

    asyncio.run(main())


def test_a_closed_market_is_not_polled_and_holds_nothing_up(
    server: YahooServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        clock = HandClock(SATURDAY + 10)
        monkeypatch.setattr(feed_module, "MACHINE", clock)
        async with streaming(make_feed(server, clock), AAPL, BTC, EUR, since=SATURDAY - 600) as batches:
            for minute in range(4):
                await until(lambda: bool(batches) and batches[-1].complete_until == clock.epoch() - 10, str(minute))
                clock.advance(60)
        assert {symbol for symbol, _ in server.queries} == {"BTC-USD"}

    asyncio.run(main())


def test_a_quiet_stock_is_complete_after_the_delay(server: YahooServer) -> None:
    async def main() -> None:
        clock = HandClock(NOW + 10)
        feed = make_feed(server, clock)
        server.spoil = lambda _interval, rows: [row for row in rows if row[0] < NOW - 3600]
        async with streaming(feed, AAPL, since=NOW - 1800) as batches:
            await until(lambda: bool(batches), "a batch")
        assert batches[0].complete_until == (NOW + 10 - DELAY) // 60 * 60

    asyncio.run(main())


def test_a_stream_that_fails_raises(server: YahooServer) -> None:
    async def main() -> None:
        feed = make_feed(server)
        server.answers.extend(["drop"] * 2 * connection.TRIES)
        async with aclosing(feed.stream((BTC, AAPL), NOW - 600)) as batches:
            with pytest.raises(FeedUnavailable):
                await anext(batches)
        with pytest.raises(UnknownSymbol):
            await anext(feed.stream((parse("NOBDY"),), NOW - 600))
        await feed.close()

    asyncio.run(main())


FAULTS: list[tuple[int, str] | str] = [*BROKEN, (429, "Too Many Requests"), (403, "")]


@pytest.mark.parametrize("seed", range(FAULT_SCHEDULES))
def test_after_random_faults_the_store_equals_yahoos_bars(
    server: YahooServer, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HOLD", 0.0)
    monkeypatch.setattr(connection, "PER_MINUTE", 10**6)
    monkeypatch.setattr(collector_module, "_LONGEST_PAUSE", 0.01)
    chance = random.Random(seed)

    async def main() -> None:
        clock = HandClock(NOW + 10)
        monkeypatch.setattr(feed_module, "MACHINE", clock)
        feed = make_feed(server, clock)
        watchlist = WatchlistFile(tmp_path / "watchlist.txt")
        watchlist.path.write_text("BTC/USD\nAAPL\n")
        with closing(ParquetStore(tmp_path / "data")) as store:
            collector = Collector(BarService(store, feed, clock), watchlist, watching_hub(watchlist))
            task = asyncio.ensure_future(collector.run())
            for _ in range(12):
                server.delay = chance.choice((0, 0, 90, 900))
                server.answers.extend(chance.choices(FAULTS, k=chance.randrange(6)))
                clock.advance(chance.choice((1, 20, 60, 61, 150, 1300)))
                passed = int((clock.epoch() - DELAY - 60) // 60 * 60)
                await until(lambda passed=passed: collector.status.through >= passed, "the collector to keep up")  # type: ignore[misc]
            server.answers.clear()
            server.delay = 0
            for _ in range(2):
                clock.advance(60)
                passed = int((clock.epoch() - SETTLE) // 60 * 60)
                await until(lambda passed=passed: collector.status.through >= passed, "the collector to recover")  # type: ignore[misc]
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            for instrument in (BTC, AAPL):
                series = Series(instrument)
                vendors = await feed.history(series, NOW - 3600, passed)
                assert store.read(series, NOW - 3600, passed).same_as(vendors)
            assert not collector.status.refused
        await feed.close()

    asyncio.run(main())


# As a process


@pytest.fixture
def live(server: YahooServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> YahooServer:
    """Yahoo at the machine's time, for processes whose home and cache folders are empty."""
    server.clock = SystemClock()
    monkeypatch.setenv("YAHOO_PROXY_URL", server.proxy)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    (tmp_path / "user").mkdir()
    return server


@pytest.mark.parametrize("refuse_crumb", [False, True])
def test_a_call_prints_and_writes_nothing_but_its_own(live: YahooServer, tmp_path: Path, refuse_crumb: bool) -> None:
    live.refuse_crumb = refuse_crumb  # yfinance logs a warning
    asked = json.dumps({"symbol": "BTC/USD", "timeframe": "1d", "limit": 20})
    home = tmp_path / "home"
    done = run(home, "call", "market-data", "get_candles", asked, "--meta", FEED="yahoo", TIMEOUT="60")
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads(done.stdout)
    assert answer["result"]["data"]["data_source"] == "Yahoo Finance (delayed, for personal use)"
    truth = answer["_meta"]["openbell/truth"]
    assert truth["note"] == "delayed data, for personal use only (Yahoo's terms)"
    assert (truth["feed"], truth["data"], truth["made_of"]) == ("yahoo", "live", "1d+1m")
    assert done.stderr == ""
    assert list((tmp_path / "user").rglob("*")) == [], "no cookies are stored"
    assert {path.name for path in home.iterdir()} <= {"data", "watchlist.txt"}


def test_doctor_shows_the_notice_and_tests_the_connection(live: YahooServer, tmp_path: Path) -> None:
    done = run(tmp_path / "home", "doctor", FEED="yahoo")
    assert "note  feed yahoo: delayed data, for personal use only (Yahoo's terms)" in done.stdout
    assert "feed yahoo responds in" in done.stdout
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("feed", ["yahoo", "stocks=yahoo,crypto=ccxt:kraken"])
def test_the_servers_instructions_have_the_notice(tmp_path: Path, feed: str) -> None:
    with Client(tmp_path, FEED=feed) as client:
        instructions = client.initialize()["instructions"]
    assert f"Market data comes from {feed} (" in instructions
    assert "delayed data, for personal use only (Yahoo's terms)" in instructions
