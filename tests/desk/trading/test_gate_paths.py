"""No order reaches a broker or fills without passing the risk gate: every path of a desk is walked."""

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
from openbell.desk.trading.prices import Price, Prices
from openbell.desk.trading.reconcile import LOST_SECONDS, Reconciling
from openbell.market.instruments import Instrument
from openbell.protocol.service import Runner
from openbell.servers import load
from openbell.stores.records import orders as queries
from openbell.stores.records.journal import Journal
from openbell.trading.broker import OutcomeUnknown, Report
from openbell.trading.fills import Fill
from openbell.trading.orders import Order, Side, State
from tests.desk.trading.child import desk_of
from tests.sessions import answered


class Recording:
    """A broker that takes everything, and remembers it."""

    name = "recording"
    account = "paper"

    def __init__(self) -> None:
        self.sent: list[Order] = []
        self.unknown = False
        self.knows = True

    async def submit(self, order: Order) -> Report:
        self.sent.append(order)
        if self.unknown:
            raise OutcomeUnknown("no answer")
        return Report(f"v-{order.id}", State.OPEN)

    async def cancel(self, order: Order) -> None: ...

    async def find(self, order: Order) -> Report | None:
        return Report(f"v-{order.id}", State.OPEN) if self.knows else None

    async def cash(self) -> Decimal:
        return Decimal(100_000)

    async def close(self) -> None: ...


class Walk:
    """A desk, its tools, and either broker."""

    def __init__(self, desk: Desk, outside: Recording | None) -> None:
        self.desk = desk
        self.outside = outside
        self._runner = Runner(load("chartgen"), desk)

    @property
    def name(self) -> str:
        """The account's."""
        return self.desk.trading.accounts.name_of("local")

    async def call(self, tool: str, **arguments: Any) -> tuple[bool, Any]:
        reply = await answered(self._runner, tool, arguments)
        return not reply.is_error, reply.payload

    async def price(self, symbol: str = "BTC/USD") -> float:
        from openbell.market.instruments import parse

        return float((await self.desk.trading.prices.now(parse(symbol))).value)

    async def hold(self, quantity: str, price: str = "100000", back_at: str | None = None) -> None:
        """Write down a position by its fill alone; with `back_at`, and that it was closed again at that price."""
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
        """What runs by itself, and what an operator may do: none of it sends an order."""
        trading = self.desk.trading
        for order in await self.orders():
            await self.call("cancel_order", order_id=order.id)
        await trading.engine.once()
        for venue in trading.venues:
            await trading.halts.enforce(venue)
        if self.outside:
            later = iter(range(0, 100_000, int(LOST_SECONDS)))
            reconciling = Reconciling(trading.records, self.name, self.outside, lambda: float(next(later)))
            for knows in (True, False, True):
                self.outside.knows = knows
                await reconciling.step(None)


class Stale:
    """Prices that are too old to open anything on."""

    def __init__(self, prices: Prices) -> None:
        self._prices = prices

    def __getattr__(self, name: str) -> Any:
        return getattr(self._prices, name)

    async def now(self, instrument: Instrument) -> Price:
        return replace(await self._prices.now(instrument), stale="it is too old")


async def _halt(walk: Walk) -> None:
    await walk.desk.trading.halts.halt("a test")


async def _lose(walk: Walk) -> None:
    await walk.hold("1", "100000", back_at="90000")


async def _go_stale(walk: Walk) -> None:
    gate = walk.desk.trading.gate
    gate._prices = cast("Prices", Stale(gate._prices))


async def _nothing(_walk: Walk) -> None: ...


