"""The ccxt feed, tested with a local server that implements Binance's protocol and injects faults."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from openbell.desk.bars import collector as collector_module
from openbell.desk.bars.collector import Collector
from openbell.desk.bars.service import BarService
from openbell.desk.bars.watchlist import WatchlistFile
from openbell.feeds.ccxt_exchange import candle_stream, connection, library
from openbell.feeds.ccxt_exchange.candle_stream import RecentBars
from openbell.feeds.ccxt_exchange.candles import to_bars
from openbell.feeds.ccxt_exchange.feed import CcxtFeed
from openbell.feeds.port import Batch, Feed
from openbell.market.bars import Bars, empty, make, merge
from openbell.market.clock import Clock, FixedClock
from openbell.market.errors import FeedUnavailable, NoSuchSeries, OpenbellError, SettingsError, UnknownSymbol
from openbell.market.instruments import Instrument, parse
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet.store import ParquetStore
from tests.clocks import HandClock
from tests.counts import runs
from tests.desk.scripted import watching_hub
from tests.feeds.binance_server import BTC, ETH, HOUR, LTC, SOL, BinanceServer, funding
from tests.feeds.contract import NOW, FeedContract
from tests.waiting import until

pytestmark = [
    pytest.mark.skipif(find_spec("ccxt") is None, reason="pip install 'openbell[ccxt]'"),
    # ccxt sets an option of aiohttp that newer Python versions do not need.
    pytest.mark.filterwarnings("ignore:enable_cleanup_closed:DeprecationWarning"),
]
FAULT_SCHEDULES = runs(3, soak=60)
DAY = 86400
PAIRS = (BTC, ETH)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens all pauses."""
    monkeypatch.setattr(connection, "PAUSE", 0.01)
    monkeypatch.setattr(candle_stream, "TICK", 0.002)
    monkeypatch.setattr(collector_module, "_LONGEST_PAUSE", 0.01)


@pytest.fixture
def server() -> Iterator[BinanceServer]:
    with BinanceServer(FixedClock(NOW + 30)) as running:
        yield running


def make_feed(server: BinanceServer, clock: Clock | None = None, **options: Any) -> CcxtFeed:
    server.clock = clock or server.clock
    return CcxtFeed(server.clock, "binance", options=server.options(**options))


def history(feed: CcxtFeed, instrument: Instrument, start: int, end: int) -> Bars:
    return asyncio.run(feed.history(Series(instrument), start, end))


def candle_requests(server: BinanceServer) -> list[float]:
    return [at for path, _, at in server.requests if path.endswith("klines")]


class TestCcxt(FeedContract):
    known = PAIRS

    @pytest.fixture(autouse=True)
    def running(self, server: BinanceServer) -> None:
        self.server = server

    def make(self, clock: Clock, folder: Path) -> Feed:
        return make_feed(self.server, clock)


# What it is


def test_name_and_source_contain_the_exchange() -> None:
    feed = CcxtFeed(FixedClock(NOW), "kraken")
    assert (feed.name, str(feed.source), feed.origin) == ("ccxt:kraken", "live/ccxt-kraken/raw", "live")


def test_supports_all_pairs_until_the_markets_are_loaded_then_the_listed_ones(server: BinanceServer) -> None:
    feed = make_feed(server)
    assert feed.supports(parse("BTC/USD")), "it could be listed"
    assert not feed.supports(parse("AAPL"))
    assert not feed.supports(parse("EUR/USD"))
    assert server.requests == []
    history(feed, BTC, NOW - 60, NOW)
    assert [feed.supports(pair) for pair in (BTC, ETH, SOL)] == [True] * 3
    assert not feed.supports(parse("BTC/USD")), "BTC/USDT is another instrument"
    assert not feed.supports(LTC), "its trading is halted"


@pytest.mark.parametrize("pair", [parse("BTC/USD"), LTC, parse("AAPL")])
def test_a_pair_that_is_not_listed_is_unknown(server: BinanceServer, pair: Instrument) -> None:
    feed = make_feed(server)

    async def stream() -> None:
        async with aclosing(feed.stream([BTC, pair], NOW)) as batches:
            await anext(batches)

    with pytest.raises(UnknownSymbol, match="binance lists no active spot market"):
        history(feed, pair, NOW - 600, NOW)
    with pytest.raises(UnknownSymbol):
        asyncio.run(stream())


