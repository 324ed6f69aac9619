"""Orders at Alpaca end to end: the desk, its records, real HTTP, and a local server that fails on purpose."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from openbell.desk.desk import Desk
from openbell.desk.orders import broker_venue
from openbell.desk.settings import load
from openbell.desk.trading_desk import TradingDesk
from openbell.market.bars import MINUTE, make
from openbell.market.instruments import parse
from openbell.market.provenance import Origin, Source
from openbell.market.timeframes import Timeframe
from openbell.stores.records.verify import faults
from openbell.trading.broker import BrokerRefused, OrderReport
from openbell.trading.orders import Force, Order, OrderKind, OrderState, Side
from openbell.trading.request import OrderRequest, request
from tests.brokers.alpaca_server import KEY, NOW, SECRET, TAKEN, AlpacaTradingServer
from tests.client import run
from tests.clocks import HandClock
from tests.trading.samples import D

T = TypeVar("T")
ME = "local"
AAPL, BTC = parse("AAPL"), parse("BTC/USD")


@pytest.fixture
def server() -> Iterator[AlpacaTradingServer]:
    with AlpacaTradingServer() as server:
        server.account |= {"cash": "100000.5"}
        yield server


@pytest.fixture(autouse=True)
def _keys(server: AlpacaTradingServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALPACA_API_KEY", KEY)
    monkeypatch.setenv("ALPACA_SECRET_KEY", SECRET)
    monkeypatch.setenv("ALPACA_TRADING_URL", server.url)


def trading_in(home: Path, work: Callable[[TradingDesk], Awaitable[T]], **settings: str) -> T:
    """Run `work` in a new process of the desk."""

    async def inside() -> T:
        names = {"HOME": str(home), "FEED": "none", "BROKER": "alpaca", "TRADE": "1", "RISK_ORDER_SHARE": "0.9"}
        names |= settings
        desk = Desk(load({f"OPENBELL_{name}": value for name, value in names.items()}))
        desk.clock = HandClock(float(NOW))
        times = NOW // MINUTE * MINUTE - MINUTE * np.arange(40, 0, -1)
        flat = np.full(len(times), 100.0)
        bars = [make(each, Timeframe.M1, times, flat, flat, flat, flat, flat) for each in (AAPL, BTC)]
        desk.store.write(bars, Source(Origin.IMPORTED, "x"))
        try:
            return await work(desk.trading)
        finally:
            await desk.trading.close()

    return asyncio.run(inside())


def market(quantity: str = "10", side: Side = Side.BUY, key: str | None = "k", **more: object) -> OrderRequest:
    return request(AAPL, side, OrderKind.MARKET, quantity, client_order_id=key, **more)  # type: ignore[arg-type]


async def orders(trading: TradingDesk) -> dict[str, Order]:
    return {order.role.value: order for order in (await trading.orders.listing(ME, open_only=False, limit=99))[0]}


def test_an_order_is_sent_filled_and_counted(tmp_path: Path, server: AlpacaTradingServer) -> None:
    placed = trading_in(tmp_path, lambda it: it.orders.place(ME, market()))
    assert placed.state is OrderState.OPEN
    server.fill(placed.id, "4", "99.5")

    async def look(trading: TradingDesk) -> Order:
        await trading.engine.once()
        return (await orders(trading))["single"]

    partly = trading_in(tmp_path, look)
    server.fill(placed.id, "6", "100.25")
    done = [trading_in(tmp_path, look) for _ in range(2)][-1]
    assert (partly.state, partly.filled) == (OrderState.PARTIALLY_FILLED, D(4))
    assert (done.state, done.filled, done.paid) == (OrderState.FILLED, D(10), D("999.5"))
    (holding,) = trading_in(tmp_path, lambda it: it.portfolio.holdings(ME))
    assert (holding.position.quantity, holding.position.average_price) == (D(10), D("99.95"))
    balance = trading_in(tmp_path, lambda it: it.portfolio.balance(ME))
    cash = trading_in(tmp_path, lambda it: it.venue.opening_cash())
    assert balance.cash == cash - D("999.5")
    assert trading_in(tmp_path, _faults) == []


def test_a_working_order_waits_for_the_broker_and_says_so(tmp_path: Path) -> None:
    async def reason(trading: TradingDesk) -> str | None:
        order = await trading.orders.place(ME, market())
        return (await trading.reasons.of([order]))[order.id]

    said = str(trading_in(tmp_path, reason))
    assert said.endswith("waits for the broker to fill it")
    assert "next minute" not in said


async def _faults(trading: TradingDesk) -> list[str]:
    head = trading.records.head.read()
    found = await trading.records.read(lambda view: list(faults(view.connection, () if head is None else (head,))))
    return [fault.reason for fault in found]


@pytest.mark.parametrize("fault", [fault for fault in TAKEN if "late" not in fault])
def test_an_order_whose_answer_was_lost_is_found_and_never_sent_again(
    tmp_path: Path, server: AlpacaTradingServer, fault: str
) -> None:
    server.suffer("submit", fault)
    placed = trading_in(tmp_path, lambda it: it.orders.place(ME, market()))
    assert placed.state is OrderState.UNKNOWN
    again = trading_in(tmp_path, lambda it: it.orders.place(ME, market()))
    assert (again.id, again.state) == (placed.id, OrderState.UNKNOWN)

    async def look(trading: TradingDesk) -> Order:
        await trading.engine.once()
        return (await orders(trading))["single"]

    found = trading_in(tmp_path, look)
    assert (found.state, found.reason) == (OrderState.OPEN, None)
    assert placed.reason
    assert len(server.roots()) == 1
    assert server.count("submit") == 1


def test_an_order_that_never_arrived_is_lost_in_time_and_found_if_it_appears(
    tmp_path: Path, server: AlpacaTradingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.suffer("submit", "drop")
    placed = trading_in(tmp_path, lambda it: it.orders.place(ME, market()))
    assert placed.state is OrderState.UNKNOWN

    async def look(trading: TradingDesk) -> Order:
        await trading.engine.once()
        return (await orders(trading))["single"]

    assert trading_in(tmp_path, look).state is OrderState.UNKNOWN
    monkeypatch.setattr(broker_venue, "LOST_SECONDS", 0.0)
    assert trading_in(tmp_path, look).state is OrderState.LOST
    assert server.count("submit") == 1


def test_an_order_that_the_broker_refuses_raises_and_is_recorded(tmp_path: Path, server: AlpacaTradingServer) -> None:
    from tests.brokers.alpaca_server import refusal

    server.suffer("submit", refusal(403, 40310000, "insufficient buying power"))
    with pytest.raises(BrokerRefused, match="insufficient buying power"):
        trading_in(tmp_path, lambda it: it.orders.place(ME, market()))

    kept = trading_in(tmp_path, orders)["single"]
    assert kept.state is OrderState.REJECTED
    assert "buying power" in (kept.reason or "")


def test_an_exit_that_fills_after_its_entry_is_counted(tmp_path: Path, server: AlpacaTradingServer) -> None:
    asked = market(take_profit="110", stop_loss="90")
    placed = trading_in(tmp_path, lambda it: it.orders.place(ME, asked))
    server.fill(placed.id, "10", "100")

    async def look(trading: TradingDesk) -> dict[str, Order]:
        await trading.engine.once()
        return await orders(trading)

    entered = trading_in(tmp_path, look)
    assert entered["entry"].state is OrderState.FILLED
    assert entered["stop_loss"].state is OrderState.OPEN
    server.fill(server.leg(placed.id, "limit")["id"], "10", "110")
    ended = trading_in(tmp_path, look)
    assert (ended["take_profit"].state, ended["take_profit"].paid) == (OrderState.FILLED, D(1100))
    assert ended["stop_loss"].state is OrderState.CANCELLED
    assert trading_in(tmp_path, lambda it: it.portfolio.holdings(ME)) == []
    assert trading_in(tmp_path, lambda it: it.portfolio.balance(ME)).realised == D(100)


def test_a_cancellation_is_sent_and_its_result_returned(tmp_path: Path, server: AlpacaTradingServer) -> None:
    placed = trading_in(tmp_path, lambda it: it.orders.place(ME, market()))
    ended = trading_in(tmp_path, lambda it: it.orders.cancel(ME, placed.id))
    assert ended.state is OrderState.CANCELLED
    assert server.of(placed.id)["status"] == "canceled"


def test_a_halt_cancels_opening_orders_at_the_broker(tmp_path: Path, server: AlpacaTradingServer) -> None:
    placed = trading_in(tmp_path, lambda it: it.orders.place(ME, market()))

    async def halt(trading: TradingDesk) -> Order:
        await trading.halts.halt("a test")
        await trading.engine.once()
        return (await orders(trading))["single"]

    assert trading_in(tmp_path, halt).state in {OrderState.CANCELLING, OrderState.CANCELLED}
    assert server.of(placed.id)["status"] == "canceled"


def test_an_outage_of_the_broker_keeps_the_engine_going(tmp_path: Path, server: AlpacaTradingServer) -> None:
    placed = trading_in(tmp_path, lambda it: it.orders.place(ME, market()))
    server.fill(placed.id, "10", "100")
    server.suffer("by id", *["503"] * 9)

    async def look(trading: TradingDesk) -> Order:
        await trading.engine.once()
        return (await orders(trading))["single"]

    states = [trading_in(tmp_path, look).state for _ in range(4)]
    assert states[-1] is OrderState.FILLED


def test_without_trade_only_a_halt_is_sent(tmp_path: Path, server: AlpacaTradingServer) -> None:
    """No cancellation is sent, due or for a loss; only the operator's halt is."""
    placed = trading_in(tmp_path, lambda it: it.orders.place(ME, market()))
    server.suffer("cancel", "drop")
    trading_in(tmp_path, lambda it: it.orders.cancel(ME, placed.id))
    before = len(server.requests)
    for _ in range(3):
        trading_in(tmp_path, lambda it: it.engine.once(), TRADE="")
    assert len(server.requests) == before
    done = run(tmp_path, "halt", FEED="none", BROKER="alpaca")
    assert "halt does so also without --trade" in done.stdout, done.stdout + done.stderr
    assert "1 cancellation not confirmed so far: sent again" in done.stdout
    assert server.of(placed.id)["status"] == "canceled"


