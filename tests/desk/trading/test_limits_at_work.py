"""Limits that apply after an order was placed, and desks that run beside each other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from openbell.desk.desk import Desk
from openbell.desk.settings import load
from openbell.desk.trading_desk import TradingDesk
from openbell.market.bars import MINUTE, make
from openbell.market.clock import iso
from openbell.market.errors import RiskRefused
from openbell.market.provenance import Origin, Source
from openbell.market.timeframes import Timeframe
from openbell.stores.records.journal import LedgerBroken
from openbell.trading.orders import Order, OrderKind, OrderState, Side
from openbell.trading.request import request
from tests.client import run
from tests.desk.scripted import BTC
from tests.servers.desks import fresh_database
from tests.stores.records.postgres_server import PostgresServer
from tests.trading.samples import D

T = TypeVar("T")
ME = "local"
START = 1_758_240_000


def desk_of(home: Path, minute: float, prices: list[float], **more: str) -> Desk:
    names = {"HOME": str(home), "FEED": "none", "AS_OF": iso(START + minute * MINUTE), "TRADE": "1"}
    names |= {"PAPER_SLIPPAGE": "0", "PAPER_FEE": "0", "PAPER_VOLUME_SHARE": "1"}
    names |= {"RISK_ORDER_SHARE": "0", "RISK_SYMBOL_SHARE": "0", "RISK_COLLAR": "0", **more}
    desk = Desk(load({f"OPENBELL_{name}": value for name, value in names.items() if value}))
    values = np.asarray(prices)
    times = START + MINUTE * np.arange(len(values))
    flat = make(BTC, Timeframe.M1, times, values, values, values, values, np.full(len(values), 1e6))
    desk.store.write([flat], Source(Origin.IMPORTED, "x"))
    return desk


def at(home: Path, minute: float, prices: list[float], work: Callable[[TradingDesk], Awaitable[T]], **more: str) -> T:
    async def inside() -> T:
        desk = desk_of(home, minute, prices, **more)
        try:
            await desk.trading.catch_up()
            return await work(desk.trading)
        finally:
            await desk.trading.close()

    return asyncio.run(inside())


def order(key: str, side: Side, quantity: str, limit: str | None = None) -> Callable[[TradingDesk], Awaitable[Order]]:
    kind = OrderKind.MARKET if limit is None else OrderKind.LIMIT
    asked = request(BTC, side, kind, quantity, price=limit, client_order_id=key)
    return lambda trading: trading.orders.place(ME, asked)


async def orders(trading: TradingDesk) -> dict[str | None, Order]:
    return {each.client_order_id: each for each in (await trading.orders.listing(ME, open_only=False, limit=9))[0]}


def test_the_daily_loss_cancels_resting_orders_that_could_open(tmp_path: Path) -> None:
    prices = [100.0] * 20 + [80.0] * 20 + [60.0] * 20
    at(tmp_path, 5, prices, order("held", Side.BUY, "500"))
    at(tmp_path, 6, prices, order("deep", Side.BUY, "100", "70"))
    at(tmp_path, 6, prices, order("exit", Side.SELL, "500", "200"))
    found = at(tmp_path, 30, prices, orders)
    assert found["held"].state is OrderState.FILLED
    assert found["deep"].state is OrderState.CANCELLED
    assert "OPENBELL_RISK_DAILY_LOSS" in (found["deep"].reason or "")
    assert found["exit"].state is OrderState.OPEN, "what only reduces stays"
    assert at(tmp_path, 55, prices, lambda it: it.portfolio.holdings(ME))[0].position.quantity == 500


def test_a_position_can_be_closed_whatever_orders_rest(tmp_path: Path) -> None:
    prices = [100.0] * 60
    at(tmp_path, 5, prices, order("held", Side.BUY, "200"))
    at(tmp_path, 10, prices, order("resting", Side.SELL, "200", "150"))

    async def halt_and_close(trading: TradingDesk) -> Order:
        await trading.halts.halt("a test")
        with pytest.raises(RiskRefused, match="halted"):
            await order("more", Side.SELL, "200.1")(trading)
        return await order("close", Side.SELL, "200")(trading)

    assert at(tmp_path, 20, prices, halt_and_close).opening == 0
    found = at(tmp_path, 30, prices, orders)
    assert found["close"].state is OrderState.FILLED
    assert at(tmp_path, 30, prices, lambda it: it.portfolio.holdings(ME)) == []


def test_a_size_that_just_passes_leaves_no_debt(tmp_path: Path) -> None:
    prices = [100.0] * 60
    costs = {"PAPER_SLIPPAGE": "0.0005", "PAPER_FEE": "0.001"}

    async def largest(trading: TradingDesk) -> Order:
        verdict = (await trading.portfolio.validate(ME, BTC, Side.BUY, D(1), None)).verdict
        return await order("all", Side.BUY, str(verdict.max_size))(trading)

    at(tmp_path, 5, prices, largest, **costs)
    balance = at(tmp_path, 10, prices, lambda it: it.portfolio.balance(ME), **costs)
    assert 0 <= balance.cash < D("0.001")


def test_a_desk_with_another_clock_does_not_block_the_present(tmp_path: Path) -> None:
    async def play() -> int:
        past = desk_of(tmp_path, 5, [100.0] * 10)
        lease = await past.trading.engine.lease.acquire()
        present = desk_of(tmp_path, 5, [100.0] * 10, AS_OF="")
        await present.trading.records.write(
            lambda journal: journal.put("switch", {"name": "halt", "reason": "x", "at": 0.0})
        )
        held = await present.trading.engine.lease.acquire()
        await present.trading.engine.lease.release(held)
        await past.trading.engine.lease.release(lease)
        await present.trading.close()
        await past.trading.close()
        return held.token

    assert asyncio.run(play()) == 1


def test_removed_records_are_not_answered_from_memory(tmp_path: Path) -> None:
    prices = [100.0] * 60
    at(tmp_path, 5, prices, order("one", Side.BUY, "10"))
    for file in tmp_path.glob("scenarios/as-of/records.sqlite*"):
        file.unlink()
    with pytest.raises(LedgerBroken, match="are not those that were written"):
        at(tmp_path, 10, prices, lambda it: it.portfolio.balance(ME))


def test_a_second_home_on_one_postgresql_adopts_its_ledger_once(tmp_path: Path, postgres: PostgresServer) -> None:
    url = fresh_database(postgres)
    prices = [100.0] * 60
    at(tmp_path / "one", 5, prices, order("one", Side.BUY, "10"), DATABASE_URL=url)
    with pytest.raises(LedgerBroken, match="noted no head"):
        at(tmp_path / "two", 6, prices, order("two", Side.BUY, "1"), DATABASE_URL=url)
    done = run(tmp_path / "two", "verify", "--adopt", "--scenario", "as-of", FEED="none", DATABASE_URL=url)
    assert "was accepted as it is" in done.stdout, done.stdout + done.stderr
    assert at(tmp_path / "two", 6, prices, order("two", Side.BUY, "1"), DATABASE_URL=url).state is OrderState.OPEN
    again = run(tmp_path / "two", "verify", "--scenario", "as-of", FEED="none", DATABASE_URL=url)
    assert again.returncode == 0, again.stdout + again.stderr
