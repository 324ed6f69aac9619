"""Live quotes: prices as the feed gave them, and which tickers have none."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from openbell.desk.quotes.arche.historical import decimal_text
from openbell.market.bars import Bars, make
from openbell.market.clock import iso
from openbell.market.instruments import parse
from openbell.market.timeframes import Timeframe
from tests.desk.arche.homes import DAY, IMPORTED, MONDAY, Answer, bars_at, desk_with, historical, live
from tests.servers.desks import awaited, bench_as_found

NOW = MONDAY + 15 * 3600 + 30
MINUTES = range(MONDAY + 12 * 3600, MONDAY + 15 * 3600, 60)


def test_prices_have_the_shortest_digits_of_the_same_number_and_no_exponent() -> None:
    for text in ("0.1", "80667.96", "123456789012.345", "0.00000001", "0.000000000000001", "999999999999999.0"):
        assert decimal_text(float(text)) == text
        assert float(decimal_text(float(text))) == float(text)
    assert decimal_text(1e15) == "1000000000000000.0"
    assert decimal_text(1e18) == "1000000000000000000"
    assert decimal_text(1e22) == "10000000000000000000000"
    assert decimal_text(1.5e-9) == "0.0000000015"


@awaited
async def test_a_quote_is_the_newest_close_with_the_end_of_its_minute(tmp_path: Path) -> None:
    pair, stock, forex = (bars_at(symbol, MINUTES) for symbol in ("BTC/EUR", "AAPL", "EUR/CHF"))
    async with desk_with(tmp_path, NOW, pair, stock, forex) as desk:
        found = await live(desk, "aapl,btceur,EUR/CHF")
        assert found.status == 200
        assert "missing" not in found.body["data"]
        assert list(found.quotes) == ["AAPL", "BTC/EUR", "EUR/CHF"]
        assert found.quotes["BTC/EUR"] == {
            "ticker": "BTC/EUR",
            "price": decimal_text(float(pair.close[-1])),
            "currency": "EUR",
            "as_of": "2025-06-09T15:00:00+00:00",
            "volume": round(2.5 * len(MINUTES)),
        }
        assert found.quotes["AAPL"]["currency"] == "USD"
        assert (found.quotes["EUR/CHF"]["currency"], found.quotes["EUR/CHF"]["volume"]) == ("CHF", None)


@awaited
async def test_a_quote_has_the_price_and_the_volume_of_get_current_price(tmp_path: Path) -> None:
    async with bench_as_found(tmp_path, "2026-01-07T15:30:20Z") as bench:
        quotes = (await live(bench.desk, "AAPL,BTC/USD,SPY")).quotes
        for ticker, quote in quotes.items():
            price = await bench.ask("market-data", "get_current_price", symbol=ticker)
            assert quote["price"] == decimal_text(price["price"])
            assert quote["volume"] == round(price["volume_24h"])
            assert quote["as_of"] == price["timestamp"]


@awaited
async def test_unknown_tickers_are_left_out_with_status_206(tmp_path: Path) -> None:
    async with desk_with(tmp_path, NOW, bars_at("BTC/USD", MINUTES)) as desk:
        found = await live(desk, "NOPE,btc/usd,ZZZZZZ")
        assert (found.status, list(found.quotes)) == (206, ["BTC/USD"])
        assert sorted(found.missing) == ["NOPE", "ZZZZZZ"]
        none = await live(desk, "NOPE,ZZZZZZ")
        assert (none.status, none.error["code"]) == (404, "SYMBOL_NOT_FOUND")
        assert {each["ticker"] for each in none.error["details"]} == {"NOPE", "ZZZZZZ"}
        assert none.error["trace_id"] == "the-request"


@awaited
async def test_a_stale_price_is_no_quote(tmp_path: Path) -> None:
    fresh, stale = bars_at("BTC/USD", MINUTES), bars_at("ETH/USD", [each - 4 * 3600 for each in MINUTES])
    async with desk_with(tmp_path, NOW, fresh, stale, STALE_AFTER="3600") as desk:
        found = await live(desk, "BTC/USD,ETH/USD,NOPE")
        assert (found.status, list(found.quotes)) == (206, ["BTC/USD"])
        assert sorted(found.missing) == ["ETH/USD", "NOPE"]
        alone = await live(desk, "ETH/USD,NOPE")
        assert (alone.status, alone.error["code"]) == (503, "MARKET_DATA_UNAVAILABLE")
        assert "has been open for" in alone.error["message"]


@awaited
async def test_a_stock_that_does_not_trade_is_not_stale(tmp_path: Path) -> None:
    friday = MONDAY - 3 * DAY + 19 * 3600
    async with desk_with(tmp_path, MONDAY - 3600, bars_at("AAPL", range(friday, friday + 3600, 60))) as desk:
        assert (await live(desk, "AAPL")).quotes["AAPL"]["as_of"] == iso(friday + 3600)


@awaited
async def test_nothing_later_than_the_clock_is_quoted(tmp_path: Path) -> None:
    bars = bars_at("BTC/USD", MINUTES)
    async with desk_with(tmp_path, MONDAY + 13 * 3600 + 59, bars) as desk:
        found = (await live(desk, "BTC/USD")).quotes["BTC/USD"]
        assert found["as_of"] == iso(MONDAY + 13 * 3600)
        assert found["price"] == decimal_text(float(bars.close[59]))


@awaited
async def test_a_ticker_without_minutes_has_no_quote(tmp_path: Path) -> None:
    days = bars_at("AAPL", [MONDAY - 4 * DAY + 13 * 3600 + 1800], Timeframe.D1)
    async with desk_with(tmp_path, NOW, days) as desk:
        found = await live(desk, "AAPL")
        assert (found.status, found.error["code"]) == (503, "MARKET_DATA_UNAVAILABLE")


@awaited
async def test_the_same_content_has_the_same_tag_and_other_content_another(tmp_path: Path) -> None:
    async with desk_with(tmp_path, NOW, bars_at("BTC/USD", MINUTES), bars_at("ETH/USD", MINUTES)) as desk:

        async def tag(tickers: str) -> str:
            found = await live(desk, tickers)
            assert found.response.headers["cache-control"] == "private, max-age=5"
            return found.response.headers["etag"]

        first = await tag("BTC/USD")
        assert first.startswith('"')
        assert first == await tag("btcusd")
        assert first != await tag("ETH/USD")
        desk.store.write([bars_at("BTC/USD", [MINUTES[-1]], price=500.0)], IMPORTED)
        assert first != await tag("BTC/USD"), "a tag of the tickers alone would hide the new price"


@awaited
async def test_a_new_minute_changes_price_and_volume(tmp_path: Path) -> None:
    async with desk_with(tmp_path, NOW, bars_at("BTC/USD", MINUTES)) as desk:
        before = (await live(desk, "BTC/USD")).quotes["BTC/USD"]
        assert before["volume"] == 450
        assert (await live(desk, "BTC/USD")).quotes["BTC/USD"] == before
        desk.store.write([bars_at("BTC/USD", [MINUTES[-1]], price=7.0, volume=1002.5)], IMPORTED)
        after = (await live(desk, "BTC/USD")).quotes["BTC/USD"]
        assert (after["price"], after["volume"]) == ("7.0", 1450)


@awaited
async def test_volumes_too_large_for_a_float_are_still_numbers(tmp_path: Path) -> None:
    times = list(MINUTES)[-3:]
    huge = make(parse("BTC/USD"), Timeframe.M1, times, *np.full((4, 3), 1e15), [1e18, 1e18, 1e18])
    async with desk_with(tmp_path, NOW, huge) as desk:
        found = (await live(desk, "BTC/USD")).quotes["BTC/USD"]
        assert (found["price"], found["volume"]) == ("1000000000000000.0", 3 * 10**18)


def test_many_requests_at_once_have_the_same_answer(tmp_path: Path) -> None:
    bars: list[Bars] = [bars_at(f"A{each}/USD", MINUTES) for each in "ABCDEFGHIJ"]
    tickers = ",".join(each.instrument.symbol for each in bars)

    async def main() -> list[Answer]:
        async with desk_with(tmp_path, NOW, *bars) as desk:
            both = [(live(desk, tickers), historical(desk, tickers, "2025-06-09", "2025-06-09")) for _ in range(8)]
            return await asyncio.gather(*(each for pair in both for each in pair))

    found = asyncio.run(main())
    assert {each.status for each in found} == {200}
    assert len({each.response.headers["etag"] for each in found}) == 2


@pytest.mark.parametrize("path", ["live", "historical"])
@awaited
async def test_a_store_that_fails_is_unavailable_data(tmp_path: Path, path: str) -> None:
    settings = {"INFLUX_URL": "http://127.0.0.1:9", "POOL_INFLUX_CONNECT": "1"}
    async with desk_with(tmp_path, NOW, **settings) as desk:
        found = await (
            live(desk, "BTC/USD") if path == "live" else historical(desk, "BTC/USD", "2025-06-09", "2025-06-09")
        )
        assert (found.status, found.error["code"]) == (503, "MARKET_DATA_UNAVAILABLE")


@awaited
async def test_an_answer_that_takes_too_long_is_unavailable_data(tmp_path: Path) -> None:
    async with bench_as_found(tmp_path, "2026-01-07T15:30:20Z", TIMEOUT="0.02") as bench:
        found = await historical(bench.desk, "BTC/USD", "2025-02-01", "2026-01-05")
        assert (found.status, found.error["code"]) == (503, "MARKET_DATA_UNAVAILABLE")
        assert "takes longer than 0.018 s" in found.error["message"]


@awaited
async def test_a_timeout_inside_of_an_answer_is_not_reported_as_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with desk_with(tmp_path, NOW) as desk:

        async def times_out(*_given: Any) -> Any:
            raise TimeoutError("a socket")

        monkeypatch.setattr(desk.arche.local, "_answer", times_out)
        found = await live(desk, "BTC/USD")
        assert (found.status, found.error["code"]) == (500, "INTERNAL_ERROR")
