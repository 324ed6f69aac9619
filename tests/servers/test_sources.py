"""What results say about the sources of their bars: the stored ones decide, not the feed that is set."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from openbell.feeds.ccxt_exchange import connection
from openbell.market.clock import iso
from openbell.market.instruments import parse
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.series_plan import buckets
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.port import Span
from tests.servers.desks import Bench, awaited, bench
from tests.stores.samples import at, bars

IMPORT, KRAKEN = Source(Origin.IMPORTED, "import"), Source(Origin.LIVE, "ccxt-kraken")
START, MIDDLE, NOW = at("2025-01-06"), at("2025-05-05"), at("2025-06-12")
QUESTIONS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("market-data", "get_candles", {"timeframe": "1d", "limit": 30}),
    ("market-data", "get_volatility", {"timeframe": "1d"}),
    ("chartgen", "get_indicators", {"interval": "1d", "indicators": ["rsi"]}),
    ("chartgen", "generate_chart", {"timeframe": "1d", "bars": 30, "format": "summary"}),
)


def stored(home: Path, symbol: str, source: Source, since: int, until: int) -> None:
    """Store the days of a span."""
    series = Series(parse(symbol), Timeframe.D1)
    with closing(ParquetStore(home / "data")) as store:
        store.write(
            [bars(series, buckets(series.instrument, Timeframe.D1, since, until)[0])], source, covers=Span(since, until)
        )


async def told(desk: Bench, symbol: str, **more: Any) -> set[tuple[str, str]]:
    """The data and data_source of every answer about a symbol."""
    found = set()
    for server, tool, given in QUESTIONS:
        reply = await desk.reply(server, tool, {"symbol": symbol, **given, **more})
        assert not reply.is_error, reply.payload
        payload = reply.payload.get("data", reply.payload)
        found.add((reply.truth["data"], payload["data_source"]))
    return found


def nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exchange cannot be reached, and is not tried again and again."""
    monkeypatch.setenv("CCXT_PROXY_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(connection, "TRIES", 1)


@pytest.mark.parametrize("feed", ["none", "ccxt:kraken", "ccxt:binance"])
@awaited
async def test_the_sources_of_the_bars_are_named_whatever_the_feed_is(
    tmp_path: Path, feed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody_answers(monkeypatch)
    stored(tmp_path, "BTC/USD", IMPORT, START, NOW)
    stored(tmp_path, "ETH/USD", KRAKEN, START, NOW)
    stored(tmp_path, "SOL/USD", IMPORT, START, MIDDLE)
    stored(tmp_path, "SOL/USD", KRAKEN, MIDDLE, NOW)
    live = "kraken (live data)"
    async with bench(tmp_path, iso(NOW), FEED=feed) as desk:
        assert await told(desk, "BTC/USD") == {("imported", "Imported bars")}
        assert await told(desk, "ETH/USD") == {("live", live)}
        candles = await desk.reply("market-data", "get_candles", {"symbol": "SOL/USD", "timeframe": "1d", "limit": 30})
        assert (candles.truth["data"], candles.payload["data"]["data_source"]) == ("live", live)
        candles = await desk.reply("market-data", "get_candles", {"symbol": "SOL/USD", "timeframe": "1d", "limit": 60})
        both = ("imported+live", f"{live} and imported bars")
        assert (candles.truth["data"], candles.payload["data"]["data_source"]) == both


@awaited
async def test_a_feed_that_fails_is_named_beside_the_stored_bars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody_answers(monkeypatch)
    stored(tmp_path, "BTC/USD", IMPORT, START, MIDDLE)
    async with bench(tmp_path, iso(NOW), FEED="ccxt:kraken") as desk:
        for server, tool, given in QUESTIONS:
            reply = await desk.reply(server, tool, {"symbol": "BTC/USD", **given})
            assert not reply.is_error, reply.payload
            assert reply.truth["note"].startswith("kraken"), tool
            assert reply.truth["note"].endswith("; the bars are those that were stored")
