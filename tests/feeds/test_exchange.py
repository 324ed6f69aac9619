"""An exchange through ccxt, against a server that speaks Binance's protocol and misbehaves on request."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
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

from openbell.desk import collector as collecting_module
from openbell.desk.bars import BarService
from openbell.desk.collector import Collector
from openbell.desk.watchlist import WatchlistFile
from openbell.feeds.exchange import connection, library, live, sockets
from openbell.feeds.exchange.candles import to_bars
from openbell.feeds.exchange.feed import CcxtFeed
from openbell.feeds.exchange.recent import Recent
from openbell.feeds.port import Batch, Feed
from openbell.market.bars import Bars, empty, make, merge
from openbell.market.clock import Clock, StandingClock
from openbell.market.errors import FeedUnavailable, NoSuchSeries, OpenbellError, SettingsError, UnknownSymbol
from openbell.market.instruments import Instrument, parse
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet import ParquetStore
from tests.clocks import HandClock
from tests.desk.scripted import watching_hub
from tests.feeds.binance_server import BTC, ETH, HOUR, LTC, SOL, BinanceServer, funding
from tests.feeds.contract import NOW, FeedContract
from tests.waiting import until

pytestmark = [
    pytest.mark.skipif(find_spec("ccxt") is None, reason="pip install 'openbell[ccxt]'"),
    # ccxt asks aiohttp for what newer Pythons do by themselves.
    pytest.mark.filterwarnings("ignore:enable_cleanup_closed:DeprecationWarning"),
]
DAY = 86400
PAIRS = (BTC, ETH)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pauses of a real exchange are not what is tested."""
    monkeypatch.setattr(connection, "PAUSE", 0.01)
    monkeypatch.setattr(sockets, "TICK", 0.002)
    monkeypatch.setattr(collecting_module, "_LONGEST_PAUSE", 0.01)


@pytest.fixture
def server() -> Iterator[BinanceServer]:
    with BinanceServer(StandingClock(NOW + 30)) as running:
        yield running


def make_feed(server: BinanceServer, clock: Clock | None = None, **options: Any) -> CcxtFeed:
    server.clock = clock or server.clock
    return CcxtFeed(server.clock, "binance", options=server.options(**options))


def history(feed: CcxtFeed, instrument: Instrument, start: int, end: int) -> Bars:
    return asyncio.run(feed.history(instrument, start, end))


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


def test_names_the_exchange_and_its_source() -> None:
    feed = CcxtFeed(StandingClock(NOW), "kraken")
    assert (feed.name, str(feed.source), feed.origin) == ("ccxt:kraken", "live/ccxt-kraken/raw", "live")


def test_knows_pairs_at_once_and_exactly_the_listed_ones_once_it_has_asked(server: BinanceServer) -> None:
    feed = make_feed(server)
    assert feed.knows(parse("BTC/USD")), "it could be listed"
    assert not feed.knows(parse("AAPL"))
    assert not feed.knows(parse("EUR/USD"))
    assert server.requests == []
    history(feed, BTC, NOW - 60, NOW)
    assert [feed.knows(pair) for pair in (BTC, ETH, SOL)] == [True] * 3
    assert not feed.knows(parse("BTC/USD")), "BTC/USDT is another instrument"
    assert not feed.knows(LTC), "its trading is halted"


@pytest.mark.parametrize("pair", [parse("BTC/USD"), LTC, parse("AAPL")])
def test_what_is_not_listed_is_unknown(server: BinanceServer, pair: Instrument) -> None:
    feed = make_feed(server)

    async def stream() -> None:
        async with aclosing(feed.stream([BTC, pair], NOW)) as batches:
            await anext(batches)

    with pytest.raises(UnknownSymbol, match="binance lists no active spot market"):
        history(feed, pair, NOW - 600, NOW)
    with pytest.raises(UnknownSymbol):
        asyncio.run(stream())


