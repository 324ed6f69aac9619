"""The figures beside a price, a watchlist and market hours, against a calculation from the candles of the same desk."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from tests.servers.desks import Bench, awaited, bench

FRIDAY = "2026-01-09T18:00:00Z"


async def candles(desk: Bench, symbol: str, timeframe: str, count: int) -> list[dict[str, Any]]:
    """The newest candles, oldest first."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        page = await desk.ask(
            "market-data", "get_candles", symbol=symbol, timeframe=timeframe, limit=1000, offset=len(found)
        )
        found = page["items"] + found
        if not page["pagination"]["has_more"]:
            break
    return found[-count:]


@pytest.mark.parametrize(
    ("clock", "symbol", "closed", "begins", "ends"),
    [
        (FRIDAY, "AAPL", "2026-01-08T21:00", "2026-01-09T14:30", "2026-01-09T21:00"),
        ("2026-01-09T13:00:00Z", "AAPL", "2026-01-08T21:00", None, None),  # before the market opens
        ("2026-01-11T18:00:00Z", "AAPL", "2026-01-08T21:00", "2026-01-09T14:30", "2026-01-09T21:00"),  # Sunday
        ("2026-01-09T23:00:00Z", "AAPL", "2026-01-08T21:00", "2026-01-09T14:30", "2026-01-09T21:00"),  # after hours
        (FRIDAY, "BTC/USD", "2026-01-09T00:00", "2026-01-09T00:00", "2026-01-10T00:00"),
        (FRIDAY, "EUR/USD", "2026-01-08T22:00", "2026-01-08T22:00", "2026-01-09T22:00"),
    ],
)
@awaited
async def test_the_day_and_the_previous_close(
    tmp_path: Path, clock: str, symbol: str, closed: str, begins: str | None, ends: str | None
) -> None:
    async with bench(tmp_path, clock) as desk:
        found = await desk.ask("market-data", "get_current_price", symbol=symbol)
        minutes = await candles(desk, symbol, "1m", 3000)
        before = [each for each in minutes if each["timestamp"] < closed][-1]
        assert (found["previous_close"], found["previous_close_time"]) == (before["close"], f"{closed}:00+00:00")
        assert found["change_day"] == pytest.approx(found["price"] - before["close"], abs=1e-9)
        assert found["change_day_pct"] == pytest.approx((found["price"] / before["close"] - 1) * 100, rel=1e-9)
        if begins is None or ends is None:
            assert found["day"] == {"open": None, "high": None, "low": None}
            return
        day = [each for each in minutes if begins <= each["timestamp"] < ends]
        assert found["day"] == {
            "open": day[0]["open"],
            "high": max(each["high"] for each in day),
            "low": min(each["low"] for each in day),
        }


@pytest.mark.parametrize("symbol", ["AAPL", "BTC/USD"])
@awaited
async def test_the_range_of_a_year_and_changes_over_periods(tmp_path: Path, symbol: str) -> None:
    async with bench(tmp_path, FRIDAY) as desk:
        found = await desk.ask("market-data", "get_current_price", symbol=symbol)
        days = {date.fromisoformat(each["timestamp"][:10]): each for each in await candles(desk, symbol, "1d", 400)}
        price, today = found["price"], date(2026, 1, 9)
        year = [each for day, each in days.items() if day > date(2025, 1, 9)]
        high = max([*(each["high"] for each in year), found["day"]["high"]])
        low = min([*(each["low"] for each in year), found["day"]["low"]])
        shown = found["range_52w"]
        assert (shown["high"], shown["low"], shown["since"]) == (high, low, year[0]["timestamp"][:10])
        for extreme, name in (("high", "high_date"), ("low", "low_date")):
            at = date.fromisoformat(shown[name])
            assert at == today or days[at][extreme] == shown[extreme]
        assert shown["from_high_pct"] == pytest.approx((price - high) / high * 100, rel=1e-8)
        assert shown["from_low_pct"] == pytest.approx((price - low) / low * 100, rel=1e-8)
        starts = {
            "1w": today - timedelta(7),
            "1m": date(2025, 12, 9),
            "3m": date(2025, 10, 9),
            "6m": date(2025, 7, 9),
            "ytd": date(2025, 12, 31),
            "1y": date(2025, 1, 9),
        }
        for name, start in starts.items():
            at = max(day for day in days if day <= start)
            change = found["changes"][name]
            assert (change["date"], change["close"]) == (f"{at}", days[at]["close"]), name
            assert change["pct"] == pytest.approx((price / days[at]["close"] - 1) * 100, rel=1e-9)


@awaited
async def test_a_price_of_extended_hours_moves_no_range(tmp_path: Path) -> None:
    """Otherwise the low of a year would follow a price that falls before the market opens, and follow it up again."""
    ranges = []
    for clock in ("2026-01-09T21:00:00Z", "2026-01-09T23:30:00Z", "2026-01-12T10:00:00Z", "2026-01-12T14:00:00Z"):
        async with bench(tmp_path, clock) as desk:
            found = await desk.ask("market-data", "get_current_price", symbol="AAPL")
            ranges.append({name: found["range_52w"][name] for name in ("high", "high_date", "low", "low_date")})
    assert ranges == ranges[:1] * 4


