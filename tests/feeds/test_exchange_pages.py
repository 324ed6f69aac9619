"""Pages of candles that are requested concurrently, within the rate of the exchange."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from openbell.feeds.ccxt_exchange import connection
from openbell.feeds.ccxt_exchange.feed import CcxtFeed
from openbell.market.bars import Bars
from openbell.market.clock import FixedClock
from openbell.market.errors import FeedUnavailable
from openbell.market.instruments import Instrument
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.net.rates import Bucket, Rate
from tests.feeds.binance_server import BTC, BinanceServer
from tests.feeds.contract import NOW
from tests.feeds.dialects import Coinbase, Kraken
from tests.feeds.exchange_server import ExchangeServer
from tests.feeds.prices import prices

pytestmark = [
    pytest.mark.skipif(find_spec("ccxt") is None, reason="pip install 'openbell[ccxt]'"),
    pytest.mark.filterwarnings("ignore:enable_cleanup_closed:DeprecationWarning"),
]
MINUTE, HOUR = 60, 3600
SOON = 20.0
"""Seconds; far less than the pauses of these tests, and far more than the work."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PAUSE", 0.01)


@pytest.fixture
def binance() -> Iterator[BinanceServer]:
    with BinanceServer(FixedClock(NOW + 30)) as running:
        yield running


def history(server: BinanceServer, start: int) -> Bars:
    feed = CcxtFeed(server.clock, "binance", options=server.options())
    return asyncio.run(feed.history(Series(BTC), start, NOW))


def starts(server: BinanceServer) -> list[int]:
    return [int(query["startTime"]) // 1000 for path, query, _ in server.requests if path.endswith("klines")]


def make_feed(server: ExchangeServer, **options: object) -> CcxtFeed:
    return CcxtFeed(server.clock, server.exchange, options=server.options() | options, proxy=server.proxy)


# The rate


def test_requests_are_separated_by_the_pause_that_the_one_before_costs() -> None:
    bucket = Bucket(Rate(120, 1))
    assert [bucket.reserve(100.0, cost=cost) for cost in (1.0, 3.0, 0.0, 1.0, 1.0)] == [0.0, 0.5, 2.0, 2.0, 2.5]


def test_the_pause_begins_when_a_request_is_sent() -> None:
    bucket = Bucket(Rate(120, 1))
    assert [bucket.reserve(now) for now in (100.0, 100.4, 101.5, 101.75)] == [0.0, pytest.approx(0.1), 0.0, 0.25]


def test_concurrent_pages_stay_within_the_rate_of_the_exchange() -> None:
    with Coinbase(FixedClock(NOW + 30)) as server:
        pause = {"rateLimit": 34}  # of ccxt for Coinbase; a request costs three of them
        feed, pair = make_feed(server, **pause), next(iter(server.pairs.values()))
        start = NOW // HOUR * HOUR - 4200 * HOUR

        async def main() -> Bars:
            found = await feed.history(Series(pair, Timeframe.H1), start, NOW)
            await feed.close()
            return found

        assert asyncio.run(main()).same_as(prices(Series(pair, Timeframe.H1), start, NOW // HOUR * HOUR))
        assert server.refused == 0
        assert server.counts == {"markets": 1, "candles": 14}


def test_pages_wait_for_their_responses_at_the_same_time() -> None:
    with Coinbase(FixedClock(NOW + 30), latency=0.2) as server:
        feed, pair = make_feed(server), next(iter(server.pairs.values()))

        async def main() -> None:
            await feed.history(Series(pair, Timeframe.H1), NOW - 900 * HOUR, NOW)
            await feed.close()

        asyncio.run(main())
        assert server.most_at_once == 2, "the first page, then two"


def test_a_listing_of_kraken_does_not_delay_its_candles() -> None:
    with Kraken(FixedClock(NOW + 30), latency=0.0) as server:
        feed, pair = make_feed(server, rateLimit=60_000), next(iter(server.pairs.values()))

        async def main() -> int:
            async with asyncio.timeout(SOON):
                found = await feed.history(Series(pair, Timeframe.H1), NOW - 100 * HOUR, NOW)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await feed.history(Series(pair, Timeframe.H4), NOW - 100 * HOUR, NOW)
            await feed.close()
            return len(found)

        assert asyncio.run(main()) == 100
        assert server.counts == {"markets": 1, "candles": 1}, "two requests for candles are separated"


def test_the_futures_of_coinbase_take_neither_a_request_nor_a_pause() -> None:
    with Coinbase(FixedClock(NOW + 30), latency=0.0) as server:
        feed, pair = make_feed(server, rateLimit=60_000), next(iter(server.pairs.values()))

        async def main() -> None:
            async with asyncio.timeout(SOON):
                await feed.natives(pair)
            await feed.close()

        asyncio.run(main())
        assert server.counts == {"markets": 1}


# The pages


def test_complete_pages_are_requested_twice_as_many_each_time(binance: BinanceServer) -> None:
    start = NOW - 9_500 * MINUTE
    assert history(binance, start).same_as(binance.truth(BTC, start, NOW))
    assert sorted(starts(binance)) == [start + page * 1000 * MINUTE for page in range(10)]


def test_a_page_that_fails_ends_the_pages_beside_it_and_is_raised(binance: BinanceServer) -> None:
    binance.fail("", "", "401")
    with pytest.raises(FeedUnavailable, match="binance refuses"):
        history(binance, NOW - 9_500 * MINUTE)
    assert len(starts(binance)) <= 3


@pytest.mark.parametrize("fault", ["503", "drop", "text", "429"])
def test_a_page_that_fails_once_is_requested_again(binance: BinanceServer, fault: str) -> None:
    binance.fail("", fault, "", fault)
    start = NOW - 5_000 * MINUTE
    assert history(binance, start).same_as(binance.truth(BTC, start, NOW))
    assert len(starts(binance)) == 5 + 2


@pytest.mark.parametrize("narrow", [True, False])
@pytest.mark.parametrize("quiet", [0.0005, 0.02, 0.5, 0.97])
def test_no_candle_is_missing_where_others_are(binance: BinanceServer, quiet: float, narrow: bool) -> None:
    chance = random.Random(f"{quiet}")
    silent = {at for at in range(NOW - 6_000 * MINUTE, NOW, MINUTE) if chance.random() < quiet}

    def is_quiet(_pair: Instrument, minute: int) -> bool:
        return minute in silent

    binance.narrow, binance.quiet = narrow, is_quiet
    start = NOW - 6_000 * MINUTE
    assert history(binance, start).same_as(binance.truth(BTC, start, NOW))


@pytest.mark.parametrize("page", [7, 300, 999])
def test_smaller_pages_than_requested_are_continued_one_by_one(binance: BinanceServer, page: int) -> None:
    binance.page = page
    start = NOW - 2_000 * MINUTE
    assert history(binance, start).same_as(binance.truth(BTC, start, NOW))
    assert len(starts(binance)) == -(-2_000 // page)


def test_a_pair_that_trades_seldom_takes_no_more_requests_than_it_has_pages(binance: BinanceServer) -> None:
    binance.quiet = lambda _pair, minute: minute % 240 != 0
    start = NOW - 12_000 * MINUTE
    assert len(history(binance, start)) == 3_000
    assert len(starts(binance)) <= 4