def test_an_exchange_that_ccxt_does_not_know_is_refused_with_those_like_it() -> None:
    with pytest.raises(SettingsError, match="binance"):
        history(CcxtFeed(StandingClock(NOW), "binanec"), BTC, NOW - 60, NOW)
    with pytest.raises(SettingsError, match="kraken"):
        history(CcxtFeed(StandingClock(NOW), "KRAKEN"), BTC, NOW - 60, NOW)


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    library.load.cache_clear()
    monkeypatch.setitem(sys.modules, "ccxt", None)
    monkeypatch.setitem(sys.modules, "ccxt.async_support", None)
    with pytest.raises(SettingsError, match=r"pip install 'openbell\[ccxt\]'"):
        history(CcxtFeed(StandingClock(NOW), "binance"), BTC, NOW - 60, NOW)


def test_an_exchange_without_minute_candles_says_so() -> None:
    with pytest.raises(FeedUnavailable, match="bitflyer offers no 1-minute candles"):
        history(CcxtFeed(StandingClock(NOW), "bitflyer"), BTC, NOW - 60, NOW)


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


def test_no_markets_at_all_is_a_failure(server: BinanceServer) -> None:
    feed = make_feed(server)
    server.fail(*["shape"] * 4, on="v3/exchangeInfo")
    with pytest.raises(FeedUnavailable, match="no spot markets"):
        history(feed, BTC, NOW - 600, NOW)
    assert feed.knows(parse("BTC/USD")), "nothing was learnt"
    assert len(history(feed, BTC, NOW - 600, NOW)) == 10


# History


def test_history_is_what_the_exchange_holds_page_by_page(server: BinanceServer) -> None:
    feed = make_feed(server)
    start = NOW - 2500 * 60
    assert history(feed, BTC, start, NOW).same_as(server.truth(BTC, start, NOW))
    assert len(candle_requests(server)) == 3
    assert history(feed, BTC, start + 1, start + 119).same_as(server.truth(BTC, start + 60, start + 120))


def test_pages_smaller_than_asked_for_are_followed_up(server: BinanceServer) -> None:
    server.page = 7
    assert history(make_feed(server), BTC, NOW - 6000, NOW).same_as(server.truth(BTC, NOW - 6000, NOW))


@pytest.mark.parametrize("narrow", [True, False])
def test_a_quiet_span_ends_neither_the_history_nor_goes_on_for_ever(server: BinanceServer, narrow: bool) -> None:
    start = NOW - 3 * DAY
    server.narrow = narrow
    server.quiet = lambda _pair, minute: start + 3000 <= minute < start + 2 * DAY or minute >= NOW - HOUR
    found = history(make_feed(server), BTC, start, NOW)
    assert found.same_as(server.truth(BTC, start, NOW))
    assert len(found) == 50 + 1440 - 60
    assert len(candle_requests(server)) <= 8


def test_before_the_first_trade_there_is_nothing(server: BinanceServer) -> None:
    server.quiet = lambda _pair, minute: minute < NOW - HOUR
    assert len(history(make_feed(server), BTC, NOW - 2 * DAY, NOW - DAY)) == 0
    assert len(candle_requests(server)) == 1


def test_candles_that_cannot_be_true_are_dropped_and_logged(caplog: pytest.LogCaptureFixture) -> None:
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
        found = to_bars(BTC, [good[1], *bad, good[0], good[0]], NOW)
    assert found.time.tolist() == [NOW - 300, NOW - 120]
    assert all(word in caplog.text for word in ("BTC/USDT", "not finite", "high below low", "not on the minute"))
    assert "future" not in caplog.text, "a candle that is still forming is nothing to speak of"


@pytest.mark.parametrize("fault", ["503", "500", "half", "text", "shape", "drop", "slow", "429", "418"])
def test_a_failure_that_passes_costs_another_try(server: BinanceServer, fault: str) -> None:
    feed = make_feed(server, timeout=200)
    history(feed, BTC, NOW - 60, NOW)
    server.fail(fault, "", fault, fault)
    server.page = 60
    assert history(feed, BTC, NOW - 7200, NOW).same_as(server.truth(BTC, NOW - 7200, NOW))
    assert server.pending == 0


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("503", "ExchangeNotAvailable"),
        ("half", "ClientPayloadError"),
        ("text", "TypeError: the answer is no JSON"),
        ("shape", "ValueError"),
        ("drop", "ServerDisconnectedError"),
        ("slow", "RequestTimeout"),
        ("429", "429"),
    ],
)
def test_a_failure_that_stays_is_said_after_a_few_tries(server: BinanceServer, fault: str, said: str) -> None:
    feed = make_feed(server, timeout=100)
    server.fail(*[fault] * 8)
    with pytest.raises(FeedUnavailable, match=f"binance failed 4 times: .*{said}"):
        history(feed, BTC, NOW - 600, NOW)
    assert len(candle_requests(server)) >= 4


