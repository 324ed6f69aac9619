"""Counts the orders and alerts that bars which are stored late may no longer reach.

Bars are processed in the order of time. A bar that is stored behind bars that were already processed fills no order and
fires no alert: a fill in the past would change what the account did since. `openbell import` prints a note instead.
"""

from __future__ import annotations

from dataclasses import dataclass

from openbell.market.instruments import Instrument
from openbell.stores.records import alerts, orders
from openbell.stores.records.records import Records
from openbell.stores.records.view import View
from openbell.trading.accounts import PAPER


@dataclass(frozen=True, slots=True)
class Waiting:
    """How many paper orders and alerts of one symbol wait for its bars."""

    orders: int
    alerts: int

    def __str__(self) -> str:
        parts = ((self.orders, "paper order"), (self.alerts, "alert"))
        return " and ".join(f"{count} {word}{'s' if count > 1 else ''}" for count, word in parts if count)


async def waiting_for_bars(records: Records, instrument: Instrument, before: float) -> Waiting:
    """Returns what was waiting for bars of an instrument before a time."""
    symbol = str(instrument)

    def work(view: View) -> Waiting:
        accounts = [account.name for account in orders.all_accounts(view) if account.broker == PAPER]
        working = [order for name in accounts for order in orders.working(view, name)]
        active = [alert for _, alert in alerts.changed_after(view, 0)]
        return Waiting(
            sum(order.symbol == symbol and order.placed_at < before for order in working),
            sum(alert.symbol == symbol and alert.set_at < before for alert in active),
        )

    return await records.read(work)
