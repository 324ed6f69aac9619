"""Routes: one feed for each asset class."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from pathlib import Path

import pytest

from openbell.desk.bars.service import BarService
from openbell.feeds.port import Feeds
from openbell.feeds.registry import RoutedFeed, described, feed_of, parse_routes, parts_of
from openbell.market.clock import FixedClock
from openbell.market.errors import NoSuchSeries, SettingsError, UnknownSymbol
from openbell.market.instruments import AssetClass, parse
from openbell.market.provenance import Origin, Source
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.port import Span
from tests.client import run
from tests.desk.scripted import ScriptedFeed, bars

AAPL, BTC, EUR = parse("AAPL"), parse("BTC/USD"), parse("EUR/USD")
NOW = 1_758_240_000


def feeds() -> tuple[ScriptedFeed, ScriptedFeed, RoutedFeed]:
    stocks, crypto = ScriptedFeed(known=(AAPL,)), ScriptedFeed(known=(BTC,))
    stocks.source, crypto.source = Source(Origin.LIVE, "one"), Source(Origin.LIVE, "two")
    return stocks, crypto, RoutedFeed("x", Origin.LIVE, {AssetClass.STOCK: stocks, AssetClass.CRYPTO: crypto})


def test_a_text_is_parsed_into_routes() -> None:
    assert parse_routes("ccxt:kraken") is None
    assert parse_routes(" stocks=alpaca, crypto=ccxt:kraken") == {
        AssetClass.STOCK: "alpaca",
        AssetClass.CRYPTO: "ccxt:kraken",
    }
    kind = feed_of("stocks=alpaca,crypto=ccxt:kraken")
    assert kind.origin is Origin.LIVE
    assert list(parts_of("stocks=alpaca,crypto=ccxt:kraken")) == ["alpaca", "ccxt:kraken"]
    assert list(parts_of("sim")) == ["sim"]
    text = "stocks=none,crypto=ccxt:kraken"
    assert described(text, BTC) == ("ccxt:kraken", "kraken (live data)")
    assert described(text, AAPL)[0] == "none"
    assert described(text, EUR)[0] == described(text, None)[0] == text
    assert "kraken (live data)" in described(text, None)[1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bonds=alpaca", "CLASS one of stocks, crypto, forex"),
        ("stocks=", "write CLASS=FEED"),
        ("stocks=alpaca,stocks=none", "two routes for stocks"),
        ("stocks=nope", "use one of"),
        ("stocks=sim,crypto=ccxt:kraken", "sim and replay cannot be mixed"),
        ("stocks=replay,crypto=none", "sim and replay cannot be mixed"),
        ("stocks=alpaca,", "write CLASS=FEED"),
    ],
)
def test_a_route_that_cannot_be_is_refused_at_start(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        feed_of(text)
    done = run(tmp_path, "call", "chart-signals", "check_market_status", FEED=text)
    assert done.returncode == 1
    assert said in done.stderr


def test_bars_are_fetched_from_and_stored_as_those_of_the_route(tmp_path: Path) -> None:
    async def main() -> None:
        stocks, crypto, routed = feeds()
        feed: Feeds = routed
        stocks.table[AAPL] = {NOW - 120: 1.0}
        crypto.table[BTC] = {NOW - 60: 2.0}
        with closing(ParquetStore(tmp_path)) as store:
            service = BarService(store, feed, FixedClock(NOW))
            assert (await service.latest(AAPL, Timeframe.M1)).close.tolist() == [1.0]
            assert (await service.latest(BTC, Timeframe.M1)).close.tolist() == [2.0]
            span = Span(NOW - 120, NOW)
            assert [store.sources.of(each.series, span) for each in (bars(instrument=AAPL), bars())] == [
                {stocks.source},
                {crypto.source},
            ]
        assert {asked[0] for asked in stocks.asked} == {AAPL}
        assert not feed.supports(EUR)
        with pytest.raises(UnknownSymbol, match="no route for forex"):
            feed.route(EUR)
        with pytest.raises(NoSuchSeries):
            await feed.extra("funding", EUR, 0, NOW)
        await feed.close()

    asyncio.run(main())


def test_answers_name_the_feed_of_their_instrument(tmp_path: Path) -> None:
    asked = json.dumps({"symbol": "BTC/USD", "limit": 1})
    done = run(tmp_path, "call", "market-data", "get_candles", asked, "--meta", FEED="stocks=none,crypto=sim")
    assert done.returncode == 1, "the simulator is never beside another feed"
    done = run(tmp_path, "call", "market-data", "get_candles", asked, "--meta", FEED="crypto=sim")
    said = json.loads(done.stdout)
    assert said["_meta"]["openbell/truth"]["feed"] == "sim"
    assert said["_meta"]["openbell/truth"]["data"] == "simulated"
    assert said["result"]["data"]["data_source"] == "Openbell simulator (simulated data)"
    done = run(tmp_path, "call", "market-data", "get_candles", '{"symbol": "AAPL"}', FEED="crypto=sim")
    assert done.returncode == 1
    assert run(tmp_path, "doctor", FEED="crypto=sim").returncode == 0