def test_an_exchange_that_ccxt_does_not_support_is_refused_with_similar_names() -> None:
    with pytest.raises(SettingsError, match="binance"):
        history(CcxtFeed(FixedClock(NOW), "binanec"), BTC, NOW - 60, NOW)
    with pytest.raises(SettingsError, match="kraken"):
        history(CcxtFeed(FixedClock(NOW), "KRAKEN"), BTC, NOW - 60, NOW)


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    library.load.cache_clear()
    monkeypatch.setitem(sys.modules, "ccxt", None)
    monkeypatch.setitem(sys.modules, "ccxt.async_support", None)
    with pytest.raises(SettingsError, match=r"pip install 'openbell\[ccxt\]'"):
        history(CcxtFeed(FixedClock(NOW), "binance"), BTC, NOW - 60, NOW)


def test_an_exchange_without_minute_candles_is_refused() -> None:
    with pytest.raises(FeedUnavailable, match="bitflyer offers no 1-minute candles"):
        history(CcxtFeed(FixedClock(NOW), "bitflyer"), BTC, NOW - 60, NOW)


def test_the_markets_are_loaded_once_and_again_after_a_day(
    server: BinanceServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = make_feed(server)

    def loads() -> int:
        return sum(path.endswith("v3/exchangeInfo") for path, _, _ in server.requests)

    for _ in range(3):
        history(feed, BTC, NOW - 600, NOW)
    assert loads() == 1
    monkeypatch.setattr(connection, "LISTING_AGE", 0.0)
    server.fail(*["shape"] * 4, on="v3/exchangeInfo")
    assert len(history(feed, BTC, NOW - 600, NOW)) == 10, "an answer without markets does not empty the listing"
    assert loads() == 5


def test_an_empty_list_of_markets_is_a_failure(server: BinanceServer) -> None:
    feed = make_feed(server)
    server.fail(*["shape"] * 4, on="v3/exchangeInfo")
    with pytest.raises(FeedUnavailable, match="no spot markets"):
        history(feed, BTC, NOW - 600, NOW)
    assert feed.supports(parse("BTC/USD")), "nothing was learnt"
    assert len(history(feed, BTC, NOW - 600, NOW)) == 10


# History


def test_history_is_fetched_page_by_page(server: BinanceServer) -> None:
    feed = make_feed(server)
    start = NOW - 2500 * 60
    assert history(feed, BTC, start, NOW).same_as(server.truth(BTC, start, NOW))
    assert len(candle_requests(server)) == 3
    assert history(feed, BTC, start + 1, start + 119).same_as(server.truth(BTC, start + 60, start + 120))


def test_pages_smaller_than_requested_are_continued(server: BinanceServer) -> None:
    server.page = 7
    assert history(make_feed(server), BTC, NOW - 6000, NOW).same_as(server.truth(BTC, NOW - 6000, NOW))


@pytest.mark.parametrize("narrow", [True, False])
def test_a_span_without_trades_does_not_end_the_history(server: BinanceServer, narrow: bool) -> None:
    start = NOW - 3 * DAY
    server.narrow = narrow
    server.quiet = lambda _pair, minute: start + 3000 <= minute < start + 2 * DAY or minute >= NOW - HOUR
    found = history(make_feed(server), BTC, start, NOW)
    assert found.same_as(server.truth(BTC, start, NOW))
    assert len(found) == 50 + 1440 - 60
    assert len(candle_requests(server)) <= 8


def test_there_are_no_bars_before_the_first_trade(server: BinanceServer) -> None:
    server.quiet = lambda _pair, minute: minute < NOW - HOUR
    assert len(history(make_feed(server), BTC, NOW - 2 * DAY, NOW - DAY)) == 0
    assert len(candle_requests(server)) == 1


def test_impossible_candles_are_dropped_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    good: list[list[Any]] = [[(NOW - 300) * 1000, 1, 2, 0.5, 1.5, 10], [(NOW - 120) * 1000, 1, 2, 0.5, 1.5, 10, "more"]]
    bad: list[list[Any]] = [
        [(NOW - 240) * 1000, 1, 0.5, 2, 1, 1],
        [(NOW - 180) * 1000, None, 2, 1, 1, 1],
        [(NOW - 90) * 1000, 1, 2, 1, 1, 1],
        [None, 1, 2, 1, 1, 1],
        [1e300, 1, 2, 1, 1, 1],
        [NOW * 1000, 1, 2, 1, 1, 1],
    ]
    with caplog.at_level(logging.WARNING):
        found = to_bars(Series(BTC), [good[1], *bad, good[0], good[0]], NOW)
    assert found.time.tolist() == [NOW - 300, NOW - 120]
    assert all(word in caplog.text for word in ("BTC/USDT", "not finite", "high below low", "not on the minute"))
    assert "future" not in caplog.text, "a candle that is still forming is not logged"


@pytest.mark.parametrize("fault", ["503", "500", "half", "text", "shape", "drop", "slow", "429", "418"])
def test_a_temporary_failure_is_retried(server: BinanceServer, fault: str) -> None:
    feed = make_feed(server, timeout=200)
    history(feed, BTC, NOW - 60, NOW)
    server.fail(fault, "", fault, fault)
    server.page = 60
    assert history(feed, BTC, NOW - 7200, NOW).same_as(server.truth(BTC, NOW - 7200, NOW))
    assert server.pending == 0


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("503", "ExchangeNotAvailable"),
        ("half", "ClientPayloadError"),
        ("text", "TypeError: the response is not JSON"),
        ("shape", "ValueError"),
        ("drop", "ServerDisconnectedError"),
        ("slow", "RequestTimeout"),
        ("429", "429"),
    ],
)
def test_a_lasting_failure_is_raised_after_four_tries(server: BinanceServer, fault: str, reason: str) -> None:
    feed = make_feed(server, timeout=100)
    server.fail(*[fault] * 8)
    with pytest.raises(FeedUnavailable, match=f"binance failed 4 times: .*{reason}"):
        history(feed, BTC, NOW - 600, NOW)
    assert len(candle_requests(server)) >= 4


