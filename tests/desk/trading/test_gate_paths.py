"""No order reaches a broker or fills without passing the risk gate: every path of a desk is tried."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any, cast

import pytest

from openbell.desk.desk import Desk
from openbell.desk.orders.broker_venue import LOST_SECONDS, Reconciling
from openbell.desk.orders.prices import Price, Prices
from openbell.market.instruments import Instrument
from openbell.protocol.service import Runner
from openbell.servers import load
from openbell.stores.records import orders as queries
from openbell.stores.records.journal import Journal
from openbell.trading.broker import OrderReport, OutcomeUnknown
from openbell.trading.fills import Fill
from openbell.trading.orders import Order, OrderState, Side
from tests.desk.trading.child import desk_of
from tests.sessions import answered


class Recording:
    """A broker that accepts every order and records it."""

    name = "recording"
    account = "paper"

    def __init__(self) -> None:
        self.sent: list[Order] = []
        self.unknown = False
        self.knows = True

    async def submit(self, order: Order) -> OrderReport:
        self.sent.append(order)
        if self.unknown:
            raise OutcomeUnknown("no answer")
        return OrderReport(f"v-{order.id}", OrderState.OPEN)

    async def cancel(self, order: Order) -> None: ...

    async def find(self, order: Order) -> OrderReport | None:
        return OrderReport(f"v-{order.id}", OrderState.OPEN) if self.knows else None

    async def cash(self) -> Decimal:
        return Decimal(100_000)

    async def close(self) -> None: ...


class Paths:
    """Every way to cause an order on a desk, on paper or at a remote broker."""

    def __init__(self, desk: Desk, remote: Recording | None) -> None:
        self.desk = desk
        self.remote = remote
        self._runner = Runner(load("chartgen"), desk)

    @property
    def name(self) -> str:
        """The name of the account."""
        return self.desk.trading.accounts.name_of("local")

    async def call(self, tool: str, **arguments: Any) -> tuple[bool, Any]:
        reply = await answered(self._runner, tool, arguments)
        return not reply.is_error, reply.payload

    async def price(self, symbol: str = "BTC/USD") -> float:
        from openbell.market.instruments import parse

        return float((await self.desk.trading.prices.now(parse(symbol))).value)

    async def hold(self, quantity: str, price: str = "100000", back_at: str | None = None) -> None:
        """Record a position by a fill only; with `back_at`, also a fill that closes it at that price."""
        await self.desk.trading.accounts.admit("local")

        def work(journal: Journal) -> None:
            account = self.desk.trading.accounts.ensure(journal, "local")
            at = journal.at - 60
            fill = Fill(
                "held",
                "none",
                account.name,
                "local",
                "BTC/USD",
                Side.BUY,
                Decimal(quantity),
                Decimal(price),
                Decimal(0),
                at,
            )
            journal.put("fill", fill, new=True)
            if back_at is not None:
                closed = replace(fill, id="closed", side=Side.SELL, price=Decimal(back_at))
                journal.put("fill", closed, new=True)

        await self.desk.trading.records.write(work)

    async def orders(self) -> list[Order]:
        return (await self.desk.trading.orders.listing("local", open_only=False, limit=1000))[0]

    async def fills(self) -> list[Fill]:
        found = await self.desk.trading.records.read(lambda connection: queries.fills_after(connection, self.name, 0))
        return [fill for _, fill in found if fill.id not in {"held", "closed"}]

    async def everything_else(self) -> None:
        """Run the engine and the operator's commands; none of them sends an order."""
        trading = self.desk.trading
        for order in await self.orders():
            await self.call("cancel_order", order_id=order.id)
        await trading.engine.once()
        for venue in trading.venues:
            await trading.halts.enforce(venue)
        if self.remote:
            later = iter(range(0, 100_000, int(LOST_SECONDS)))
            reconciling = Reconciling(trading.records, self.name, self.remote, lambda: float(next(later)))
            for knows in (True, False, True):
                self.remote.knows = knows
                await reconciling.step(None)


class Stale:
    """Makes every price too old to open a position."""

    def __init__(self, prices: Prices) -> None:
        self._prices = prices

    def __getattr__(self, name: str) -> Any:
        return getattr(self._prices, name)

    async def in_time(self, instrument: Instrument) -> Price:
        return replace(await self._prices.now(instrument), stale="it is too old")


async def _halt(paths: Paths) -> None:
    await paths.desk.trading.halts.halt("a test")