def test_a_refusal_is_not_tried_again(server: BinanceServer) -> None:
    server.fail("401")
    with pytest.raises(FeedUnavailable, match="binance refuses"):
        history(make_feed(server), BTC, NOW - 600, NOW)
    assert len(candle_requests(server)) == 1


def test_a_symbol_that_the_exchange_refuses_is_unknown(server: BinanceServer) -> None:
    server.fail("unknown")
    with pytest.raises(UnknownSymbol, match="BTC/USDT"):
        history(make_feed(server), BTC, NOW - 600, NOW)


def test_no_request_goes_out_before_the_time_that_retry_after_gives(server: BinanceServer) -> None:
    feed = make_feed(server)
    server.fail("429:1")

    async def both() -> None:
        first = asyncio.ensure_future(feed.history(BTC, NOW - 600, NOW))
        await until(lambda: server.pending == 0 and feed._connection._barred_until > 0)
        await feed.history(ETH, NOW - 600, NOW)
        await first

    asyncio.run(both())
    limited, *later = candle_requests(server)
    assert len(later) == 2
    assert 1.0 <= min(later) - limited < 3.0


def test_a_long_ban_fails_at_once_and_is_kept(server: BinanceServer) -> None:
    feed = make_feed(server)
    server.fail("418:600")
    for _ in range(2):
        began = time.monotonic()
        with pytest.raises(FeedUnavailable, match=r"no requests from here for another (600|599) s"):
            history(feed, BTC, NOW - 600, NOW)
        assert time.monotonic() - began < 5.0
    assert len(candle_requests(server)) == 1


# Series beyond candles


def test_funding_is_stated_per_eight_hours_whatever_its_step(server: BinanceServer) -> None:
    feed = make_feed(server)
    for pair, step in ((BTC, 8 * HOUR), (ETH, 4 * HOUR)):
        found = asyncio.run(feed.extra("funding", pair, NOW - 40 * DAY, NOW + DAY))
        assert set(np.diff(found.time).tolist()) == {step}
        assert found.time[0] - step < NOW - 40 * DAY <= found.time[0]
        assert np.allclose(found.value, [funding(at) for at in found.time.tolist()], rtol=0, atol=1e-12)

    (alone,) = asyncio.run(feed.extra("funding", ETH, NOW - 15 * HOUR, NOW - 13 * HOUR)).value
    assert alone == pytest.approx(funding(NOW - 15 * HOUR)), "its step shows from the value before it"


@pytest.mark.parametrize("kind", ["open_interest", "long_short"])
def test_statistics_are_paged_as_far_back_as_exchanges_keep_them(server: BinanceServer, kind: str) -> None:
    found = asyncio.run(make_feed(server).extra(kind, BTC, NOW - 90 * DAY, NOW))
    assert found.time[-1] == NOW - HOUR
    assert found.time[0] == NOW - 29 * DAY + HOUR
    assert set(np.diff(found.time).tolist()) == {HOUR}


def test_a_series_that_there_is_not_is_said(server: BinanceServer) -> None:
    feed = make_feed(server)
    for kind, pair, said in (
        ("funding", SOL, "no perpetual swap"),
        ("delta", BTC, "exchanges have funding"),
        ("fear_greed", BTC, "exchanges have funding"),
    ):
        with pytest.raises(NoSuchSeries, match=said):
            asyncio.run(feed.extra(kind, pair, NOW - DAY, NOW))
    without = make_feed(server, has={"fetchFundingRateHistory": False})
    with pytest.raises(NoSuchSeries, match="does not publish it"):
        asyncio.run(without.extra("funding", BTC, NOW - DAY, NOW))


# The stream