@awaited
async def test_volatility_in_per_cent(tmp_path: Path) -> None:
    async with bench(tmp_path, FRIDAY) as desk:
        found = await desk.ask("market-data", "get_volatility", symbol="BTC/USD", timeframe="1d")
        days = await candles(desk, "BTC/USD", "1d", 100)
        assert found["annualized_pct"] == pytest.approx(100 * found["volatility"] * 365**0.5, rel=1e-8)
        assert found["last_close"] == days[-1]["close"]
        assert found["atr_pct"] == pytest.approx(found["atr"] / days[-1]["close"] * 100, rel=1e-8)
        assert found["high"] == max(each["high"] for each in days)
        assert found["low"] == min(each["low"] for each in days)
        by_time = {each["timestamp"]: each for each in days}
        assert by_time[found["high_time"]]["high"] == found["high"]
        assert by_time[found["low_time"]]["low"] == found["low"]
        hours = await desk.ask("market-data", "get_volatility", symbol="BTC/USD", timeframe="1h")
        assert hours["annualized_pct"] == pytest.approx(100 * hours["volatility"] * (365 * 24) ** 0.5, rel=1e-8)


@awaited
async def test_the_summary_of_a_watchlist(tmp_path: Path) -> None:
    async with bench(tmp_path, FRIDAY) as desk:
        for timeframe in ("1min", "15min"):
            found = await desk.ask("chart-signals", "get_watchlist", timeframe=timeframe)
            rows = {each["symbol"]: each for part in found["watchlist"].values() for each in part}
            assert found["timeframe"] == timeframe
            changes = {symbol: each["change_day_pct"] for symbol, each in rows.items()}
            summary = found["summary"]
            assert (summary["up"], summary["down"]) == (
                sum(each > 0 for each in changes.values()),
                sum(each < 0 for each in changes.values()),
            )
            ranked = sorted(changes, key=lambda each: changes[each])
            assert [each["symbol"] for each in summary["worst"]] == [each for each in ranked if changes[each] < 0][:3]
            assert [each["symbol"] for each in summary["best"]] == [each for each in ranked[::-1] if changes[each] > 0][
                :3
            ]
            for name, symbols in summary["by_signal"].items():
                assert symbols == [symbol for symbol, each in rows.items() if name in each["signals"]]
            for symbol in ("AAPL", "BTC/USD"):
                price = await desk.ask("market-data", "get_current_price", symbol=symbol)
                row = rows[symbol]
                assert (row["price"], row["change_day_pct"]) == (price["price"], price["change_day_pct"])
                signals = await desk.ask("chart-signals", "get_signals", symbol=symbol, timeframe=timeframe)
                assert row["rsi"] == signals["snapshot"]["rsi"]
                assert row["signals"] == [name for name, is_true in signals["crossings"].items() if is_true]


@awaited
async def test_signals_in_words_and_their_last_crossings(tmp_path: Path) -> None:
    async with bench(tmp_path, FRIDAY) as desk:
        found = await desk.ask("chart-signals", "get_signals", symbol="BTC/USD", timeframe="1hour")
        snapshot, reading = found["snapshot"], found["reading"]
        closes = [each["close"] for each in await candles(desk, "BTC/USD", "1h", 20)]
        middle = fmean(closes)
        deviation = fmean((each - middle) ** 2 for each in closes) ** 0.5
        position = (closes[-1] - (middle - 2 * deviation)) / (4 * deviation) * 100
        assert reading["bb_position_pct"] == pytest.approx(position, rel=1e-7)
        assert reading["price_vs_ema9_pct"] == pytest.approx((snapshot["price"] / snapshot["ema9"] - 1) * 100, rel=1e-6)
        for name, is_true in found["crossings"].items():
            last = found["last_crossings"][name]
            assert is_true == (last is not None and last["bars_ago"] == 0)
        times = [each["timestamp"] for each in await candles(desk, "BTC/USD", "1h", 3000)]
        for last in filter(None, found["last_crossings"].values()):
            assert times[-1 - last["bars_ago"]] == last["time"]


@pytest.mark.parametrize(
    ("clock", "opens", "closes", "words"),
    [
        ("2026-01-09T13:04:00Z", "2026-01-09T14:30", "2026-01-09T21:00", "opens in 1 hour and 26 minutes"),
        (FRIDAY, "2026-01-12T14:30", "2026-01-09T21:00", "closes in 3 hours"),
        ("2026-01-09T21:30:00Z", "2026-01-12T14:30", "2026-01-12T21:00", "opens in 2 days and 17 hours"),
        ("2025-11-28T15:00:00Z", "2025-12-01T14:30", "2025-11-28T18:00", "closes in 3 hours"),  # a half day
    ],
)
@awaited
async def test_market_hours_need_no_arithmetic(tmp_path: Path, clock: str, opens: str, closes: str, words: str) -> None:
    async with bench(tmp_path, clock) as desk:
        stocks = (await desk.ask("chart-signals", "check_market_status"))["stocks"]
        assert (stocks["next_open_at"], stocks["next_close_at"]) == (f"{opens}:00+00:00", f"{closes}:00+00:00")
        assert stocks["changes_in"] == words