def test_a_refusal_is_not_retried(server: BinanceServer) -> None:
    server.fail("401")
    with pytest.raises(FeedUnavailable, match="binance refuses"):
        history(make_feed(server), BTC, NOW - 600, NOW)
    assert len(candle_requests(server)) == 1


def test_a_symbol_that_the_exchange_refuses_is_unknown(server: BinanceServer) -> None:
    server.fail("unknown")
    with pytest.raises(UnknownSymbol, match="BTC/USDT"):
        history(make_feed(server), BTC, NOW - 600, NOW)


def test_no_request_is_sent_before_retry_after(server: BinanceServer) -> None:
    feed = make_feed(server)
    server.fail("429:1")

    async def both() -> None:
        first = asyncio.ensure_future(feed.history(Series(BTC), NOW - 600, NOW))
        await until(lambda: server.pending == 0 and feed._connection._suspended_until > 0)
        await feed.history(Series(ETH), NOW - 600, NOW)
        await first

    asyncio.run(both())
    limited, *later = candle_requests(server)
    assert len(later) == 2
    assert 1.0 <= min(later) - limited < 3.0


def test_calls_fail_at_once_during_a_long_ban(server: BinanceServer) -> None:
    feed = make_feed(server)
    server.fail("418:600")
    for _ in range(2):
        began = time.monotonic()
        with pytest.raises(FeedUnavailable, match=r"no requests from this address for another (600|599) s"):
            history(feed, BTC, NOW - 600, NOW)
        assert time.monotonic() - began < 5.0
    assert len(candle_requests(server)) == 1


# Series beyond candles


def test_funding_is_converted_to_a_rate_per_eight_hours(server: BinanceServer) -> None:
    feed = make_feed(server)
    for pair, step in ((BTC, 8 * HOUR), (ETH, 4 * HOUR)):
        found = asyncio.run(feed.extra("funding", pair, NOW - 40 * DAY, NOW + DAY))
        assert set(np.diff(found.time).tolist()) == {step}
        assert found.time[0] - step < NOW - 40 * DAY <= found.time[0]
        assert np.allclose(found.value, [funding(at) for at in found.time.tolist()], rtol=0, atol=1e-12)

    (alone,) = asyncio.run(feed.extra("funding", ETH, NOW - 15 * HOUR, NOW - 13 * HOUR)).value
    assert alone == pytest.approx(funding(NOW - 15 * HOUR)), "its interval is computed from the value before it"


