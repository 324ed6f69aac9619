"""Six exchanges as ccxt speaks to them: every native timeframe of each, and what a first question costs in requests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import pytest

from openbell.feeds.ccxt_exchange import connection
from openbell.feeds.ccxt_exchange.feed import CcxtFeed
from openbell.feeds.port import Feed
from openbell.market.clock import Clock, FixedClock
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from tests.feeds.contract import NOW, FeedContract
from tests.feeds.dialects import ALL, Binance, Bitstamp, Bybit, Coinbase, Kraken, Okx
from tests.feeds.exchange_server import ExchangeServer, Rate
from tests.feeds.prices import prices

pytestmark = [
    pytest.mark.skipif(find_spec("ccxt") is None, reason="pip install 'openbell[ccxt]'"),
    pytest.mark.filterwarnings("ignore:enable_cleanup_closed:DeprecationWarning"),
]
UNLIMITED = Rate(1e9, 1, {})
DAY = 86400


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PAUSE", 0.01)


def make_feed(server: ExchangeServer) -> CcxtFeed:
    return CcxtFeed(server.clock, server.exchange, options=server.options(), proxy=server.proxy)


class ExchangeContract(FeedContract):
    server_type: type[ExchangeServer]

    @pytest.fixture(autouse=True)
    def _servers(self) -> Iterator[None]:
        self.known = tuple(self.server_type.pairs.values())[:2]
        with ExitStack() as self.stack:
            yield

    def make(self, clock: Clock, folder: Path) -> Feed:
        server = self.stack.enter_context(self.server_type(clock, latency=0.0))
        server.rate = UNLIMITED
        return make_feed(server)


class TestBinance(ExchangeContract):
    server_type = Binance


class TestCoinbase(ExchangeContract):
    server_type = Coinbase


class TestKraken(ExchangeContract):
    server_type = Kraken


class TestOkx(ExchangeContract):
    server_type = Okx


class TestBitstamp(ExchangeContract):
    server_type = Bitstamp


class TestBybit(ExchangeContract):
    server_type = Bybit


del FeedContract, ExchangeContract  # pytest would collect them


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.exchange)
def test_history_is_what_the_exchange_has_in_as_few_pages_as_it_allows(kind: type[ExchangeServer]) -> None:
    with kind(FixedClock(NOW + 30), latency=0.0) as server:
        server.rate = UNLIMITED
        feed, pair = make_feed(server), next(iter(server.pairs.values()))

        async def main() -> None:
            for timeframe in await feed.natives(pair):
                count, series = min(700, server.page - 20) if kind is Kraken else 1000, Series(pair, timeframe)
                end = NOW // timeframe.seconds * timeframe.seconds
                start = end - count * timeframe.seconds
                server.counts.clear()
                found = await feed.history(series, start, NOW)
                assert found.same_as(prices(series, start, end))
                assert len(found) == count
                assert server.counts == {"candles": -(-count // server.page)}
            await feed.close()

        asyncio.run(main())


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.exchange)
def test_the_markets_take_one_request(kind: type[ExchangeServer]) -> None:
    with kind(FixedClock(NOW + 30), latency=0.0) as server:
        feed, pair = make_feed(server), next(iter(server.pairs.values()))

        async def main() -> None:
            together = [feed.history(Series(pair, each), NOW - DAY, NOW) for each in (Timeframe.M1, Timeframe.H1)]
            await asyncio.gather(*together, feed.natives(pair))
            await feed.close()

        asyncio.run(main())
        assert server.counts["markets"] == 1
        assert set(server.counts) == {"markets", "candles"}
