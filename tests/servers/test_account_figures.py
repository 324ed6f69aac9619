"""The figures of an account add up, and a check of a trade says what it would cost."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.servers.desks import Bench, awaited, bench

FRIDAY = "2026-01-09T18:00:00Z"
LATER = "2026-01-09T20:00:00Z"
NEXT_DAY = "2026-01-10T18:00:00Z"


async def bought(desk: Bench) -> None:
    price = (await desk.ask("market-data", "get_current_price", symbol="BTC/USD"))["price"]
    stops = {"take_profit": round(price * 1.2, 2), "stop_loss": round(price * 0.8, 2)}
    for given in (
        {"symbol": "BTC/USD", "quantity": "0.05", **stops},
        {"symbol": "AAPL", "quantity": "7"},
    ):
        await desk.chartgen("place_order", side="buy", type="market", **given)


async def sold(desk: Bench) -> None:
    await desk.chartgen("place_order", symbol="AAPL", side="sell", type="market", quantity="3")


async def account(desk: Bench) -> tuple[Any, Any]:
    return await desk.ask("portfolio", "get_balance"), await desk.ask("portfolio", "get_positions")


@awaited
async def test_balance_and_positions_add_up(tmp_path: Path) -> None:
    async with bench(tmp_path, FRIDAY) as desk:
        await bought(desk)
    async with bench(tmp_path, LATER) as desk:
        await sold(desk)
    async with bench(tmp_path, NEXT_DAY) as desk:
        balance, page = await account(desk)
        midnight, _ = balance["as_of"], page
        total = Decimal(str(balance["total_balance"]))
        parts = [balance[name] for name in ("started_with", "realized_pnl", "unrealized_pnl")]
        assert total == pytest.approx(sum(Decimal(str(each)) for each in parts) - Decimal(str(balance["fees_paid"])))
        assert float(total) == pytest.approx(balance["cash"] + page["total_market_value"])
        assert balance["unrealized_pnl"] == pytest.approx(page["total_unrealized_pnl"])
        assert balance["total_return_pct"] == pytest.approx((float(total) / balance["started_with"] - 1) * 100)
        assert balance["realized_pnl"] != 0
        assert balance["fees_paid"] > 0
        assert (balance["open_positions"], balance["halted"]) == (2, None)
        assert balance["working_orders"] == 2, midnight
        items = {each["symbol"]: each for each in page["items"]}
        for each in items.values():
            assert each["market_value"] == pytest.approx(each["size"] * each["current_price"])
            paid = each["size"] * each["entry_price"]
            assert each["unrealized_pnl_pct"] == pytest.approx(each["unrealized_pnl"] / paid * 100, rel=1e-6)
            assert each["weight_pct"] == pytest.approx(each["market_value"] / float(total) * 100, rel=1e-6)
        assert items["AAPL"]["exits"] == []
        held = items["BTC/USD"]
        levels = sorted(each["price"] for each in held["exits"])
        assert levels[0] < held["current_price"] < levels[1]
        for each in held["exits"]:
            away = (each["price"] / held["current_price"] - 1) * 100
            assert each["distance_pct"] == pytest.approx(away, rel=1e-6)
            assert each["pnl"] == pytest.approx((each["price"] - held["entry_price"]) * each["size"], rel=1e-6)


@awaited
async def test_the_profit_of_the_day_and_what_may_still_be_lost(tmp_path: Path) -> None:
    async with bench(tmp_path, FRIDAY) as desk:
        await bought(desk)
    async with bench(tmp_path, "2026-01-10T00:00:00Z") as desk:
        start = (await desk.ask("portfolio", "get_balance"))["total_balance"]
    async with bench(tmp_path, NEXT_DAY) as desk:
        balance, _ = await account(desk)
        profit = balance["total_balance"] - start
        assert balance["day_pnl"] == pytest.approx(profit, abs=1e-6)
        assert balance["day_pnl_pct"] == pytest.approx(profit / start * 100, rel=1e-6)
        assert balance["daily_loss_left"] == pytest.approx(0.05 * start + profit, rel=1e-9)
    async with bench(tmp_path, NEXT_DAY, RISK_DAILY_LOSS="0") as desk:
        assert (await desk.ask("portfolio", "get_balance"))["daily_loss_left"] is None


@awaited
async def test_a_check_says_what_the_trade_would_cost(tmp_path: Path) -> None:
    async with bench(tmp_path, FRIDAY) as desk:
        found = await desk.ask("portfolio", "validate_trade", symbol="AAPL", side="BUY", size=10)
        price = (await desk.ask("market-data", "get_current_price", symbol="AAPL"))["price"]
        assert found["price"] == price
        assert found["trade_value"] == pytest.approx(10 * price)
        # A fee of 0.1 % of a price that slips by 0.05 %.
        assert found["costs"] == pytest.approx(10 * price * (1.001 * 1.0005 - 1))
        assert found["equity_pct"] == pytest.approx(10 * price / 100_000 * 100)
        assert found["position_after"] == 10
        limited = await desk.ask("portfolio", "validate_trade", symbol="AAPL", side="BUY", size=10, price=price - 1)
        assert (limited["price"], limited["trade_value"]) == (price - 1, pytest.approx(10 * (price - 1)))
        await bought(desk)
    async with bench(tmp_path, LATER) as desk:
        found = await desk.ask("portfolio", "validate_trade", symbol="AAPL", side="SELL", size=2)
        assert (found["valid"], found["position_after"]) == (True, 5)