@pytest.mark.parametrize("kind", ["open_interest", "long_short"])
def test_statistics_are_paged_as_far_back_as_exchanges_keep_them(server: BinanceServer, kind: str) -> None:
    found = asyncio.run(make_feed(server).extra(kind, BTC, NOW - 90 * DAY, NOW))
    assert found.time[-1] == NOW - HOUR
    assert found.time[0] == NOW - 29 * DAY + HOUR
    assert set(np.diff(found.time).tolist()) == {HOUR}


def test_swaps_are_loaded_when_a_series_first_needs_them(server: BinanceServer) -> None:
    feed = make_feed(server)

    def swap_listings() -> int:
        return sum(path == "/fapi/v1/exchangeInfo" for path, _, _ in server.requests)

    history(feed, BTC, NOW - 600, NOW)
    assert swap_listings() == 0
    server.fail(*["503"] * 4, on="fapi/v1/exchangeInfo")
    with pytest.raises(FeedUnavailable):
        asyncio.run(feed.extra("funding", BTC, NOW - DAY, NOW))
    assert len(history(feed, BTC, NOW - 600, NOW)) == 10, "candles do not need them"
    tried = swap_listings()
    for _ in range(2):
        assert len(asyncio.run(feed.extra("funding", BTC, NOW - DAY, NOW)).time)
    history(feed, BTC, NOW - 600, NOW)
    assert swap_listings() == tried + 1


def test_a_missing_series_is_refused_with_the_reason(server: BinanceServer) -> None:
    feed = make_feed(server)
    for kind, pair, reason in (
        ("funding", SOL, "no perpetual swap"),
        ("delta", BTC, "exchanges have funding"),
        ("fear_greed", BTC, "exchanges have funding"),
    ):
        with pytest.raises(NoSuchSeries, match=reason):
            asyncio.run(feed.extra(kind, pair, NOW - DAY, NOW))
    without = make_feed(server, has={"fetchFundingRateHistory": False})
    with pytest.raises(NoSuchSeries, match="does not publish it"):
        asyncio.run(without.extra("funding", BTC, NOW - DAY, NOW))


# The stream


