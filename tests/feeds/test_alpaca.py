"""The Alpaca feed, tested with a local server that implements Alpaca's protocol and injects faults."""

from __future__ import annotations

import asyncio
import logging
import random
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import replace
from email.utils import formatdate
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.desk.bars import collector as collector_module
from openbell.desk.bars.collector import Collector
from openbell.desk.bars.service import BarService
from openbell.desk.bars.watchlist import WatchlistFile
from openbell.feeds.alpaca import rest as rest_module
from openbell.feeds.alpaca import socket as socket_module
from openbell.feeds.alpaca.feed import AlpacaFeed
from openbell.feeds.alpaca.socket import Minutes, RowSource
from openbell.feeds.alpaca.stream import UncertainSpans
from openbell.feeds.alpaca.wire import MalformedMessage, Row, read_row
from openbell.feeds.port import Batch, Feed
from openbell.market.bars import MINUTE, Bars, empty, merge
from openbell.market.clock import Clock, FixedClock
from openbell.market.errors import FeedUnavailable, SettingsError, UnknownSymbol
from openbell.market.instruments import Instrument, parse
from openbell.market.series import Series
from openbell.net.rates import Budget, backoff, retry_after
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.port import Span
from tests.clocks import HandClock
from tests.counts import runs
from tests.desk.scripted import watching_hub
from tests.feeds.alpaca_server import KEY, SECRET, AlpacaServer, Answer, answer
from tests.feeds.contract import NOW, FeedContract
from tests.waiting import until

AAPL, BTC, MSFT = parse("AAPL"), parse("BTC/USD"), parse("MSFT")
FAULT_SCHEDULES = runs(4, soak=60)
SEEDS = (0, 1, 29, 38, *(set(range(60)) - {0, 1, 29, 38}))
HOUR = 3600