def test_the_command_halt_cancels_resting_orders_at_the_broker_without_trade(
    tmp_path: Path, server: AlpacaTradingServer
) -> None:
    placed = trading_in(tmp_path, lambda it: it.orders.place(ME, market()))
    assert placed.state is OrderState.OPEN
    done = run(tmp_path, "halt", FEED="none", BROKER="alpaca")
    assert done.returncode == 0, done.stderr
    assert "1 resting order that could open a position was cancelled" in done.stdout
    assert "not confirmed" not in done.stdout
    assert server.of(placed.id)["status"] == "canceled"


@pytest.mark.parametrize("cause", ["a halt in the records", "a halt in the home", "the daily loss"])
def test_without_trade_the_engine_cancels_nothing_at_the_broker(
    tmp_path: Path, server: AlpacaTradingServer, cause: str
) -> None:
    def step(**settings: str) -> list[str]:
        """The requests of one step of the engine."""
        before = len(server.requests)
        trading_in(tmp_path, lambda it: it.engine.once(), **settings)
        return [each.kind for each in server.requests[before:]]

    large = {"RISK_SYMBOL_SHARE": "0"}
    held = trading_in(tmp_path, lambda it: it.orders.place(ME, market("800")), **large)
    resting = request(AAPL, Side.BUY, OrderKind.LIMIT, "5", price="99", client_order_id="resting")
    trading_in(tmp_path, lambda it: it.orders.place(ME, resting), **large)
    server.fill(held.id, "800", "110" if cause == "the daily loss" else "100")
    step()  # the fill is known now
    if cause == "a halt in the records":
        trading_in(tmp_path, lambda it: it.halts.halt("a test"))
    elif cause == "a halt in the home":
        (tmp_path / "halted").write_text("a test")
    for _ in range(2):
        assert step(TRADE="") == []
    assert "cancel" in step(), "what was due is done by a desk that may"