async def _lose(paths: Paths) -> None:
    await paths.hold("1", "100000", back_at="90000")


async def _go_stale(paths: Paths) -> None:
    gate = paths.desk.trading.gate
    gate._prices = cast("Prices", Stale(gate._prices))


async def _nothing(_walk: Paths) -> None: ...


RULES: dict[str, tuple[dict[str, str], Callable[[Paths], Any]]] = {
    "symbols": ({"RISK_SYMBOLS": "GBP/USD"}, _nothing),
    "halt": ({}, _halt),
    "stale_price": ({}, _go_stale),
    "daily_loss": ({}, _lose),
    "collar": ({"RISK_COLLAR": "0.000001"}, _nothing),
    "order": ({"RISK_ORDER_NOTIONAL": "0.01"}, _nothing),
    "symbol": ({"RISK_SYMBOL_NOTIONAL": "0.01"}, _nothing),
    "balance": ({"PAPER_CASH": "1", "RISK_ORDER_SHARE": "0", "RISK_SYMBOL_SHARE": "0"}, _nothing),
}


@asynccontextmanager
async def every_path(home: Path, *, remote: bool, **settings: str) -> AsyncIterator[Paths]:
    given = {"HOME": str(home), "FEED": "sim", "AS_OF": "2026-01-05T15:00:30Z", "TRADE": "1", "TIMEOUT": "60"}
    given["RISK_SHORT"] = "true"  # sells open positions here, as buys do
    desk = desk_of(given | settings)
    broker = Recording() if remote else None
    if broker:
        broker.cash = _cash(settings)  # type: ignore[method-assign]
        desk.trading.__dict__["broker"] = broker
    try:
        yield Paths(desk, broker)
    finally:
        await desk.close()
        # Closing a desk ends the threads of its process; here the next desk uses the same event loop.
        loop: Any = asyncio.get_running_loop()
        loop._default_executor, loop._executor_shutdown_called = None, False


def _cash(settings: dict[str, str]) -> Callable[[], Any]:
    async def cash() -> Decimal:
        return Decimal(settings.get("PAPER_CASH", "100000"))

    return cash


def requests(price: float) -> Iterator[dict[str, Any]]:
    """Returns orders of every type, bracket, side and time in force."""
    brackets = product((False, True), (False, True))
    for number, (kind, (target, stop)) in enumerate(product(("market", "limit", "stop", "stop_limit"), brackets)):
        sign = 1 if number % 3 else -1
        order: dict[str, Any] = {
            "symbol": "AAPL",
            "side": "buy" if sign > 0 else "sell",
            "type": kind,
            "quantity": "0.01",
            "time_in_force": "day" if number % 2 else "gtc",
        }
        if "limit" in kind:
            order["price"] = round(price * (1 - 0.01 * sign), 2)
        if "stop" in kind:
            order["stop_price"] = round(price * (1 + 0.01 * sign), 2)
        if target:
            order["take_profit"] = round(price * (1 + 0.03 * sign), 2)
        if stop:
            order["stop_loss"] = round(price * (1 - 0.03 * sign), 2)
        yield order


@pytest.mark.parametrize("remote", [False, True], ids=["paper", "remote"])
@pytest.mark.parametrize("rule", RULES)
def test_an_order_that_a_rule_refuses_reaches_no_broker_on_any_path(tmp_path: Path, rule: str, remote: bool) -> None:
    settings, begin = RULES[rule]

    async def walk_all() -> None:
        async with every_path(tmp_path, remote=remote, **settings) as paths:
            await begin(paths)
            asked = [
                each for each in requests(await paths.price("AAPL")) if rule != "collar" or each["type"] != "market"
            ]
            for number, order in enumerate(asked):
                key = {"client_order_id": f"key-{number}"} if number % 3 else {}
                for _ in range(2):  # the same call again, as a client retries without an answer
                    fine, said = await paths.call("place_order", **order, **key)
                    assert not fine, f"{order} passed: {said}"
            await paths.everything_else()
            found = await paths.orders()
            if rule == "stale_price":
                assert found == [], "a refusal for want of data is no answer to keep"
            else:
                assert len(found) >= len(asked)
                assert {order.state for order in found} == {OrderState.REJECTED}
            assert await paths.fills() == []
            assert not remote or (paths.remote and paths.remote.sent == [])

        # A later desk on the same home sends and fills nothing either.
        async with every_path(tmp_path, remote=remote, **settings, AS_OF="2026-01-05T16:00:00Z") as paths:
            await paths.everything_else()
            assert await paths.fills() == []
            assert not remote or (paths.remote and paths.remote.sent == [])

    asyncio.run(walk_all())