@pytest.fixture(autouse=True)
def _direct(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disables the machine's proxy for the local server."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


class Pauses(list[float]):
    """Records pauses instead of waiting."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)
        await asyncio.sleep(0)


def feed_of(
    server: AlpacaServer, pause: Pauses | None = None, clock: Clock | None = None, **settings: str
) -> AlpacaFeed:
    chosen: dict[str, Any] = {
        "key": KEY,
        "secret": SECRET,
        "pause": Pauses() if pause is None else pause,
        **server.urls,
        **settings,
    }
    return AlpacaFeed(clock or server.clock, **chosen)


@pytest.fixture
def server() -> Iterator[AlpacaServer]:
    """A server with a fixed clock."""
    with AlpacaServer(FixedClock(NOW + 30)) as running:
        yield running


def history(feed: AlpacaFeed, instrument: Instrument = AAPL, start: int = NOW - HOUR, end: int = NOW) -> Bars:
    return asyncio.run(feed.history(Series(instrument), start, end))


class TestAlpaca(FeedContract):
    @pytest.fixture(autouse=True)
    def _servers(self) -> Iterator[None]:
        with ExitStack() as self.stack:
            yield

    def make(self, clock: Clock, folder: Path) -> Feed:
        return feed_of(self.stack.enter_context(AlpacaServer(clock)))


def test_the_history_is_fetched_page_by_page(server: AlpacaServer) -> None:
    server.page = 7
    for instrument in (AAPL, BTC):
        got = history(feed_of(server), instrument)
        assert got.same_as(server.truth(instrument, NOW - HOUR, NOW))
    assert len(server.requests) > 10
    assert all(headers["apca-api-key-id"] == KEY for _, _, headers in server.requests)


def test_alpacas_end_is_inclusive_and_the_ports_is_not(server: AlpacaServer) -> None:
    assert history(feed_of(server), BTC, NOW - 600, NOW - 300).time[-1] == NOW - 360
    assert server.requests[-1][1]["end"] == "2026-01-07T14:54:59Z"
    assert history(feed_of(server), BTC, NOW - 600, NOW - 299).time[-1] == NOW - 300


def test_feed_and_adjustment_are_sent_and_part_of_the_source(server: AlpacaServer) -> None:
    feed = feed_of(server, feed="sip", adjustment="split")
    history(feed)
    assert server.requests[-1][1].items() >= {"feed": "sip", "adjustment": "split"}.items()
    assert str(feed.source) == "live/alpaca-sip/split"
    with pytest.raises(SettingsError, match="OPENBELL_ALPACA_FEED is 'nasdaq': use one of iex, sip"):
        feed_of(server, feed="nasdaq")
    with pytest.raises(SettingsError, match="OPENBELL_ALPACA_ADJUSTMENT"):
        feed_of(server, adjustment="none")


def test_unsorted_duplicate_and_bad_rows_are_handled(server: AlpacaServer, caplog: pytest.LogCaptureFixture) -> None:
    truth = server.truth(BTC, NOW - 600, NOW)

    def spoil(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        good, first = rows[::-1], rows[0]
        stale = {**rows[3], "v": rows[3]["v"] + 1}
        bad = [
            {**first, "o": float("nan")},
            {**first, "h": first["l"] / 2},
            {**first, "c": first["h"] * 2},
            {**first, "l": -1},
            {**first, "v": -1},
            {**first, "v": 10**400},
            {**first, "o": str(first["o"])},
            {**first, "o": True},
            {name: value for name, value in first.items() if name != "c"},
            {**first, "t": "2026-01-07T14:50:01Z"},
            {**first, "t": "yesterday"},
            {**first, "t": "2026-01-07T14:50:00"},
            {**first, "t": 5},
            None,
            ["b"],
        ]
        outside = {**first, "t": "2026-01-07T12:00:00Z"}
        return [stale, *good, outside, *bad]  # type: ignore[list-item]

    server.spoil = spoil
    assert history(feed_of(server), BTC, NOW - 600, NOW).same_as(truth)
    dropped = [record for record in caplog.records if record.message.startswith("dropped")]
    assert sum(int(record.message.split()[1]) for record in dropped) == 15


def test_nothing_before_2016_or_after_the_clock_is_requested(server: AlpacaServer) -> None:
    feed = feed_of(server)
    assert len(history(feed, AAPL, 0, 1_400_000_000)) == 0
    assert len(history(feed, AAPL, NOW + HOUR, NOW + 2 * HOUR)) == 0
    assert server.requests == []


def test_a_minute_that_is_not_closed_is_dropped(server: AlpacaServer) -> None:
    server.spoil = lambda rows: [*rows, {**rows[-1], "t": "2026-01-07T15:00:00Z"}]
    assert history(feed_of(server), BTC, NOW - 600, NOW + 600).time[-1] == NOW - 60


@pytest.mark.parametrize(
    "bad",
    [
        answer(429, {"message": "too many requests."}),
        answer(500, {}),
        Answer(503, b"<html>"),
        Answer(200, b'{"bars": {}, "next_page_token": null}' * 50, cut=True),
        "drop",
    ],
    ids=["429", "500", "503", "half a body", "drop"],
)
def test_a_failure_is_retried_and_then_raised(server: AlpacaServer, bad: Answer | str) -> None:
    pauses = Pauses()
    feed = feed_of(server, pauses)
    server.bad_answers.extend([bad] * 2)
    assert history(feed).same_as(server.truth(AAPL, NOW - HOUR, NOW))
    assert len(pauses) == 2
    assert 0.25 <= pauses[0] <= 0.5 <= pauses[1] <= 1.0
    server.bad_answers.extend([bad] * 9)
    with pytest.raises(FeedUnavailable, match=r"4 tries\).*status\.alpaca\.markets"):
        history(feed)
    assert len(server.bad_answers) == 5


def test_retry_after_is_waited_for_unless_it_is_too_long(server: AlpacaServer) -> None:
    pauses = Pauses()
    feed = feed_of(server, pauses)
    server.bad_answers.append(answer(429, {}, retry_after="7"))
    assert len(history(feed))
    assert max(pauses) == 7
    server.bad_answers.append(answer(429, {}, retry_after="3600"))
    with pytest.raises(FeedUnavailable, match="3600 s"):
        history(feed)
    assert max(pauses) == 7


def test_the_rate_limit_headers_delay_the_next_request(server: AlpacaServer) -> None:
    pauses = Pauses()
    feed = feed_of(server, pauses)
    server.rate = {
        "X-RateLimit-Limit": "200",
        "X-RateLimit-Remaining": "0",
        "X-RateLimit-Reset": str(NOW + 30 + 42),
    }

    async def main() -> None:
        await feed.history(Series(AAPL), NOW - HOUR, NOW)
        assert pauses == []
        await feed.history(Series(AAPL), NOW - HOUR, NOW)

    asyncio.run(main())
    assert len(pauses) == 1
    assert 35 < pauses[0] <= 42


def test_a_slow_response_times_out(server: AlpacaServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_module, "BOUNDS", replace(rest_module.BOUNDS, part=0.1))
    server.bad_answers.extend(["slow"] * 4)
    with pytest.raises(FeedUnavailable, match="ReadTimeout"):
        history(feed_of(server))
    monkeypatch.setattr(rest_module, "BOUNDS", replace(rest_module.BOUNDS, part=10.0, whole=0.1))
    server.bad_answers.extend(["slow"] * 4)
    with pytest.raises(FeedUnavailable, match="TimeoutError"):
        history(feed_of(server))


def test_a_refused_connection_is_named(server: AlpacaServer) -> None:
    with pytest.raises(FeedUnavailable, match="ConnectError"):
        history(feed_of(server, data_url="http://127.0.0.1:9"))


@pytest.mark.parametrize(
    "body",
    [b"<html>sign in to the hotel</html>", b'{"bars": {"AAPL"', b"[" * 100_000, b"9" * 5000, b"\xff\xfe"],
)
def test_a_response_that_is_not_json_is_refused(server: AlpacaServer, body: bytes) -> None:
    server.bad_answers.append(Answer(200, body))
    with pytest.raises(FeedUnavailable, match="cannot be read"):
        history(feed_of(server))


@pytest.mark.parametrize(
    "body",
    [[], {}, None, 5, {"bars": {"AAPL": 5}}, {"bars": {"AAPL": {}}}, {"bars": {}, "next_page_token": 7}],
)
def test_json_of_another_shape_is_refused(server: AlpacaServer, body: object) -> None:
    server.bad_answers.append(answer(200, body))
    with pytest.raises(FeedUnavailable, match="cannot be read"):
        history(feed_of(server))


@pytest.mark.parametrize("bars", [None, {}, [], {"AAPL": None}, {"AAPL": []}])
def test_no_bars_may_be_written_in_any_empty_form(server: AlpacaServer, bars: object) -> None:
    server.bad_answers.append(answer(200, {"bars": bars}))
    assert len(history(feed_of(server))) == 0


def test_repeating_pages_are_refused(server: AlpacaServer) -> None:
    server.bad_answers.extend([answer(200, {"bars": {}, "next_page_token": "again"})] * 9)
    with pytest.raises(FeedUnavailable, match="repeat"):
        history(feed_of(server))


def test_refused_keys_are_reported_with_the_names_of_their_variables(server: AlpacaServer) -> None:
    feed = feed_of(server, key="PKWRONG")
    with pytest.raises(FeedUnavailable, match=r"ALPACA_API_KEY and ALPACA_SECRET_KEY"):
        history(feed)
    assert len(server.requests) == 1, "another try would not help"
    server.bad_answers.append(answer(403, {"message": "forbidden."}))
    with pytest.raises(FeedUnavailable, match=r"ALPACA_API_KEY and ALPACA_SECRET_KEY"):
        history(feed_of(server))


def test_recent_sip_data_without_the_plan_is_reported(server: AlpacaServer) -> None:
    server.bad_answers.append(answer(403, {"message": "subscription does not permit querying recent SIP data"}))
    with pytest.raises(FeedUnavailable, match=r"15 minutes.*OPENBELL_ALPACA_FEED=iex"):
        history(feed_of(server, feed="sip"))


def test_any_other_refusal_is_reported_without_the_keys(server: AlpacaServer) -> None:
    server.bad_answers.append(answer(422, {"message": f"start after end, says {SECRET} of {KEY}"}))
    with pytest.raises(FeedUnavailable, match="HTTP 422: start after end, says … of …"):
        history(feed_of(server))


@pytest.mark.parametrize("status", [400, 422])
def test_a_symbol_that_the_vendor_refuses_is_unknown(server: AlpacaServer, status: int) -> None:
    feed = feed_of(server)
    server.bad_answers.append(answer(status, {"message": "invalid symbol: AAPL"}))
    with pytest.raises(UnknownSymbol, match="AAPL"):
        history(feed)
    assert not feed.supports(AAPL)


def test_a_symbol_without_bars_is_looked_up_once(server: AlpacaServer) -> None:
    feed = feed_of(server)
    night = NOW - 12 * HOUR
    for _ in range(3):
        assert len(history(feed, AAPL, night, night + 600)) == 0
    assert [path for path, *_ in server.requests].count("/v2/assets/AAPL") == 1
    server.unlisted |= {"MSFT", "BTC/USD"}
    for instrument in (MSFT, BTC):
        assert feed.supports(instrument)
        for _ in range(2):
            with pytest.raises(UnknownSymbol, match="does not list"):
                history(feed, instrument)
        assert [path for path, *_ in server.requests].count(f"/v2/assets/{instrument}") == 1
        assert not feed.supports(instrument)


@pytest.mark.parametrize("status", [401, 403, 500])
def test_a_failed_lookup_does_not_make_a_symbol_unknown(server: AlpacaServer, status: int) -> None:
    server.assets_answer = answer(status, {"message": "forbidden."})
    feed = feed_of(server)
    server.unlisted.add("MSFT")
    assert len(history(feed, MSFT)) == 0
    assert feed.supports(MSFT)


def test_forex_is_unknown(server: AlpacaServer) -> None:
    feed = feed_of(server)
    euro = parse("EUR/USD")
    assert not feed.supports(euro)
    assert feed.supports(AAPL)
    assert feed.supports(BTC)
    with pytest.raises(UnknownSymbol):
        history(feed, euro)
    assert server.requests == []


def test_many_calls_share_few_connections(server: AlpacaServer) -> None:
    feed = feed_of(server)

    async def main() -> None:
        await asyncio.gather(*(feed.history(Series(AAPL), NOW - HOUR - at, NOW) for at in range(40)))
        await feed.close()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())
    assert len(server.requests) == 40
    assert server.at_once <= 5


def test_an_idle_client_closes_by_itself(server: AlpacaServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_module, "BOUNDS", replace(rest_module.BOUNDS, idle=0.01))
    feed = feed_of(server)

    async def main() -> None:
        for _ in range(2):
            assert len(await feed.history(Series(AAPL), NOW - HOUR, NOW))
            await until(lambda: len(asyncio.all_tasks()) == 1, "the client to close")

    asyncio.run(main())


class WatchedStream:
    """A stream with a clock that the test advances, and all batches that it has delivered."""

    def __init__(self, server: AlpacaServer, clock: HandClock, feed: AlpacaFeed, since: int) -> None:
        self.server, self.clock, self.feed = server, clock, feed
        self.batches: list[Batch] = []
        self.ended: BaseException | None = None
        self._task = asyncio.create_task(self._run(since))

    async def _run(self, since: int) -> None:
        try:
            async with aclosing(self.feed.stream((BTC, AAPL), since)) as stream:
                async for batch in stream:
                    self.batches.append(batch)
        except FeedUnavailable as error:
            self.ended = error

    @property
    def complete_until(self) -> int:
        return self.batches[-1].complete_until if self.batches else 0

    async def live(self) -> None:
        """Waits until both connections are open and the first batch has arrived."""
        await until(lambda: len(self.server.lines) == 2, "both connections")
        await until(lambda: self.complete_until > 0, "the first batch")

    async def pass_to(self, moment: float) -> None:
        """Advances the clock in steps of 10 s and waits for the stream after each."""
        while self.clock.epoch() < moment:
            self.clock.advance(min(10, moment - self.clock.epoch()))
            if self.clock.epoch() % MINUTE >= 5:
                minute = int(self.clock.epoch() // MINUTE) * MINUTE
                late = MINUTE if self.clock.epoch() < NOW + MINUTE else 0  # the first minutes come from the history
                await until(lambda m=minute - late: self.complete_until >= m or self.ended is not None, "the stream")  # type: ignore[misc]

    def got(self, instrument: Instrument) -> Bars:
        parts = [bars for batch in self.batches for bars in batch.bars if bars.instrument == instrument]
        return merge(empty(instrument), *parts)

    async def close(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task


@asynccontextmanager
async def watching(since: int = NOW - 600, **settings: Any) -> AsyncIterator[WatchedStream]:
    clock = HandClock(NOW)
    with AlpacaServer(clock, **settings) as server:
        feed = feed_of(server)
        watched = WatchedStream(server, clock, feed, since)
        try:
            yield watched
        finally:
            await watched.close()
            await feed.close()
            assert len(asyncio.all_tasks()) == 1, "the stream leaves no tasks"


def odd(instrument: Instrument, time: int) -> bool:
    return time // MINUTE % 2 == 1


def assert_truth(watched: WatchedStream, end: int, start: int = NOW - 600) -> None:
    for instrument in (BTC, AAPL):
        want = watched.server.truth(instrument, start, end)
        assert watched.got(instrument).between(start, end).same_as(want)
        assert len(want)


def test_minutes_are_complete_5_seconds_after_their_end() -> None:
    async def main() -> None:
        async with watching() as watched:
            await watched.live()
            assert watched.complete_until == NOW - MINUTE, "later minutes may not be in the history yet"
            await watched.pass_to(NOW + 180)
            watched.clock.advance(4)
            await until(lambda: len(watched.server.lines) == 2)
            assert watched.complete_until == NOW + 120
            watched.clock.advance(1)
            await until(lambda: watched.complete_until == NOW + 180, "the minute to settle")
            assert watched.feed.watermark(watched.clock.epoch()) == NOW + 180
            assert_truth(watched, NOW + 180)
            times = [batch.complete_until for batch in watched.batches]
            assert times == sorted(set(times))
            asked = {line for line, *_ in watched.server.requests}
            assert asked == {"/v2/stocks/bars", "/v1beta3/crypto/us/bars"}

    asyncio.run(main())


def test_the_watermark_without_a_stream_is_75_seconds_behind_the_clock() -> None:
    async def main() -> None:
        async with watching() as watched:
            assert watched.feed.watermark(NOW) == NOW - 75
            await watched.live()
            await watched.pass_to(NOW + 125)
            assert watched.feed.watermark(NOW + 125) == NOW + 120
            assert watched.feed.watermark(NOW + 1000) == NOW + 925, (
                "a stream that lags does not delay the watermark further"
            )
            watched.server.bad_messages.append("drop")
            await until(lambda: watched.ended is not None)
            assert watched.feed.watermark(NOW + 125) == NOW + 50

    asyncio.run(main())


def test_a_broken_stream_does_not_count_for_the_watermark() -> None:
    async def main() -> None:
        clock = HandClock(NOW)
        with AlpacaServer(clock) as server:
            feed = feed_of(server)
            async with aclosing(feed.stream((BTC,), NOW - 600)) as stream:
                first = await anext(stream)
                assert feed.watermark(NOW) == first.complete_until == NOW - 60
                server.bad_messages.append("drop")
                await until(lambda: feed.watermark(NOW) == NOW - 75, "the broken connection to be detected")
                with pytest.raises(FeedUnavailable, match="broke off"):
                    await anext(stream)
            await feed.close()

    asyncio.run(main())


def test_a_late_history_leaves_no_gap_before_the_stream() -> None:
    async def main() -> None:
        async with watching(corrected=odd) as watched:
            watched.server.shown_after = 29.0
            await watched.live()
            await watched.pass_to(NOW + 300)
            assert_truth(watched, NOW + 120)

    asyncio.run(main())


@pytest.mark.parametrize("fault", ["duplicate", "reorder"])
def test_duplicate_and_reordered_messages_change_nothing(fault: str) -> None:
    async def main() -> None:
        async with watching(corrected=odd) as watched:
            await watched.live()
            watched.server.bad_messages.extend([fault] * 20)
            watched.clock.advance(5)  # so that a bar and its correction are sent at once
            for _ in range(3):
                before = watched.complete_until
                watched.clock.advance(120)
                await until(lambda b=before: watched.complete_until > b, "the stream")  # type: ignore[misc]
            await watched.pass_to(NOW + 480)
            await until(lambda: watched.complete_until >= NOW + 420)
            assert_truth(watched, NOW + 360)

    asyncio.run(main())


def test_a_correction_comes_in_a_later_batch() -> None:
    async def main() -> None:
        async with watching(corrected=lambda i, t: i == BTC and t == NOW + 60) as watched:
            await watched.live()
            await watched.pass_to(NOW + 125)
            first = watched.got(BTC).between(NOW + 60, NOW + 120)
            before = len(watched.batches)
            watched.clock.advance(26)
            await until(lambda: len(watched.batches) > before, "the correction")
            assert watched.batches[-1].complete_until == NOW + 120
            assert not watched.got(BTC).between(NOW + 60, NOW + 120).same_as(first)
            assert_truth(watched, NOW + 120)

    asyncio.run(main())


def test_a_correction_of_a_bar_from_the_history_is_delivered() -> None:
    async def main() -> None:
        async with watching(since=NOW, corrected=lambda i, t: t == NOW - 60) as watched:
            await until(lambda: len(watched.server.lines) == 2, "both connections")
            watched.clock.advance(31)
            await until(lambda: len(watched.got(BTC)) == len(watched.got(AAPL)) == 1, "the corrections")
            assert_truth(watched, NOW, NOW - 60)
            assert watched.complete_until == NOW

    asyncio.run(main())


@pytest.mark.parametrize("fault", ["the history fails", "the stream fails"])
def test_uncertain_spans_are_fetched_again_until_they_are_delivered(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_module, "PING_TIMEOUT", 0.5)
    monkeypatch.setattr(socket_module, "_CLOSE_TIMEOUT", 0.05)

    async def main() -> None:
        clock = HandClock(NOW + 31)
        with AlpacaServer(clock, corrected=lambda i, t: t == NOW - 60) as server:
            server.shown_after = 29.0  # the stream has sent the correction, the history does not have it yet
            feed = feed_of(server)
            async with aclosing(feed.stream((BTC,), NOW - 600)) as stream:
                first = await anext(stream)
                assert not first.bars[0].between(NOW - 60, NOW).same_as(server.truth(BTC, NOW - 60, NOW))
            clock.advance(600)
            async with aclosing(feed.stream((BTC,), NOW + 540)) as stream:
                await anext(stream)
                if fault == "the history fails":
                    server.bad_answers.append(answer(401, {}))
                else:
                    server.bad_messages.append("deaf")
                asked = len(server.requests)
                clock.advance(100)
                with pytest.raises(FeedUnavailable):
                    await anext(stream)
                assert len(server.requests) > asked, "it fetched the spans, but could not deliver them"
            async with aclosing(feed.stream((BTC,), NOW + 600)) as stream:
                await anext(stream)
                clock.advance(100)
                again = await anext(stream)
                assert again.bars[0].between(NOW - 60, NOW).same_as(server.truth(BTC, NOW - 60, NOW))
            await feed.close()

    asyncio.run(main())


def test_a_cancelled_stream_ends_without_a_closing_handshake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_module, "_CLOSE_TIMEOUT", 60.0)

    async def main() -> None:
        with AlpacaServer(HandClock(NOW)) as server:
            waiting = asyncio.ensure_future(anext(feed_of(server).stream((BTC,), NOW)))
            await until(lambda: bool(server.lines), "the connection")
            server.bad_messages.append("deaf")
            await until(lambda: not server.lines, "the server to stop reading")
            await until(lambda: not waiting.cancel(), "the stream to end")
            assert waiting.cancelled()
            await until(lambda: len(asyncio.all_tasks()) == 1, "every task to end")

    asyncio.run(main())


def test_a_bar_that_arrives_after_its_minute_is_complete_is_delivered() -> None:
    async def main() -> None:
        async with watching() as watched:
            await watched.live()
            await watched.pass_to(NOW + 60)
            watched.server.late = 20.0
            await watched.pass_to(NOW + 240)
            late = Span(NOW + 120, NOW + 180)
            await until(lambda: all(len(watched.got(i).between(late.start, late.end)) for i in (BTC, AAPL)), "the bars")
            assert_truth(watched, NOW + 180)

    asyncio.run(main())


def test_a_bad_bar_on_the_stream_is_dropped_and_fetched(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with watching() as watched:
            await watched.live()
            await watched.pass_to(NOW + 60)
            watched.server.spoil_message = lambda text: text.replace('"c": ', '"c": -')
            await watched.pass_to(NOW + 125)
            watched.server.spoil_message = lambda text: text
            assert len(watched.got(BTC).between(NOW + 60, NOW + 120)) == 0
            await watched.pass_to(NOW + 310)
            assert_truth(watched, NOW + 300)

    asyncio.run(main())
    assert "price not positive" in caplog.text


def test_other_messages_and_symbols_are_ignored(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with watching() as watched:
            await watched.live()
            watched.server.spoil_message = lambda text: (
                text[:-1]
                + ', {"T":"t","S":"BTC/USD","p":5}, {"T":"new"}, {}, {"T":["b"]}, '
                + text[1:-1].replace('"S": "', '"S": "X')
                + ", "
                + text[1:-1].replace("2026-", "2027-")
                + "]"
            )
            await watched.pass_to(NOW + 185)
            assert_truth(watched, NOW + 180)
            assert watched.ended is None

    asyncio.run(main())
    assert "from the future" in caplog.text


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("drop", "broke off"),
        ("half", "broke off"),
        ("garbage", "not JSON"),
        ("shape", "another shape"),
        ("slow client", "too slowly"),
        ("deaf", "broke off|respond in time"),
    ],
)
def test_a_broken_stream_raises_feed_unavailable(fault: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_module, "PING_TIMEOUT", 0.1)

    async def main() -> None:
        async with watching() as watched:
            await watched.live()
            watched.server.bad_messages.append(fault)
            await until(lambda: watched.ended is not None, "the stream to end")
            assert watched.ended is not None
            with pytest.raises(FeedUnavailable, match=words):
                raise watched.ended

    asyncio.run(main())


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (402, "ALPACA_API_KEY and ALPACA_SECRET_KEY"),
        (404, "keys in time"),
        (405, "watchlist"),
        (406, "Another process"),
        (409, "OPENBELL_ALPACA_FEED=iex"),
        (500, "internal"),
        (999, "reports what … \\(999\\)"),
    ],
)
def test_a_refused_stream_reports_what_to_do(code: int, words: str) -> None:
    async def main() -> None:
        clock = HandClock(NOW)
        with AlpacaServer(clock) as server:
            server.refused = (code, f"what {SECRET}")
            feed = feed_of(server)
            with pytest.raises(FeedUnavailable, match=words):
                async with aclosing(feed.stream((BTC, AAPL), NOW)) as stream:
                    await anext(stream)
            assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_a_server_that_does_not_authenticate_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_module, "OPEN_TIMEOUT", 0.1)
    monkeypatch.setattr(socket_module, "_CLOSE_TIMEOUT", 0.05)

    async def main() -> None:
        with AlpacaServer(HandClock(NOW)) as server:
            server.bad_messages.append("mute")
            with pytest.raises(FeedUnavailable, match="respond in time"):
                async with aclosing(feed_of(server).stream((BTC,), NOW)) as stream:
                    await anext(stream)

    asyncio.run(main())


def test_a_stream_without_server_or_package_is_refused(server: AlpacaServer, monkeypatch: pytest.MonkeyPatch) -> None:
    async def first(feed: AlpacaFeed) -> None:
        async with aclosing(feed.stream((BTC,), NOW)) as stream:
            await anext(stream)

    moving = HandClock(NOW)
    with pytest.raises(FeedUnavailable, match="cannot be reached"):
        asyncio.run(first(feed_of(server, clock=moving, stream_url="ws://127.0.0.1:9")))
    http = server.urls["data_url"].replace("http", "ws")
    with pytest.raises(FeedUnavailable, match="HTTP 401"):
        asyncio.run(first(feed_of(server, clock=moving, stream_url=http)))
    monkeypatch.setitem(sys.modules, "websockets.asyncio.client", None)
    with pytest.raises(SettingsError, match=r"pip install 'openbell\[alpaca\]'"):
        asyncio.run(first(feed_of(server, clock=moving)))


def test_an_unknown_symbol_does_not_open_a_stream(server: AlpacaServer) -> None:
    async def main() -> None:
        async with aclosing(feed_of(server).stream((BTC, parse("EUR/USD")), NOW)) as stream:
            await anext(stream)

    with pytest.raises(UnknownSymbol, match="EUR/USD"):
        asyncio.run(main())


def test_a_clock_in_the_past_gets_the_history_and_no_live_bars() -> None:
    async def main() -> None:
        clock = HandClock(NOW - 86400)
        with AlpacaServer(FixedClock(NOW)) as server:
            feed = feed_of(server, clock=clock)
            watched = WatchedStream(server, clock, feed, NOW - 86400 - 600)
            await until(lambda: bool(watched.batches))
            await until(lambda: not server.lines, "the connections to close")
            for _ in range(5):
                before = watched.complete_until
                clock.advance(60)
                await until(lambda b=before: watched.complete_until > b, "a replayed minute")  # type: ignore[misc]
            assert_truth(watched, NOW - 86400 + 240, NOW - 86400 - 600)
            await watched.close()
            await feed.close()

    asyncio.run(main())


def test_keys_appear_nowhere(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("httpx2", "httpcore2", "websockets"):  # the command line quiets them for the whole process
        caplog.set_level(logging.DEBUG, logger=name)
    texts: list[str] = []

    async def main() -> None:
        async with watching() as watched:
            await watched.live()
            watched.server.bad_messages.append("drop")
            await until(lambda: watched.ended is not None)
            watched.server.refused = (402, f"auth failed for {KEY} {SECRET}")
            with pytest.raises(FeedUnavailable) as refused:
                async with aclosing(watched.feed.stream((BTC,), NOW)) as stream:
                    await anext(stream)
            watched.server.bad_answers.append(answer(400, {"message": f"no {KEY} {SECRET}"}))
            with pytest.raises(FeedUnavailable) as denied:
                await watched.feed.history(Series(BTC), NOW - HOUR, NOW)
            texts.extend(repr(vars(error.value)) + str(error.value) for error in (refused, denied))
            texts.append(repr(watched.feed) + repr(watched.feed.source))

    asyncio.run(main())
    out, err = capfd.readouterr()
    everything = "\n".join([*texts, out, err, *(record.getMessage() for record in caplog.records), caplog.text])
    assert "HTTP Request" in everything, "the logs were recorded"
    assert SECRET not in everything
    assert KEY not in everything


@pytest.mark.parametrize("bad", ["", "  ", "line\nbreak", "schlüssel", "two words", "bell\a"])
def test_an_invalid_key_is_refused_without_showing_it(bad: str) -> None:
    for pair, variable in (((bad, SECRET), "ALPACA_API_KEY"), ((KEY, bad), "ALPACA_SECRET_KEY")):
        with pytest.raises(SettingsError, match=variable) as refused:
            AlpacaFeed(FixedClock(NOW), *pair)
        assert not bad.strip() or bad not in refused.value.message


def test_http_and_websocket_libraries_load_on_first_use() -> None:
    code = (
        "import sys; from openbell.feeds.alpaca.feed import AlpacaFeed; from openbell.market.clock import FixedClock;"
        "AlpacaFeed(FixedClock(1e9), 'k', 's'); print(sorted({'httpx2', 'httpcore2', 'websockets'} & sys.modules.keys()))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


FAULTS = ("drop", "half", "garbage", "shape", "slow client", "duplicate", "reorder")
BAD_ANSWERS = (
    answer(429, {}, retry_after="1"),
    answer(500, {}),
    Answer(200, b"half of this is missing", cut=True),
    Answer(200, b"<html>"),
    answer(200, {"bars": 5}),
    answer(401, {"message": "unauthorized."}),
    "drop",
)


class Collecting:
    """A collector with Alpaca's feed, a store, a clock that the test advances, and a server that injects faults."""

    def __init__(self, folder: Path, server: AlpacaServer, clock: HandClock) -> None:
        (folder / "watchlist.txt").write_text("BTC/USD\nAAPL\n")
        self.server, self.clock = server, clock
        self.store = ParquetStore(folder / "data")
        self.feed = feed_of(server)
        watched = WatchlistFile(folder / "watchlist.txt")
        self.collector = Collector(BarService(self.store, self.feed, clock), watched, watching_hub(watched))
        self.task = asyncio.create_task(self.collector.run())

    async def pass_by(self, seconds: float) -> None:
        """Advances the clock and waits until the collector has caught up."""
        # The clock must not advance while the collector processes a response of the history.
        await until(lambda: self.task.done() or self.collector.status.detail != "catching up", "the catching up")
        self.clock.advance(seconds)
        must = int((self.clock.epoch() - 75) // MINUTE) * MINUTE
        await until(lambda: self.task.done() or self.collector.status.through >= must, "the collector")
        if self.task.done():
            self.task.result()

    async def recover(self) -> None:
        """Ends all faults and advances the clock until all uncertain spans have been fetched again."""
        self.server.bad_messages.clear()
        self.server.bad_answers.clear()
        for _ in range(16):
            await self.pass_by(20)
        await until(lambda: len(self.server.lines) == 2, "both connections")

    def differences(self) -> list[str]:
        end = int((self.clock.epoch() - 120) // MINUTE) * MINUTE
        found = []
        for instrument in (BTC, AAPL):
            want, have = (
                self.server.truth(instrument, NOW - HOUR, end),
                self.store.read(Series(instrument), NOW - HOUR, end),
            )
            if not have.same_as(want):
                rows = [set(zip(*(c.tolist() for c in bars.columns()), strict=True)) for bars in (want, have)]
                found.append(f"{instrument}: lacks {sorted(rows[0] - rows[1])}, has {sorted(rows[1] - rows[0])}")
            if gaps := self.store.gaps(Series(instrument), Span(NOW - HOUR, end)):
                found.append(f"{instrument}: not covered {gaps}")
        return found

    async def assert_truth(self) -> None:
        with suppress(AssertionError):
            await until(lambda: not self.differences(), "the store to equal the vendor's bars")
        assert self.differences() == []

    async def close(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task
        await self.feed.close()
        self.store.close()


@asynccontextmanager
async def collecting(folder: Path) -> AsyncIterator[Collecting]:
    clock = HandClock(NOW)
    with AlpacaServer(clock, corrected=lambda i, t: (t // MINUTE + len(i.symbol)) % 3 == 0) as server:
        desk = Collecting(folder, server, clock)
        try:
            yield desk
        finally:
            await desk.close()


@pytest.fixture
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens the collector's pauses and the timeouts of the socket."""
    monkeypatch.setattr(collector_module, "_LONGEST_PAUSE", 0.002)
    monkeypatch.setattr(socket_module, "PING_TIMEOUT", 0.3)
    monkeypatch.setattr(socket_module, "_CLOSE_TIMEOUT", 0.05)


@pytest.mark.usefixtures("_short_pauses")
def test_a_correction_that_was_missed_while_offline_is_fetched(tmp_path: Path) -> None:
    async def main() -> None:
        async with collecting(tmp_path) as desk:
            for _ in range(19):
                await desk.pass_by(10)
            assert desk.server.corrected(BTC, NOW + 120)
            await until(lambda: desk.collector.status.through == NOW + 180)
            await until(lambda: len(desk.server.lines) == 2)
            desk.server.refused = (500, "internal error")
            desk.server.bad_messages.extend(["drop", "drop"])
            await until(lambda: desk.collector.status.detail == "waiting for the feed")
            for _ in range(20):  # the correction is sent while no connection is open
                await desk.pass_by(20)
            desk.server.refused = None
            await desk.recover()
            await desk.assert_truth()

    asyncio.run(main())


@pytest.mark.usefixtures("_short_pauses")
@pytest.mark.parametrize("seed", SEEDS[:FAULT_SCHEDULES])
def test_after_random_faults_the_store_equals_the_vendors_bars(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)

    async def main() -> None:
        async with collecting(tmp_path) as desk:
            desk.server.shown_after = chance.choice([0.5, 10.0, 25.0])
            desk.server.page = chance.choice([10_000, 1000])
            for _ in range(25):
                match chance.randrange(8):
                    case 0 | 1 | 2:
                        desk.server.bad_messages.append(chance.choice(FAULTS))
                    case 3:
                        desk.server.bad_answers.extend(chance.choices(BAD_ANSWERS, k=chance.randrange(1, 6)))
                    case 4:
                        desk.server.late = chance.choice([0.0, 3.0, 20.0])
                    case 5 if chance.random() < 0.3:
                        desk.server.bad_messages.append("deaf")
                    case 6:
                        desk.server.refused = (406, "connection limit exceeded")
                    case _:
                        desk.server.refused = None
                await desk.pass_by(chance.choice([1, 5, 7, 20, 31, 60, 90]))
            desk.server.refused, desk.server.late = None, 0.0
            await desk.recover()
            await desk.assert_truth()

    asyncio.run(main())


@given(st.integers(0, 10**6), st.floats(0, 1, exclude_max=True), st.floats(0.001, 10), st.floats(0.001, 100))
def test_backoff_grows_to_its_limit_and_is_never_zero(
    attempt: int, chance: float, first: float, longest: float
) -> None:
    pause = backoff(attempt, chance, first=first, longest=longest)
    assert 0 < pause <= longest
    assert pause <= first * 2.0 ** min(attempt, 64)
    assert pause >= min(longest, first) / 2
    assert backoff(attempt + 1, chance, first=first, longest=longest) >= pause


@given(st.one_of(st.text(max_size=40), st.floats().map(str), st.datetimes().map(str)), st.text(max_size=40))
def test_any_retry_after_is_a_time_or_none(text: str, date: str) -> None:
    found = retry_after({"retry-after": text, "date": date})
    assert found is None or 0 <= found < float("inf")


@given(st.integers(0, 10**6), st.integers(0, 4 * 10**9))
def test_retry_after_is_read_as_number_and_as_date(seconds: int, now: int) -> None:
    assert retry_after({"retry-after": str(seconds)}) == seconds
    dates = {"retry-after": formatdate(now + seconds, usegmt=True), "date": formatdate(now, usegmt=True)}
    assert retry_after(dates) == seconds
    assert retry_after({"retry-after": dates["date"], "date": dates["retry-after"]}) == 0
    assert retry_after({}) is None


@given(st.integers(1, 30), st.lists(st.integers(0, 20), min_size=1, max_size=100))
def test_without_headers_the_budget_limits_every_window(size: int, waits: list[int]) -> None:
    budget, now, times = Budget(size), 0.0, []
    for wait in waits:
        now += wait
        now += budget.wait(now)
        budget.take(now)
        budget.answered({}, now)
        times.append(now)
    windows: list[list[float]] = []
    for moment in times:
        if not windows or moment >= windows[-1][0] + 60:
            windows.append([])
        windows[-1].append(moment)
    assert max(map(len, windows)) <= size


@given(st.integers(0, 50), st.integers(0, 10), st.integers(0, 500), st.floats(0, 100))
def test_the_rate_limit_headers_set_the_budget_minus_requests_in_flight(
    left: int, in_flight: int, reset: int, now: float
) -> None:
    budget = Budget(200)
    for _ in range(in_flight + 1):
        budget.take(now)
    date = 1_767_798_000
    headers = {
        "x-ratelimit-remaining": str(left),
        "x-ratelimit-reset": str(date + reset),
        "date": formatdate(date, usegmt=True),
    }
    budget.answered(headers, now)
    wait = budget.wait(now)
    assert wait == (0 if left > in_flight else pytest.approx(min(60, reset)))
    budget.hold(5.0, now)
    assert budget.wait(now) == pytest.approx(5.0)
    assert budget.wait(now + 5.1) == 0


def row(close: float, time: int = NOW) -> Row:
    return time, close, close, close, close, 1.0


@given(st.lists(st.tuples(st.sampled_from(RowSource), st.integers(1, 5))))
def test_the_row_of_highest_precedence_is_kept_and_delivered_once(rows: list[tuple[RowSource, int]]) -> None:
    minutes = Minutes()
    closes: list[float] = []
    for source, close in rows:
        minutes.add(BTC, [row(close)], source)
        closes += [part.close[0] for part in minutes.take(NOW + 60)]
    assert all(a != b for a, b in pairwise(closes)), "only changed rows are delivered"
    if rows:
        highest = max(source for source, _ in rows)
        assert closes[-1] == [close for source, close in rows if source is highest][-1]


def test_a_minute_is_delivered_once_and_removed_later() -> None:
    minutes = Minutes()
    minutes.add(BTC, [row(1.0), row(2.0, NOW + 60)], RowSource.FIRST)
    assert not minutes.has_undelivered(NOW)
    assert minutes.take(NOW) == ()
    assert minutes.has_undelivered(NOW + 60)
    (part,) = minutes.take(NOW + 60)
    assert part.time.tolist() == [NOW]
    assert not minutes.has_undelivered(NOW + 60)
    minutes.take(NOW + 86400)
    assert minutes._rows[BTC] == {}


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60))))
def test_uncertain_spans_are_the_union_of_the_added_spans(spans: list[tuple[int, int]]) -> None:
    uncertain = UncertainSpans()
    for start, end in spans:
        uncertain.add(start, end)
    want = {at for start, end in spans for at in range(start, end)}
    assert {at for start, end in uncertain.spans for at in range(start, end)} == want
    assert all(a[1] < b[0] for a, b in pairwise(uncertain.spans))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("tohlcv"), inner, max_size=6),
    max_leaves=10,
)


@given(JSON)
def test_any_json_is_a_row_or_refused(raw: object) -> None:
    try:
        found = read_row(raw)
    except MalformedMessage as why:
        assert str(why)
    else:
        _, open_, high, low, *_ = found
        assert low <= open_ <= high
