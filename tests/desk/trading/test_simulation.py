"""Schedules of orders, bad lines, fills, losses, halts, outages, other clocks and deaths, each from a seed: no money is
ever lost, doubled or unexplained.

A failure names its seed; `OPENBELL_SEED=n` runs that one alone.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest

from openbell.desk.settings.principals import OPERATOR
from openbell.market.errors import OpenbellError, RiskRefused
from openbell.stores.records import orders as queries
from openbell.trading.broker import BrokerRefused
from openbell.trading.orders import Order, OrderKind, OrderState, Side
from openbell.trading.request import request
from tests.counts import runs
from tests.desk.trading.invariants import violations
from tests.desk.trading.market import SYMBOLS, Outage
from tests.desk.trading.simulation import Memories, World, driver, simulate

ONE = os.environ.get("OPENBELL_SEED")
SCHEDULES = runs(40, soak=50_000)
"""The number of schedules of each test."""
PARTS = max(2, SCHEDULES // 2500)
EACH = SCHEDULES // PARTS
"""Schedules of one part, at each broker."""


@pytest.fixture(scope="module")
def memories() -> Memories:
    return Memories()


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    with driver() as made:
        yield made


def seeds(part: int) -> range:
    return range(int(ONE), int(ONE) + 1) if ONE else range(part * EACH, (part + 1) * EACH)


def check(world: World) -> None:
    found = list(violations(world))
    if found:
        lines = "\n".join(world.trace)
        pytest.fail(f"OPENBELL_SEED={world.seed}:\n  " + "\n  ".join(found) + f"\n{lines}")


@pytest.mark.parametrize("part", range(1 if ONE else PARTS))
def test_at_a_remote_broker_no_order_is_lost_or_doubled(
    part: int, memories: Memories, loop: asyncio.AbstractEventLoop
) -> None:
    for seed in seeds(part):
        check(simulate(loop, memories, seed, on_paper=False))


@pytest.mark.parametrize("part", range(1 if ONE else PARTS))
def test_on_paper_no_order_is_lost_or_doubled(part: int, memories: Memories, loop: asyncio.AbstractEventLoop) -> None:
    for seed in seeds(part):
        check(simulate(loop, memories, seed, on_paper=True))


@pytest.mark.parametrize("seed", [366, 1871, 3127, 16346, 18065])
def test_seeds_that_failed_before_pass(seed: int, memories: Memories, loop: asyncio.AbstractEventLoop) -> None:
    check(simulate(loop, memories, seed, on_paper=True))


def test_orders_in_doubt_do_not_delay_the_lookup_of_others(
    memories: Memories, loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker refuses to cancel two orders, and allows two lookups per step."""
    world = World(0, memories, on_paper=False)
    world.calm = world.vendor.calm = True
    world.most = 2
    process = world.process = type(world.process)(world)

    async def refuse(_order: Order) -> None:
        raise BrokerRefused("not now")

    async def run() -> None:
        placed = []
        for number in range(3):
            wanted = request(SYMBOLS[1], Side.BUY, OrderKind.LIMIT, "1", price="39.5", client_order_id=f"key-{number}")
            placed.append(await process.seat.orders.place(OPERATOR, wanted))
        monkeypatch.setattr(process.broker, "cancel", refuse)
        for order in placed[:2]:
            with pytest.raises(OpenbellError):
                await process.seat.orders.cancel(OPERATOR, order.id)
        world.vendor.fill(world.vendor.orders[placed[2].id], placed[2].quantity, placed[2].quantity)
        for _ in range(4):
            world.advance_time(10.0)
            await process.seat.engine.step(None)
        last = await process.seat.records.read(lambda connection: queries.order(connection, placed[2].id))
        assert last
        assert last.state is OrderState.FILLED

    loop.run_until_complete(run())


def test_a_market_order_without_a_price_is_not_valued_at_zero(
    memories: Memories, loop: asyncio.AbstractEventLoop
) -> None:
    """After a restart the gate has no price of it: its value is not known, and nothing else is opened."""
    world = World(0, memories, on_paper=False)
    world.calm = world.vendor.calm = True

    async def run() -> None:
        await world.process.seat.orders.place(OPERATOR, request(SYMBOLS[0], Side.BUY, OrderKind.MARKET, "30"))
        world.restart()
        world.down["BTC/USD"] = Outage("BTC/USD", True, world.clock.at, world.memory.seq)
        seat, before = world.process.seat, world.memory.seq
        with pytest.raises(RiskRefused, match="unknown amount"):
            await seat.orders.place(
                OPERATOR, request(SYMBOLS[1], Side.BUY, OrderKind.MARKET, "90", client_order_id="a")
            )
        assert (await seat.portfolio.balance(OPERATOR)).available == 0
        assert world.memory.seq == before, "a refusal for want of data is not kept"
        world.end_outage("BTC/USD")
        placed = await seat.orders.place(
            OPERATOR, request(SYMBOLS[1], Side.BUY, OrderKind.MARKET, "90", client_order_id="a")
        )
        assert placed.state is OrderState.OPEN

    loop.run_until_complete(run())
