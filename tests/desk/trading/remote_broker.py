"""The connection of one process to the simulated broker: slow, and it loses requests and answers."""

from __future__ import annotations

import asyncio
from decimal import Decimal

from openbell.trading.broker import BrokerRefused, BrokerUnavailable, OrderReport, OutcomeUnknown
from openbell.trading.orders import Order, OrderState
from tests.desk.trading import vendor as lines
from tests.desk.trading.memory_databases import Life
from tests.desk.trading.seats import CASH


class RemoteBroker:
    """The broker port, on the simulated `Vendor`."""

    name = "outside"
    account = "live"

    def __init__(self, process: Life) -> None:
        self._process = process
        self._vendor = process.world.vendor

    async def submit(self, order: Order) -> OrderReport:
        process, vendor = self._process, self._vendor
        process.touch("before an order is sent")
        outcome = vendor.outcome(order)
        process.world.note(f"  sent {order.id}: {outcome}")
        await self._travel()
        if outcome == lines.REFUSED:
            raise BrokerRefused("no")
        if outcome == lines.UNAVAILABLE:
            raise BrokerUnavailable("not there")
        if outcome in {lines.ACCEPTED, lines.ANSWER_LOST}:
            vendor.take(order)
        elif outcome == lines.DELAYED:
            vendor.delayed.append(order)
        process.touch("after an order was sent")
        report = vendor.report(order.id)
        await process.pause(12)
        if outcome != lines.ACCEPTED:
            raise OutcomeUnknown("no answer")
        assert report is not None
        return report

    async def _travel(self) -> None:
        """Let other tasks run, sometimes for so long that the engine looks the order up."""
        world = self._process.world
        if world.chance.random() < 0.12:
            arrival = world.clock.at + world.chance.choice((60.5, 150.0, 500.0))
            while world.clock.at < arrival and not world.calm:
                await asyncio.sleep(0)
        await self._process.pause(6)

    async def cancel(self, order: Order) -> None:
        process, vendor = self._process, self._vendor
        process.touch("before a cancellation is sent")
        await process.pause(4)
        if vendor.fails(0.1):
            raise BrokerUnavailable("not there")
        lost = vendor.fails(0.15)
        if not (lost and vendor.fails(0.5)) and (kept := vendor.find(order.id)) is not None:
            vendor.end(kept, OrderState.CANCELLED)
        process.touch("after a cancellation was sent")
        await process.pause(4)
        if lost:
            raise OutcomeUnknown("no answer")

    async def find(self, order: Order) -> OrderReport | None:
        process, vendor = self._process, self._vendor
        process.touch("before an order is asked for")
        await process.pause(4)
        if vendor.fails(0.12):
            raise BrokerUnavailable("not there")
        report = vendor.report(order.id)
        await process.pause(8)
        return report

    async def cash(self) -> Decimal:
        return CASH["main"]

    async def close(self) -> None: ...