def test_an_order_that_the_adapter_cannot_read_keeps_no_other_from_being_looked_up(
    tmp_path: Path, server: AlpacaTradingServer
) -> None:
    async def work(trading: TradingDesk) -> tuple[Order, Order]:
        first = await trading.orders.place(ME, market("1", key="a"))
        second = await trading.orders.place(ME, market("2", key="b"))
        server.fill(first.id, "1", "99.5")
        server.fill(second.id, "2", "99.5")
        broker, broken = trading.broker, min(first, second, key=lambda order: order.id)
        assert broker is not None
        find = broker.find

        async def find_others(order: Order) -> OrderReport | None:
            if order.id == broken.id:
                raise KeyError("a field that the vendor no longer sends")
            return await find(order)

        broker.find = find_others  # type: ignore[method-assign]
        await trading.engine.once()
        assert any(broken.id in each for each in trading.failing.faults())
        found = (await trading.orders.listing(ME, open_only=False, limit=9))[0]
        broken, other = sorted(found, key=lambda order: order.id != broken.id)
        return broken, other

    broken, other = trading_in(tmp_path, work)
    assert (broken.state, other.state) == (OrderState.OPEN, OrderState.FILLED)


def test_a_new_account_begins_with_the_cash_that_the_broker_has_then(
    tmp_path: Path, server: AlpacaTradingServer
) -> None:
    """Not with that of hours before, when this process was asked for the balance first."""

    async def work(trading: TradingDesk) -> tuple[Decimal, Decimal]:
        now = 0.0
        trading.accounts._now = lambda: now
        before = (await trading.portfolio.balance(ME)).cash
        server.account["cash"] = "70000"
        now = 3600.0
        await trading.orders.place(ME, market())
        (account,) = [each for each in await trading.accounts.listing() if each.name == "alpaca"]
        return before, account.cash

    before, cash = trading_in(tmp_path, work)
    assert cash == D(70_000) != before