class Followed:
    """A stream that is read as it comes."""

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

    def heard(self) -> dict[str, int]:
        """What the socket has told so far: the newest candle of each pair."""
        (client,) = SOCKETS[-1:]
        return {
            pair.symbol: max((row[0] for row in client.candles(pair.symbol)), default=0) // 1000 for pair in self.pairs
        }

    async def minute(self, *, told: bool = True) -> None:
        """Let the minute end, the socket tell so, and the settle time pass; wait until the stream has it."""
        forming = int(self.clock.epoch() // 60 * 60) + 60
        self.clock.advance(forming + 1 - self.clock.epoch())
        if told:  # a real minute is far longer than a message takes
            await until(lambda: all(at >= forming for at in self.heard().values()), "the socket to tell of it")
        self.clock.advance(2)
        await until(lambda: self.done >= forming or bool(self.failure), "the minute")

    def check(self) -> None:
        """Everything that was delivered is what the exchange holds, and only what it had closed."""
        marks = [batch.complete_until for batch in self.batches]
        assert marks == sorted(set(marks))
        for pair in self.pairs:
            assert self.bars(pair).same_as(self.server.truth(pair, self.since, self.done)), pair


SOCKETS: list[sockets.CandleSocket] = []


@pytest.fixture(autouse=True)
def noticed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep hold of the sockets that streams open."""
    opened = sockets.CandleSocket.__init__

    def init(self: sockets.CandleSocket, *arguments: Any) -> None:
        opened(self, *arguments)
        SOCKETS.append(self)

    monkeypatch.setattr(sockets.CandleSocket, "__init__", init)
    yield
    SOCKETS.clear()


@asynccontextmanager
async def following(
    server: BinanceServer, *pairs: Instrument, warm: bool = True, **options: Any
) -> AsyncIterator[Followed]:
    """A stream that has delivered what came before, and whose socket has told of the minute that forms."""
    clock = HandClock(NOW + 10)
    followed = Followed(make_feed(server, clock, **options), server, clock, pairs or PAIRS)
    reading = asyncio.create_task(followed.read())
    try:
        await until(lambda: followed.done >= NOW or reading.done(), "the past")
        if warm:
            await until(lambda: min(followed.heard().values()) > 0, "the first word")
        yield followed
        if reading.done():
            reading.result()
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await followed.feed.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert not others, "a stream leaves nothing behind"


def test_minutes_come_from_the_socket_as_they_close(server: BinanceServer) -> None:
    async def main() -> None:
        async with following(server) as followed:
            asked = len(candle_requests(server))
            await followed.minute()
            assert len(candle_requests(server)) == asked + 2, "the first one may have been heard of in part only"
            asked = len(candle_requests(server))
            for _ in range(5):
                await followed.minute()
            assert len(candle_requests(server)) == asked
            assert server.connections == 1
            followed.check()
            assert followed.done == NOW + 360

    asyncio.run(main())


def test_a_minute_is_not_taken_before_it_has_settled(server: BinanceServer) -> None:
    async def main() -> None:
        async with following(server) as followed:
            await followed.minute()
            followed.clock.advance(NOW + 122.5 - followed.clock.epoch())
            await until(lambda: min(followed.heard().values()) == NOW + 120)
            before = len(followed.batches)
            followed.clock.advance(0.25)
            assert followed.done == NOW + 60
            assert len(followed.batches) == before
            followed.clock.advance(0.25)
            await until(lambda: followed.done == NOW + 120)
            followed.check()

    asyncio.run(main())


def test_the_past_comes_at_most_a_day_at_once_and_ends_with_the_last_settled_minute(server: BinanceServer) -> None:
    async def main() -> None:
        feed = make_feed(server, HandClock(NOW + 2))
        async with aclosing(feed.stream(PAIRS, NOW - DAY - 630)) as stream:
            batches = [await anext(stream), await anext(stream)]
        assert [batch.complete_until for batch in batches] == [NOW - 600, NOW - 60]
        assert [[len(bars) for bars in batch.bars] for batch in batches] == [[1440, 1440], [9, 9]]
        await feed.close()

    asyncio.run(main())


def test_a_feed_that_is_dropped_without_being_closed_closes_with_its_loop(server: BinanceServer) -> None:
    async def main() -> None:
        await make_feed(server).history(BTC, NOW - 600, NOW)
        gc.collect()
        assert len(asyncio.all_tasks()) == 2

    asyncio.run(main())
    gc.collect()  # what was left open would complain here
    assert not connection._KEEPERS


def test_the_watermark_follows_a_running_stream(server: BinanceServer) -> None:
    async def main() -> None:
        async with following(server) as followed:
            feed = followed.feed
            assert feed.watermark(NOW + 10) == NOW
            assert feed.watermark(NOW + 200) == NOW + 140, "a stream that lags is worth no less than none"
            await followed.minute()
            assert feed.watermark(NOW + 64) == NOW + 60
            assert feed.watermark(NOW + 50) == NOW + 50, "never ahead of the clock"
        assert feed.watermark(NOW + 64) == NOW + 4

    asyncio.run(main())


def test_the_mark_moves_on_without_trades(server: BinanceServer) -> None:
    server.quiet = lambda pair, minute: pair == ETH and minute >= NOW - 300

    async def main() -> None:
        async with following(server, warm=False) as followed:
            for _ in range(3):
                await followed.minute(told=False)
            followed.check()
            assert len(followed.bars(ETH)) == 5
            assert len(followed.bars(BTC)) == 13

    asyncio.run(main())


@pytest.mark.parametrize("switch", ["duplicate", "reorder"])
def test_messages_that_come_twice_or_in_another_order_change_nothing(server: BinanceServer, switch: str) -> None:
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


def test_a_correction_while_nobody_listened_comes_with_the_next_stream(server: BinanceServer) -> None:
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
        assert eth.time.tolist() == [NOW + 60], "what has not changed is not said again"
        await feed.close()

    asyncio.run(main())


@pytest.mark.parametrize("tick", [0.0, 60.0])
def test_a_broken_connection_ends_the_stream_with_what_happened(
    server: BinanceServer, monkeypatch: pytest.MonkeyPatch, tick: float
) -> None:
    monkeypatch.setattr(sockets, "TICK", tick)  # with the longer one nobody waits for a message when it breaks

    async def main() -> None:
        async with following(server) as followed:
            await followed.minute()
            server.drop()
            await until(lambda: followed.failure is not None)
            assert isinstance(followed.failure, FeedUnavailable)
            assert "connection to binance broke" in followed.failure.message
            assert followed.feed.watermark(NOW + 200) == NOW + 140, "it no longer counts"

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


def test_a_stream_can_be_closed_while_its_socket_is_not_answered(server: BinanceServer) -> None:
    server.hang = True

    async def main() -> None:
        async with following(server, warm=False) as followed:
            await followed.minute(told=False)
            followed.check()
            began = time.monotonic()
        assert time.monotonic() - began < 2.0
        server.hang = False

    asyncio.run(main())
    gc.collect()


def test_sockets_that_keep_breaking_give_way_to_asking(server: BinanceServer) -> None:
    server.refuse = True

    async def main() -> None:
        feed = make_feed(server, HandClock(NOW + 10))
        failures = 0
        while failures <= sockets.CHANCES:
            try:
                async with aclosing(feed.stream(PAIRS, NOW - 600)) as stream:
                    await anext(stream)
                    await until(SOCKETS[-1].failed.done, "the refusal")
                    if len(SOCKETS) == failures:
                        break
                    await anext(stream)
            except FeedUnavailable:
                failures += 1
        assert failures == len(SOCKETS) == sockets.CHANCES
        await feed.close()

    asyncio.run(main())


def test_no_socket_is_opened_while_the_exchange_takes_no_requests(server: BinanceServer) -> None:
    async def main() -> None:
        feed = make_feed(server, HandClock(NOW + 10))
        server.fail("418:600")
        with pytest.raises(FeedUnavailable):
            await feed.history(BTC, NOW - 600, NOW)
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
            await followed.minute(told=False)
            assert NOW not in followed.bars(BTC).time
            server.quiet = lambda _pair, _minute: False
            await followed.minute(told=False)
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
            await followed.minute(told=False)
            followed.check()
            assert followed.failure is None, "a minute is asked for when it is not told"
            monkeypatch.setattr(live, "SILENCE", 0.0)
            await followed.minute(told=False)
            assert "its socket is silent" in str(followed.failure)
            followed.check()

    asyncio.run(main())


def test_a_silent_socket_of_a_pair_that_nobody_trades_is_no_failure(
    server: BinanceServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.quiet = lambda _pair, minute: minute >= NOW

    async def main() -> None:
        async with following(server, warm=False) as followed:
            monkeypatch.setattr(live, "SILENCE", 0.0)
            for _ in range(3):
                await followed.minute(told=False)
            assert followed.failure is None
            followed.check()

    asyncio.run(main())


@pytest.mark.parametrize("fault", ["503", "half", "drop", "429"])
def test_a_request_of_the_stream_that_fails_for_good_ends_it(server: BinanceServer, fault: str) -> None:
    async def main() -> None:
        async with following(server, BTC) as followed:
            server.fail(*[fault] * 8)
            await followed.minute()
            assert isinstance(followed.failure, FeedUnavailable)

    asyncio.run(main())


def test_an_exchange_without_sockets_is_asked_every_minute(server: BinanceServer) -> None:
    absent = {"watchOHLCV": False, "watchOHLCVForSymbols": False}

    async def main() -> None:
        async with following(server, warm=False, has=absent) as followed:
            for _ in range(4):
                asked = len(candle_requests(server))
                await followed.minute(told=False)
                assert len(candle_requests(server)) == asked + 2
            server.correct(BTC, NOW + 60, 3.0)
            await followed.minute(told=False)
            followed.check()
        assert server.connections == 0

    asyncio.run(main())


def test_pairs_are_listened_to_one_by_one_where_that_is_all_there_is(server: BinanceServer) -> None:
    async def main() -> None:
        async with following(server, has={"watchOHLCVForSymbols": False}) as followed:
            for _ in range(3):
                await followed.minute()
            followed.check()

    asyncio.run(main())


def test_a_socket_that_turns_out_not_to_be_supported_gives_way_to_asking(
    server: BinanceServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ccxt.pro

    async def unsupported(*_: object) -> None:
        raise ccxt.pro.NotSupported("no such stream")

    monkeypatch.setattr(ccxt.pro.binance, "watch_ohlcv_for_symbols", unsupported)
    monkeypatch.setattr(live, "SILENCE", 0.0)

    async def main() -> None:
        async with following(server, warm=False) as followed:
            for _ in range(2):
                await followed.minute(told=False)
            followed.check()
            assert followed.failure is None

    asyncio.run(main())


def test_what_was_told_is_compared_with_what_is_told_now() -> None:
    def bars(*rows: tuple[int, float]) -> Bars:
        times, closes = zip(*rows, strict=True)
        return make(BTC, Timeframe.M1, times, closes, closes, closes, closes, [1.0] * len(rows))

    recent = Recent()
    assert recent.news(bars((60, 1.0), (120, 2.0)), since=120).time.tolist() == [120]
    recent.note(bars((6000, 1.0), (6060, 2.0)))
    recent.note(bars((60, 7.0)))  # long ago: not kept
    assert recent.news(bars((5940, 9.0), (6000, 1.0), (6060, 3.0), (6120, 4.0)), since=6060).time.tolist() == [
        6060,
        6120,
    ]
    assert recent.news(bars((60, 8.0)), since=6060).time.tolist() == []
    recent.note(bars((6060, 3.0), (9000, 1.0)))
    assert len(recent.news(bars((6060, 3.0)), since=0)) == 1, "only the newest are kept"


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
        await until(lambda: running.done() or collector.status.state == "collecting", "the collector")
        yield collector, store
        if running.done():
            running.result()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await feed.close()
        store.close()


def same(store: ParquetStore, server: BinanceServer, start: int, end: int) -> bool:
    return all(store.read(pair, start, end).same_as(server.truth(pair, start, end)) for pair in PAIRS)


def test_the_store_holds_what_the_exchange_holds(tmp_path: Path, server: BinanceServer) -> None:
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


@pytest.mark.parametrize("seed", range(60 if os.environ.get("OPENBELL_SOAK") else 3))
def test_no_order_of_faults_loses_doubles_or_leaves_a_bar_uncorrected(
    tmp_path: Path, server: BinanceServer, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    silent = {(pair, NOW + 60 * chance.randrange(120)) for pair in PAIRS for _ in range(20)}
    server.quiet = lambda pair, minute: (pair, minute) in silent
    monkeypatch.setattr(live, "SILENCE", 0.05)
    monkeypatch.setattr(sockets, "SHORT", 0.0)

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