RULES: dict[str, tuple[dict[str, str], Callable[[Walk], Any]]] = {
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
async def walking(home: Path, *, outside: bool, **settings: str) -> AsyncIterator[Walk]:
    given = {"HOME": str(home), "FEED": "sim", "AS_OF": "2026-01-05T15:00:30Z", "TRADE": "1", "TIMEOUT": "60"}
    given["RISK_SHORT"] = "true"  # what is sold here opens as what is bought does
    desk = desk_of(given | settings)
    broker = Recording() if outside else None
    if broker:
        broker.cash = _cash(settings)  # type: ignore[method-assign]
        desk.trading.__dict__["broker"] = broker
    try:
        yield Walk(desk, broker)
    finally:
        await desk.close()
        # A desk ends its process's threads with itself; here the next desk lives in the same loop.
        loop: Any = asyncio.get_running_loop()
        loop._default_executor, loop._executor_shutdown_called = None, False


def _cash(settings: dict[str, str]) -> Callable[[], Any]:
    async def cash() -> Decimal:
        return Decimal(settings.get("PAPER_CASH", "100000"))

    return cash


def requests(price: float) -> Iterator[dict[str, Any]]:
    """Orders of every type, with every kind of bracket, both ways and both times in force."""
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


@pytest.mark.parametrize("outside", [False, True], ids=["paper", "outside"])
@pytest.mark.parametrize("rule", RULES)
def test_what_a_rule_refuses_reaches_no_broker_on_any_path(tmp_path: Path, rule: str, outside: bool) -> None:
    settings, begin = RULES[rule]

    async def walk_all() -> None:
        async with walking(tmp_path, outside=outside, **settings) as walk:
            await begin(walk)
            asked = [
                each for each in requests(await walk.price("AAPL")) if rule != "collar" or each["type"] != "market"
            ]
            for number, order in enumerate(asked):
                key = {"client_order_id": f"key-{number}"} if number % 3 else {}
                for _ in range(2):  # the same call again, as a client does that heard nothing
                    fine, said = await walk.call("place_order", **order, **key)
                    assert not fine, f"{order} passed: {said}"
            await walk.everything_else()
            found = await walk.orders()
            if rule == "stale_price":
                assert found == [], "a refusal for want of data is no answer to keep"
            else:
                assert len(found) >= len(asked)
                assert {order.state for order in found} == {State.REJECTED}
            assert await walk.fills() == []
            assert not outside or (walk.outside and walk.outside.sent == [])

        # A later desk on the same home finds nothing to send or fill either.
        async with walking(tmp_path, outside=outside, **settings, AS_OF="2026-01-05T16:00:00Z") as walk:
            await walk.everything_else()
            assert await walk.fills() == []
            assert not outside or (walk.outside and walk.outside.sent == [])

    asyncio.run(walk_all())


@pytest.mark.parametrize("outside", [False, True], ids=["paper", "outside"])
@pytest.mark.parametrize("rule", RULES)
def test_what_only_reduces_passes_every_rule_and_never_opens(tmp_path: Path, rule: str, outside: bool) -> None:
    settings, begin = RULES[rule]

    async def walk_all() -> None:
        async with walking(tmp_path, outside=outside, **settings) as walk:
            if begin is not _lose:
                await begin(walk)
            await walk.hold("0.05", price="300000" if rule == "daily_loss" else "100000")
            order: dict[str, Any] = {"symbol": "BTC/USD", "side": "sell", "type": "market"}
            if rule == "collar":  # is about prices that are named
                order |= {"type": "limit", "price": round(await walk.price() * 0.98, 2)}
            fine, said = await walk.call("place_order", **order, quantity="0.06")
            assert not fine, "more than is held opens the other way"
            fine, said = await walk.call("place_order", **order, quantity="0.05")
            assert fine, said
            placed = [each for each in await walk.orders() if each.state is not State.REJECTED]
            assert [each.opening for each in placed] == [Decimal(0)]
            if walk.outside:
                assert [each.id for each in walk.outside.sent] == [placed[0].id]
        if outside:
            return
        async with walking(tmp_path, outside=False, **settings, AS_OF="2026-01-05T16:00:00Z") as walk:
            await walk.desk.trading.engine.once()
            assert sum(fill.quantity for fill in await walk.fills()) == Decimal("0.05")

    asyncio.run(walk_all())


def test_what_is_in_doubt_is_asked_for_and_never_sent_again(tmp_path: Path) -> None:
    """Sent while it was allowed; since then nothing is, and whoever asks, cancels or repeats sends nothing."""

    async def walk_all() -> None:
        async with walking(tmp_path, outside=True) as walk:
            assert walk.outside
            walk.outside.unknown = True
            asked = list(requests(await walk.price("AAPL")))[:8]
            for number, order in enumerate(asked):
                fine, said = await walk.call("place_order", **order, client_order_id=f"key-{number}")
                assert fine, said
                assert said["status"] == "unknown"
            sent = list(walk.outside.sent)
            assert len(sent) == len(asked)
            await walk.desk.trading.halts.halt("a test")
            walk.outside.unknown = False
            for number, order in enumerate(asked):
                fine, said = await walk.call("place_order", **order, client_order_id=f"key-{number}")
                assert fine, said
                assert not (await walk.call("place_order", **order, client_order_id=f"other-{number}"))[0]
            for _ in range(3):
                await walk.everything_else()
            assert walk.outside.sent == sent

    asyncio.run(walk_all())


def test_while_trading_is_halted_paper_opens_nothing_that_was_placed_before(tmp_path: Path) -> None:
    async def walk_all() -> None:
        async with walking(tmp_path, outside=False) as walk:
            for number, order in enumerate(requests(await walk.price("AAPL"))):
                assert (await walk.call("place_order", **order, client_order_id=f"key-{number}"))[0], order
            await walk.desk.trading.halts.halt("a test")
        async with walking(tmp_path, outside=False, AS_OF="2026-01-05T18:00:00Z") as walk:
            await walk.desk.trading.engine.once()
            assert await walk.fills() == []
            assert {order.state for order in await walk.orders()} <= {State.CANCELLED, State.REJECTED}

    asyncio.run(walk_all())


def test_whoever_asks_again_by_an_id_gets_the_first_answer_wherever_the_price_is_now(tmp_path: Path) -> None:
    async def walk_all() -> None:
        async with walking(tmp_path, outside=False) as walk:
            price = await walk.price()
            order: dict[str, Any] = {"symbol": "BTC/USD", "side": "buy", "type": "market", "quantity": "0.01"}
            order |= {
                "take_profit": round(price + 0.01, 2),
                "stop_loss": round(price - 0.01, 2),
                "client_order_id": "one",
            }
            fine, first = await walk.call("place_order", **order)
            assert fine, first
        async with walking(tmp_path, outside=False, AS_OF="2026-01-05T16:00:00Z") as walk:
            assert abs(await walk.price() - price) > 1
            fine, again = await walk.call("place_order", **order)
            assert fine, again
            assert again["order_id"] == first["order_id"]

    asyncio.run(walk_all())
