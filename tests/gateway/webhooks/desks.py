"""A desk whose webhooks are sent to receivers on loopback, and what happens on it: alerts fire, orders fill."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

from openbell.desk.desk import Desk
from openbell.desk.settings import load
from openbell.gateway.outbound import Outbound
from openbell.gateway.webhooks.sender import Schedule, WebhookSender
from openbell.market.clock import iso
from openbell.stores.records.journal import Journal
from openbell.trading.alerts import Alert, AlertState, Firing, Type, notification
from openbell.trading.fills import Fill
from openbell.trading.orders import Side
from tests.gateway.receivers import Receiver

ME = "local"
AT = 1_780_000_000.0
QUICK = Schedule(waits=(0.01,), timeout=5.0)
_numbers = count(1)


@asynccontextmanager
async def desk_at(home: Path, *receivers: Receiver, **settings: str) -> AsyncIterator[Desk]:
    """A desk of the present that may send to these receivers."""
    origins = ",".join(each.url for each in receivers)
    given = {"HOME": str(home), "FEED": "sim", "WEBHOOK_ORIGINS": origins, **settings}
    desk = Desk(load({f"OPENBELL_{name}": value for name, value in given.items()}))
    try:
        yield desk
    finally:
        await desk.close()


@asynccontextmanager
async def sending(
    desk: Desk, schedule: Schedule = QUICK, outbound: Outbound | None = None, **rest: Any
) -> AsyncIterator[WebhookSender]:
    """The desk's sender, which runs until the block ends."""
    sender = WebhookSender(desk, outbound or Outbound(trusted=desk.settings.trusted_origins), schedule, **rest)
    task = asyncio.create_task(sender.run())
    try:
        yield sender
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def fire(desk: Desk, symbol: str = "BTC/USD", principal: str = ME) -> Mapping[str, Any]:
    """Fire an alert in one transaction, as the alert engine does; returns its notification."""
    name = f"alert{next(_numbers)}-{id(desk):x}"
    alert = Alert(name, principal, symbol, symbol, "1m", Type.PRICE_ABOVE, AT - 60, threshold=Decimal(5))
    body = notification(Firing(alert, 0, 6.5, AT), iso(AT))

    def work(journal: Journal) -> None:
        journal.put("alert", alert, new=True)
        fired = replace(alert, state=AlertState.FIRED, fired_at=AT, value=6.5, bar_hash="0" * 64, updated_at=AT)
        cursor = journal.put("alert", fired)
        desk.trading.inbox.deliver(journal, fired, cursor, body, AT)

    await desk.trading.records.write(work)
    return body


async def fill(desk: Desk, symbol: str = "BTC/USD", account: str = "paper", principal: str = ME) -> Fill:
    """Record a fill."""
    name = f"fill{next(_numbers)}"
    amounts = (Decimal("0.00010000"), Decimal("64123.10"), Decimal("0.00641231"))
    made = Fill(name, "order1", account, principal, symbol, Side.BUY, *amounts, AT, bar=int(AT) - 60)
    await desk.trading.records.write(lambda journal: journal.put("fill", made, new=True))
    return made