@pytest.mark.parametrize("remote", [False, True], ids=["paper", "remote"])
@pytest.mark.parametrize("rule", RULES)
def test_orders_that_only_reduce_pass_every_rule_and_never_open(tmp_path: Path, rule: str, remote: bool) -> None:
    settings, begin = RULES[rule]

    async def walk_all() -> None:
        async with every_path(tmp_path, remote=remote, **settings) as paths:
            if begin is not _lose:
                await begin(paths)
            await paths.hold("0.05", price="300000" if rule == "daily_loss" else "100000")
            order: dict[str, Any] = {"symbol": "BTC/USD", "side": "sell", "type": "market"}
            if rule == "collar":  # this rule needs a price
                order |= {"type": "limit", "price": round(await paths.price() * 0.98, 2)}
            fine, said = await paths.call("place_order", **order, quantity="0.06")
            assert not fine, "more than is held opens the other way"
            fine, said = await paths.call("place_order", **order, quantity="0.05")
            assert fine, said
            placed = [each for each in await paths.orders() if each.state is not OrderState.REJECTED]
            assert [each.opening for each in placed] == [Decimal(0)]
            if paths.remote:
                assert [each.id for each in paths.remote.sent] == [placed[0].id]
        if remote:
            return
        async with every_path(tmp_path, remote=False, **settings, AS_OF="2026-01-05T16:00:00Z") as paths:
            await paths.desk.trading.engine.once()
            assert sum(fill.quantity for fill in await paths.fills()) == Decimal("0.05")

    asyncio.run(walk_all())


def test_an_order_in_doubt_is_looked_up_and_never_sent_again(tmp_path: Path) -> None:
    """The order is sent while it is allowed; afterwards no query, cancellation or retry sends anything."""

    async def walk_all() -> None:
        async with every_path(tmp_path, remote=True) as paths:
            assert paths.remote
            paths.remote.unknown = True
            asked = list(requests(await paths.price("AAPL")))[:8]
            for number, order in enumerate(asked):
                fine, said = await paths.call("place_order", **order, client_order_id=f"key-{number}")
                assert fine, said
                assert said["status"] == "unknown"
            sent = list(paths.remote.sent)
            assert len(sent) == len(asked)
            await paths.desk.trading.halts.halt("a test")
            paths.remote.unknown = False
            for number, order in enumerate(asked):
                fine, said = await paths.call("place_order", **order, client_order_id=f"key-{number}")
                assert fine, said
                assert not (await paths.call("place_order", **order, client_order_id=f"other-{number}"))[0]
            for _ in range(3):
                await paths.everything_else()
            assert paths.remote.sent == sent

    asyncio.run(walk_all())


def test_while_halted_earlier_paper_orders_open_nothing(tmp_path: Path) -> None:
    async def walk_all() -> None:
        async with every_path(tmp_path, remote=False) as paths:
            for number, order in enumerate(requests(await paths.price("AAPL"))):
                assert (await paths.call("place_order", **order, client_order_id=f"key-{number}"))[0], order
            await paths.desk.trading.halts.halt("a test")
        async with every_path(tmp_path, remote=False, AS_OF="2026-01-05T18:00:00Z") as paths:
            await paths.desk.trading.engine.once()
            assert await paths.fills() == []
            assert {order.state for order in await paths.orders()} <= {OrderState.CANCELLED, OrderState.REJECTED}

    asyncio.run(walk_all())


def test_a_retry_by_id_gets_the_first_answer_whatever_the_price_is_now(tmp_path: Path) -> None:
    async def walk_all() -> None:
        async with every_path(tmp_path, remote=False) as paths:
            price = await paths.price()
            order: dict[str, Any] = {"symbol": "BTC/USD", "side": "buy", "type": "market", "quantity": "0.01"}
            order |= {
                "take_profit": round(price + 0.01, 2),
                "stop_loss": round(price - 0.01, 2),
                "client_order_id": "one",
            }
            fine, first = await paths.call("place_order", **order)
            assert fine, first
        async with every_path(tmp_path, remote=False, AS_OF="2026-01-05T16:00:00Z") as paths:
            assert abs(await paths.price() - price) > 1
            fine, again = await paths.call("place_order", **order)
            assert fine, again
            assert again["order_id"] == first["order_id"]

    asyncio.run(walk_all())