class FollowedStream:
    """Reads a stream in the background and keeps its batches."""

    def __init__(self, feed: CcxtFeed, server: BinanceServer, clock: HandClock, pairs: tuple[Instrument, ...]) -> None:
        self.feed, self.server, self.clock, self.pairs = feed, server, clock, pairs
        self.since = NOW - 600
        self.batches: list[Batch] = []
        self.failure: OpenbellError | None = None

    async def read(self) -> None:
        try:
            async with aclosing(self.feed.stream(self.pairs, self.since)) as stream:
                async for batch in stream:
                    self.batches.append(batch)
        except OpenbellError as failure:
            self.failure = failure

    @property
    def done(self) -> int:
        return self.batches[-1].complete_until if self.batches else 0

    def bars(self, pair: Instrument) -> Bars:
        return merge(empty(pair), *(bars for batch in self.batches for bars in batch.bars if bars.instrument == pair))

    def latest_candles(self) -> dict[str, int]:
        """Returns the time of the latest candle that the socket has received, for each pair."""
        (client,) = SOCKETS[-1:]
        return {
            pair.symbol: max((row[0] for row in client.candles(pair.symbol)), default=0) // 1000 for pair in self.pairs
        }

    async def minute(self, *, from_socket: bool = True) -> None:
        """Advances the clock past the minute's end and the settle time, and waits until the stream delivers it."""
        forming = int(self.clock.epoch() // 60 * 60) + 60
        self.clock.advance(forming + 1 - self.clock.epoch())
        if from_socket:  # without this the clock could pass the settle time before the message arrives
            await until(
                lambda: all(at >= forming for at in self.latest_candles().values()), "the message of the socket"
            )
        self.clock.advance(2)
        await until(lambda: self.done >= forming or bool(self.failure), "the minute")

    def check(self) -> None:
        """Checks that the delivered bars are the closed bars of the exchange."""
        times = [batch.complete_until for batch in self.batches]
        assert times == sorted(set(times))
        for pair in self.pairs:
            assert self.bars(pair).same_as(self.server.truth(pair, self.since, self.done)), pair


SOCKETS: list[candle_stream.CandleSocket] = []


@pytest.fixture(autouse=True)
def record_sockets(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Adds all sockets that streams open to SOCKETS."""
    opened = candle_stream.CandleSocket.__init__

    def init(self: candle_stream.CandleSocket, *arguments: Any) -> None:
        opened(self, *arguments)
        SOCKETS.append(self)

    monkeypatch.setattr(candle_stream.CandleSocket, "__init__", init)
    yield
    SOCKETS.clear()


@asynccontextmanager
async def following(
    server: BinanceServer, *pairs: Instrument, warm: bool = True, **options: Any
) -> AsyncIterator[FollowedStream]:
    """Opens a stream and waits for the history and, if `warm`, for the socket's first candle of each pair."""
    clock = HandClock(NOW + 10)
    followed = FollowedStream(make_feed(server, clock, **options), server, clock, pairs or PAIRS)
    reading = asyncio.create_task(followed.read())
    try:
        await until(lambda: followed.done >= NOW or reading.done(), "the history")
        if warm:
            await until(lambda: min(followed.latest_candles().values()) > 0, "the first message")
        yield followed
        if reading.done():
            reading.result()
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await followed.feed.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert not others, "a closed stream leaves no tasks"


def test_minutes_come_from_the_socket_as_they_close(server: BinanceServer) -> None:
    async def main() -> None:
        async with following(server) as followed:
            asked = len(candle_requests(server))
            await followed.minute()
            assert len(candle_requests(server)) == asked + 2, "the socket's first minute may be incomplete"
            asked = len(candle_requests(server))
            for _ in range(5):
                await followed.minute()
            assert len(candle_requests(server)) == asked
            assert server.connections == 1
            followed.check()
            assert followed.done == NOW + 360

    asyncio.run(main())


def test_a_minute_is_not_delivered_before_the_settle_time(server: BinanceServer) -> None:
    async def main() -> None:
        async with following(server) as followed:
            await followed.minute()
            followed.clock.advance(NOW + 122.5 - followed.clock.epoch())
            await until(lambda: min(followed.latest_candles().values()) == NOW + 120)
            before = len(followed.batches)
            followed.clock.advance(0.25)
            assert followed.done == NOW + 60
            assert len(followed.batches) == before
            followed.clock.advance(0.25)
            await until(lambda: followed.done == NOW + 120)
            followed.check()

    asyncio.run(main())


def test_the_stream_first_delivers_the_history_at_most_a_day_at_a_time(server: BinanceServer) -> None:
    async def main() -> None:
        feed = make_feed(server, HandClock(NOW + 2))
        async with aclosing(feed.stream(PAIRS, NOW - DAY - 630)) as stream:
            batches = [await anext(stream), await anext(stream)]
        assert [batch.complete_until for batch in batches] == [NOW - 600, NOW - 60]
        assert [[len(bars) for bars in batch.bars] for batch in batches] == [[1440, 1440], [9, 9]]
        await feed.close()

    asyncio.run(main())


def test_a_feed_that_is_never_closed_closes_with_its_event_loop(server: BinanceServer) -> None:
    async def main() -> None:
        await make_feed(server).history(Series(BTC), NOW - 600, NOW)
        gc.collect()
        assert len(asyncio.all_tasks()) == 2

    asyncio.run(main())
    gc.collect()  # unclosed connections would warn here
    assert not connection._CLOSERS


def test_the_watermark_follows_a_running_stream(server: BinanceServer) -> None:
    async def main() -> None:
        async with following(server) as followed:
            feed = followed.feed
            assert feed.watermark(NOW + 10) == NOW
            assert feed.watermark(NOW + 200) == NOW + 140, "a stream that lags does not delay the watermark further"
            await followed.minute()
            assert feed.watermark(NOW + 64) == NOW + 60
            assert feed.watermark(NOW + 50) == NOW + 50, "never ahead of the clock"
        assert feed.watermark(NOW + 64) == NOW + 4

    asyncio.run(main())


def test_complete_until_increases_without_trades(server: BinanceServer) -> None:
    server.quiet = lambda pair, minute: pair == ETH and minute >= NOW - 300

    async def main() -> None:
        async with following(server, warm=False) as followed:
            for _ in range(3):
                await followed.minute(from_socket=False)
            followed.check()
            assert len(followed.bars(ETH)) == 5
            assert len(followed.bars(BTC)) == 13

    asyncio.run(main())


@pytest.mark.parametrize("switch", ["duplicate", "reorder"])
def test_duplicate_and_reordered_messages_change_nothing(server: BinanceServer, switch: str) -> None:
    setattr(server, switch, True)

    async def main() -> None:
        async with following(server) as followed:
            for _ in range(4):
                await followed.minute()
            setattr(server, switch, False)
            await followed.minute()
            followed.check()

    asyncio.run(main())


def test_a_late_correction_is_delivered(server: BinanceServer) -> None:
    async def main() -> None:
        async with following(server) as followed:
            for _ in range(4):
                await followed.minute()
            server.correct(BTC, NOW + 120, 1.5)
            server.correct(ETH, NOW - 120, 0.5)  # from before the stream
            for _ in range(2):
                await followed.minute()
            followed.check()
            changed = [bars for batch in followed.batches[-2:] for bars in batch.bars if bars.time[0] < NOW + 240]
            assert sum(len(bars) for bars in changed) == len(changed) + 2, "the corrected ones and no others"

    asyncio.run(main())


def test_a_correction_between_two_streams_is_delivered_by_the_second(server: BinanceServer) -> None:
    async def main() -> None:
        async with following(server) as followed:
            await followed.minute()
            feed = followed.feed
        server.correct(BTC, NOW, 2.0)
        async with aclosing(feed.stream(PAIRS, NOW + 60)) as stream:
            followed.clock.advance(60)
            batch = await anext(stream)
        (btc,) = (bars for bars in batch.bars if bars.instrument == BTC)
        assert btc.same_as(server.truth(BTC, NOW, NOW + 120))
        (eth,) = (bars for bars in batch.bars if bars.instrument == ETH)
        assert eth.time.tolist() == [NOW + 60], "unchanged bars are not delivered again"
        await feed.close()

    asyncio.run(main())


@pytest.mark.parametrize("tick", [0.0, 60.0])
def test_a_broken_connection_ends_the_stream_with_the_reason(
    server: BinanceServer, monkeypatch: pytest.MonkeyPatch, tick: float
) -> None:
    monkeypatch.setattr(candle_stream, "TICK", tick)  # with 60 s no call waits for a message when the connection breaks

    async def main() -> None:
        async with following(server) as followed:
            await followed.minute()
            server.drop()
            await until(lambda: followed.failure is not None)
            assert isinstance(followed.failure, FeedUnavailable)
            assert "connection to binance broke" in followed.failure.message
            assert followed.feed.watermark(NOW + 200) == NOW + 140, "the broken stream no longer counts"

    asyncio.run(main())


def test_a_socket_that_is_refused_ends_the_stream(server: BinanceServer) -> None:
    server.refuse = True

    async def main() -> None:
        feed = make_feed(server, HandClock(NOW + 10))
        with pytest.raises(FeedUnavailable, match="connection to binance broke"):
            async with aclosing(feed.stream(PAIRS, NOW - 600)) as stream:
                async for _ in stream:
                    pass
        await feed.close()

    asyncio.run(main())


def test_a_stream_can_be_closed_while_its_socket_is_connecting(server: BinanceServer) -> None:
    server.hang = True

    async def main() -> None:
        async with following(server, warm=False) as followed:
            await followed.minute(from_socket=False)
            followed.check()
            began = time.monotonic()
        assert time.monotonic() - began < 2.0
        server.hang = False

    asyncio.run(main())
    gc.collect()


def test_sockets_that_keep_breaking_are_replaced_by_polling(server: BinanceServer) -> None:
    server.refuse = True

    async def main() -> None:
        feed = make_feed(server, HandClock(NOW + 10))
        failures = 0
        while failures <= candle_stream.MAX_SHORT_LIVED:
            try:
                async with aclosing(feed.stream(PAIRS, NOW - 600)) as stream:
                    await anext(stream)
                    await until(SOCKETS[-1].failed.done, "the refusal")
                    if len(SOCKETS) == failures:
                        break
                    await anext(stream)
            except FeedUnavailable:
                failures += 1
        assert failures == len(SOCKETS) == candle_stream.MAX_SHORT_LIVED
        await feed.close()

    asyncio.run(main())


def test_no_socket_is_opened_while_the_exchange_accepts_no_requests(server: BinanceServer) -> None:
    async def main() -> None:
        feed = make_feed(server, HandClock(NOW + 10))
        server.fail("418:600")
        with pytest.raises(FeedUnavailable):
            await feed.history(Series(BTC), NOW - 600, NOW)
        with pytest.raises(FeedUnavailable, match="no requests"):
            async with aclosing(feed.stream(PAIRS, NOW)) as stream:
                await anext(stream)
        assert SOCKETS == []
        await feed.close()

    asyncio.run(main())


def test_a_candle_that_appears_late_is_delivered_late(server: BinanceServer) -> None:
    server.quiet = lambda _pair, minute: minute == NOW

    async def main() -> None:
        async with following(server, warm=False, has={"watchOHLCVForSymbols": False, "watchOHLCV": False}) as followed:
            await followed.minute(from_socket=False)
            assert NOW not in followed.bars(BTC).time
            server.quiet = lambda _pair, _minute: False
            await followed.minute(from_socket=False)
            followed.check()

    asyncio.run(main())


@pytest.mark.parametrize("switch", ["mute", "garble"])
def test_a_socket_that_is_silent_while_the_exchange_trades_ends_the_stream(
    server: BinanceServer, switch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with following(server) as followed:
            await followed.minute()
            setattr(server, switch, True)
            await followed.minute(from_socket=False)
            followed.check()
            assert followed.failure is None, "minutes missing on the socket are fetched by HTTP"
            monkeypatch.setattr(candle_stream, "SILENCE", 0.0)
            await followed.minute(from_socket=False)
            assert "its socket is silent" in str(followed.failure)
            followed.check()

    asyncio.run(main())


def test_a_silent_socket_is_no_failure_if_nothing_trades(
    server: BinanceServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.quiet = lambda _pair, minute: minute >= NOW

    async def main() -> None:
        async with following(server, warm=False) as followed:
            monkeypatch.setattr(candle_stream, "SILENCE", 0.0)
            for _ in range(3):
                await followed.minute(from_socket=False)
            assert followed.failure is None
            followed.check()

    asyncio.run(main())


@pytest.mark.parametrize("fault", ["503", "half", "drop", "429"])
def test_a_request_that_keeps_failing_ends_the_stream(server: BinanceServer, fault: str) -> None:
    async def main() -> None:
        async with following(server, BTC) as followed:
            server.fail(*[fault] * 8)
            await followed.minute()
            assert isinstance(followed.failure, FeedUnavailable)

    asyncio.run(main())


def test_an_exchange_without_sockets_is_polled_every_minute(server: BinanceServer) -> None:
    absent = {"watchOHLCV": False, "watchOHLCVForSymbols": False}

    async def main() -> None:
        async with following(server, warm=False, has=absent) as followed:
            for _ in range(4):
                asked = len(candle_requests(server))
                await followed.minute(from_socket=False)
                assert len(candle_requests(server)) == asked + 2
            server.correct(BTC, NOW + 60, 3.0)
            await followed.minute(from_socket=False)
            followed.check()
        assert server.connections == 0

    asyncio.run(main())


def test_pairs_are_subscribed_one_by_one_if_the_exchange_has_no_groups(server: BinanceServer) -> None:
    async def main() -> None:
        async with following(server, has={"watchOHLCVForSymbols": False}) as followed:
            for _ in range(3):
                await followed.minute()
            followed.check()

    asyncio.run(main())


def test_an_unsupported_socket_is_replaced_by_polling(server: BinanceServer, monkeypatch: pytest.MonkeyPatch) -> None:
    import ccxt.pro

    async def unsupported(*_: object) -> None:
        raise ccxt.pro.NotSupported("no such stream")

    monkeypatch.setattr(ccxt.pro.binance, "watch_ohlcv_for_symbols", unsupported)
    monkeypatch.setattr(candle_stream, "SILENCE", 0.0)

    async def main() -> None:
        async with following(server, warm=False) as followed:
            for _ in range(2):
                await followed.minute(from_socket=False)
            followed.check()
            assert followed.failure is None

    asyncio.run(main())


def test_new_bars_are_compared_with_the_delivered_ones() -> None:
    def bars(*rows: tuple[int, float]) -> Bars:
        times, closes = zip(*rows, strict=True)
        return make(BTC, Timeframe.M1, times, closes, closes, closes, closes, [1.0] * len(rows))

    recent = RecentBars()
    assert recent.changed(bars((60, 1.0), (120, 2.0)), since=120).time.tolist() == [120]
    recent.record(bars((6000, 1.0), (6060, 2.0)))
    recent.record(bars((60, 7.0)))  # too old: not kept
    assert recent.changed(bars((5940, 9.0), (6000, 1.0), (6060, 3.0), (6120, 4.0)), since=6060).time.tolist() == [
        6060,
        6120,
    ]
    assert recent.changed(bars((60, 8.0)), since=6060).time.tolist() == []
    recent.record(bars((6060, 3.0), (9000, 1.0)))
    assert len(recent.changed(bars((6060, 3.0)), since=0)) == 1, "only the latest bars are kept"


# With the collector


@asynccontextmanager
async def collected(
    folder: Path, server: BinanceServer, clock: HandClock, watched: str = "BTC/USDT\nETH/USDT\n"
) -> AsyncIterator[tuple[Collector, ParquetStore]]:
    (folder / "watchlist.txt").write_text(watched)
    feed = make_feed(server, clock, timeout=2000)
    store = ParquetStore(folder / "data")
    listed = WatchlistFile(folder / "watchlist.txt")
    collector = Collector(BarService(store, feed, clock), listed, watching_hub(listed))
    running = asyncio.create_task(collector.run())
    try:
        await until(lambda: running.done() or collector.status.detail == "collecting", "the collector")
        yield collector, store
        if running.done():
            running.result()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await feed.close()
        store.close()


def same(store: ParquetStore, server: BinanceServer, start: int, end: int) -> bool:
    return all(store.read(Series(pair), start, end).same_as(server.truth(pair, start, end)) for pair in PAIRS)


def test_the_collector_stores_the_bars_of_the_exchange(tmp_path: Path, server: BinanceServer) -> None:
    async def main() -> None:
        clock = HandClock(NOW + 10)
        async with collected(tmp_path, server, clock) as (collector, store):
            for _ in range(5):
                clock.advance(60)
                await until(lambda: collector.status.through >= int(clock.epoch() // 60 * 60))
            assert same(store, server, NOW - 3000 * 60, NOW + 300)
            assert collector.status.reconnects == 0
            assert not collector.status.refused

    asyncio.run(main())


def test_a_gap_between_two_connections_is_filled(tmp_path: Path, server: BinanceServer) -> None:
    async def main() -> None:
        clock = HandClock(NOW + 10)
        async with collected(tmp_path, server, clock) as (collector, store):
            await until(lambda: server.connections == 1)
            server.refuse = True
            server.drop()
            await until(lambda: collector.status.reconnects > 0)
            clock.advance(25 * 60)
            server.refuse = False
            await until(lambda: collector.status.through >= NOW + 1500)
            await until(lambda: same(store, server, NOW - HOUR, NOW + 1500))

    asyncio.run(main())


@pytest.mark.parametrize("seed", range(FAULT_SCHEDULES))
def test_random_faults_cause_no_missing_duplicate_or_uncorrected_bar(
    tmp_path: Path, server: BinanceServer, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    silent = {(pair, NOW + 60 * chance.randrange(120)) for pair in PAIRS for _ in range(20)}
    server.quiet = lambda pair, minute: (pair, minute) in silent
    monkeypatch.setattr(candle_stream, "SILENCE", 0.05)
    monkeypatch.setattr(candle_stream, "MIN_LIFETIME", 0.0)

    async def main() -> None:
        clock = HandClock(NOW + 10)
        async with collected(tmp_path, server, clock) as (collector, store):
            for _ in range(15):
                for switch in ("duplicate", "reorder", "mute", "garble", "refuse"):
                    setattr(server, switch, chance.random() < 0.15)
                server.page = chance.choice((3, 50, 1000))
                server.narrow = chance.random() < 0.3
                server.fail(*chance.choices(("503", "429", "half", "text", "shape", "drop", ""), k=chance.randrange(7)))
                if chance.random() < 0.3:
                    server.drop()
                clock.advance(chance.choice((1, 20, 60, 60, 61, 150)))
                if chance.random() < 0.4:
                    minute = int(clock.epoch() // 60 * 60) - 60 * chance.randrange(1, 5)
                    server.correct(chance.choice(PAIRS), minute, chance.choice((0.5, 2.0)))
                passed = int((clock.epoch() - 60) // 60 * 60)
                await until(lambda passed=passed: collector.status.through >= passed, "the collector to keep up")  # type: ignore[misc]
            server.mend()
            for _ in range(3):
                clock.advance(60)
                passed = int((clock.epoch() - 3) // 60 * 60)
                await until(lambda passed=passed: collector.status.through >= passed, "the collector to recover")  # type: ignore[misc]
            await until(lambda: same(store, server, NOW - HOUR, passed), "the store to hold what the exchange holds")

    asyncio.run(main())