def test_closing_a_position_in_coins_closes_what_the_broker_has(tmp_path: Path, server: AlpacaTradingServer) -> None:
    """Alpaca keeps a part of the coins that were bought, and refuses to sell more than are left."""
    server.coin_fee = D("0.0025")

    def coins(side: Side, quantity: str) -> OrderRequest:
        return request(BTC, side, OrderKind.MARKET, quantity, time_in_force=Force.GTC)

    async def once(trading: TradingDesk) -> None:
        await trading.engine.once()

    bought = trading_in(tmp_path, lambda it: it.orders.place(ME, coins(Side.BUY, "2")))
    server.fill(bought.id, "2", "100")
    trading_in(tmp_path, once)
    part = trading_in(tmp_path, lambda it: it.orders.place(ME, coins(Side.SELL, "0.5")))
    assert server.of(part.id)["qty"] == "0.5"
    server.fill(part.id, "0.5", "100")
    trading_in(tmp_path, once)

    closing = trading_in(tmp_path, lambda it: it.orders.place(ME, coins(Side.SELL, "1.5")))
    assert server.of(closing.id)["qty"] == "1.495"
    server.fill(closing.id, "1", "110")
    trading_in(tmp_path, once)
    (holding,) = trading_in(tmp_path, lambda it: it.portfolio.holdings(ME))
    assert holding.position.quantity == D("0.5")
    server.fill(closing.id, "0.495", "110")
    for _ in range(2):
        trading_in(tmp_path, once)
    assert trading_in(tmp_path, lambda it: it.portfolio.holdings(ME)) == []
    done = {order.id: order for order in trading_in(tmp_path, _listed)}[closing.id]
    assert (done.state, done.filled, done.fees) == (OrderState.FILLED, D("1.5"), D("0.55"))
    cash = trading_in(tmp_path, lambda it: it.venue.opening_cash())
    balance = trading_in(tmp_path, lambda it: it.portfolio.balance(ME))
    assert balance.cash == cash - 200 + 50 + D("1.495") * 110
    assert server.coins["BTC/USD"] == 0
    assert trading_in(tmp_path, _faults) == []


def test_coins_that_no_fee_explains_are_not_left_out(tmp_path: Path, server: AlpacaTradingServer) -> None:
    bought = trading_in(
        tmp_path, lambda it: it.orders.place(ME, request(BTC, Side.BUY, OrderKind.MARKET, "2", time_in_force=Force.GTC))
    )
    server.fill(bought.id, "2", "100")
    server.coins["BTC/USD"] = D(1)

    async def close(trading: TradingDesk) -> None:
        await trading.engine.once()
        with pytest.raises(BrokerRefused, match="insufficient balance"):
            await trading.orders.place(ME, request(BTC, Side.SELL, OrderKind.MARKET, "2", time_in_force=Force.GTC))

    trading_in(tmp_path, close)


async def _listed(trading: TradingDesk) -> list[Order]:
    return (await trading.orders.listing(ME, open_only=False, limit=99))[0]
