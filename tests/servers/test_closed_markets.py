"""Results while the stock market is closed: what a change is compared with, and that the payload says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from openbell import __version__
from openbell.cli.commands import app
from tests.servers.desks import Bench, awaited, bench

SUNDAY = "2026-01-11T18:00:00Z"


async def price(desk: Bench, symbol: str) -> Any:
    return await desk.ask("market-data", "get_current_price", symbol=symbol)


async def close_at(desk: Bench, moment: str) -> float:
    """The close of the minute before a moment."""
    found = (await desk.ask("market-data", "get_candles", symbol="AAPL", timeframe="1m", limit=1000))["items"]
    found += (await desk.ask("market-data", "get_candles", symbol="AAPL", timeframe="1m", limit=1000, offset=1000))[
        "items"
    ]
    last = max((each for each in found if each["timestamp"] < moment), key=lambda each: str(each["timestamp"]))
    return float(last["close"])


@pytest.mark.parametrize(
    ("clock", "session", "since"),
    [
        ("2026-01-09T18:00:00Z", "regular", "2026-01-08T18:00:00+00:00"),  # Friday
        ("2026-01-10T00:30:00Z", "afterhours", "2026-01-09T00:30:00+00:00"),  # Friday evening in New York
        ("2026-01-10T18:00:00Z", "closed", "2026-01-08T21:00:00+00:00"),  # Saturday: Friday against Thursday's close
        (SUNDAY, "closed", "2026-01-08T21:00:00+00:00"),
        ("2026-01-12T08:00:00Z", "closed", "2026-01-08T21:00:00+00:00"),  # Monday before the premarket
        (
            "2026-01-12T13:00:00Z",
            "premarket",
            "2026-01-09T21:00:00+00:00",
        ),  # Monday: 24 hours ago the market was closed
        ("2026-01-12T18:00:00Z", "regular", "2026-01-09T21:00:00+00:00"),
        (
            "2026-01-14T03:00:00Z",
            "closed",
            "2026-01-12T21:00:00+00:00",
        ),  # Tuesday night: Tuesday against Monday's close
        ("2026-01-19T18:00:00Z", "closed", "2026-01-15T21:00:00+00:00"),  # a Monday that is a holiday
    ],
)
@awaited
async def test_the_change_of_a_stock_on_a_day_without_trades(
    tmp_path: Path, clock: str, session: str, since: str
) -> None:
    async with bench(tmp_path, clock) as desk:
        found = await price(desk, "AAPL")
        assert (found["session"], found["change_24h_since"]) == (session, since)
        assert found["as_of"] == clock.replace("Z", "+00:00")
        assert found["timestamp"] <= found["as_of"]
        before = await close_at(desk, since)
        assert found["change_24h"] == pytest.approx((found["price"] / before - 1) * 100, rel=1e-9)
        crypto = await price(desk, "BTC/USD")
        assert (crypto["session"], crypto["timestamp"]) == ("regular", crypto["as_of"])


@pytest.mark.parametrize(
    ("clock", "closed", "before", "newest"),
    [
        (SUNDAY, "2026-01-09T21:00:00+00:00", "2026-01-08T21:00:00+00:00", "2026-01-10T01:00:00+00:00"),
        ("2026-01-09T23:00:00Z", "2026-01-09T21:00:00+00:00", "2026-01-08T21:00:00+00:00", "2026-01-09T23:00:00+00:00"),
        ("2026-01-12T13:00:00Z", "2026-01-09T21:00:00+00:00", "2026-01-08T21:00:00+00:00", "2026-01-12T13:00:00+00:00"),
    ],
)
@awaited
async def test_outside_of_regular_hours_the_close_and_the_newest_price_are_apart(
    tmp_path: Path, clock: str, closed: str, before: str, newest: str
) -> None:
    async with bench(tmp_path, clock) as desk:
        found = await price(desk, "AAPL")
        close, previous, last = [await close_at(desk, each) for each in (closed, before, newest)]
        regular, extended = found["regular_close"], found["extended_hours"]
        assert (regular["price"], regular["time"]) == (close, closed)
        assert regular["change"] == pytest.approx(close - previous, abs=1e-9)
        assert regular["change_pct"] == pytest.approx((close / previous - 1) * 100, rel=1e-9)
        assert (extended["price"], extended["time"]) == (last, newest)
        assert extended["change_pct"] == pytest.approx((last / close - 1) * 100, rel=1e-9)
        assert len({close, previous, last}) == 3, "otherwise this shows nothing"
        assert (found["price"], found["timestamp"]) == ((close, closed) if clock == SUNDAY else (last, newest))


@awaited
async def test_a_closed_market_has_the_change_since_the_previous_close(tmp_path: Path) -> None:
    async with bench(tmp_path, SUNDAY) as desk:
        found = await price(desk, "AAPL")
        assert found["change_24h"] == found["change_day_pct"] == found["regular_close"]["change_pct"]
        assert (found["change_24h_since"], found["change_1h"]) == (found["previous_close_time"], 0)
        around_the_clock = await price(desk, "BTC/USD")
        assert (around_the_clock["regular_close"], around_the_clock["extended_hours"]) == (None, None)
    async with bench(tmp_path, "2026-01-09T18:00:00Z") as desk:
        trading = await price(desk, "AAPL")
        assert (trading["regular_close"], trading["extended_hours"]) == (None, None)


CLOSED: list[tuple[str, str, dict[str, Any]]] = [
    ("market-data", "get_candles", {"symbol": "AAPL"}),
    ("market-data", "get_volatility", {"symbol": "AAPL"}),
    ("chart-signals", "get_signals", {"symbol": "AAPL", "timeframe": "1min"}),
    ("chart-signals", "get_watchlist", {}),
    ("chartgen", "get_indicators", {"symbol": "AAPL", "indicators": ["rsi"]}),
    ("chartgen", "generate_chart", {"symbol": "AAPL", "format": "summary"}),
    ("chartgen", "generate_chart", {"symbol": "AAPL", "format": "series"}),
    ("portfolio", "validate_trade", {"symbol": "AAPL", "side": "BUY", "size": 1}),
]
OF_ACCOUNT = [
    ("chartgen", "get_positions"),
    ("chartgen", "get_balance"),
    ("chartgen", "get_orders"),
    ("portfolio", "get_positions"),
    ("portfolio", "get_balance"),
]


@awaited
async def test_payloads_say_that_the_market_is_closed(tmp_path: Path) -> None:
    async with bench(tmp_path, SUNDAY) as desk:
        for server, tool, arguments in CLOSED:
            found = await desk.ask(server, tool, **arguments)
            assert (found["session"], found["as_of"]) == ("closed", "2026-01-11T18:00:00+00:00"), tool
            assert "simulated" in found["data_source"], tool


@awaited
async def test_an_account_of_coins_is_not_said_to_be_closed(tmp_path: Path) -> None:
    """Only a position is in a market: the account is not, and the session of stocks says nothing about coins."""
    async with bench(tmp_path, "2026-01-11T17:00:00Z") as desk:
        await desk.chartgen("place_order", symbol="BTC/USD", side="buy", type="market", quantity="0.01")
    async with bench(tmp_path, SUNDAY) as desk:
        for server, tool in OF_ACCOUNT:
            found = await desk.ask(server, tool)
            assert "session" not in found, tool
            assert found["as_of"] == "2026-01-11T18:00:00+00:00", tool
            assert "simulated" in found["data_source"], tool
        (item,) = (await desk.ask("portfolio", "get_positions"))["items"]
        (position,) = (await desk.chartgen("get_positions"))["positions"]
        assert (item["session"], position["session"]) == ("regular", "regular")


@awaited
async def test_positions_and_watched_symbols_have_the_time_of_their_price(tmp_path: Path) -> None:
    async with bench(tmp_path, "2026-01-09T18:00:00Z") as desk:
        for symbol, quantity in (("AAPL", "5"), ("BTC/USD", "0.01")):
            await desk.chartgen("place_order", symbol=symbol, side="buy", type="market", quantity=quantity)
    async with bench(tmp_path, SUNDAY) as desk:
        friday, now = "2026-01-10T01:00:00+00:00", "2026-01-11T18:00:00+00:00"
        wanted = {"AAPL": (friday, "closed"), "BTC/USD": (now, "regular")}
        items = (await desk.ask("portfolio", "get_positions"))["items"]
        assert {each["symbol"]: (each["price_time"], each["session"]) for each in items} == wanted
        positions = (await desk.chartgen("get_positions"))["positions"]
        assert {each["symbol"]: (each["price_time"], each["session"]) for each in positions} == wanted
        for server in ("portfolio", "chartgen"):
            assert (await desk.ask(server, "get_balance"))["price_time"] == friday
        listed = (await desk.ask("chart-signals", "get_watchlist"))["watchlist"]
        assert max(each["price_time"] for each in listed["stocks"]) == friday
        assert {each["price_time"] for each in listed["crypto"]} == {now}


@awaited
async def test_get_capabilities_and_the_command_line_have_the_same_version(tmp_path: Path) -> None:
    async with bench(tmp_path, SUNDAY) as desk:
        assert (await desk.ask("chart-signals", "get_capabilities"))["version"] == __version__
    assert CliRunner().invoke(app, ["--version"]).output == f"openbell {__version__}\n"
