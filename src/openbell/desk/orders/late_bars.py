"""Counts the orders and alerts that bars which are stored late may no longer reach.

Bars are processed in the order of time. A bar that is stored behind bars that were already processed fills no order and
fires no alert: a fill in the past would change what the account did since. `openbell import` prints a note instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from openbell.market.instruments import Instrument
from openbell.stores.records import alerts, orders
from openbell.stores.records.records import Records
from openbell.stores.records.snapshot import View
from openbell.trading.accounts import PAPER


@dataclass(frozen=True, slots=True)
class Waiting:
    """How many paper orders and alerts of one symbol wait for its bars."""

    orders: int
    alerts: int

    def __str__(self) -> str:
        parts = ((self.orders, "paper order"), (self.alerts, "alert"))
        return " and ".join(f"{count} {word}{'s' if count > 1 else ''}" for count, word in parts if count)


async def waiting_for_bars(records: Records, before: Mapping[Instrument, float]) -> dict[Instrument, Waiting]:
    """Returns what was waiting for bars of each instrument before its time, read at once."""

    def work(view: View) -> dict[Instrument, Waiting]:
        accounts = [account.name for account in orders.all_accounts(view) if account.broker == PAPER]
        working = [(order.symbol, order.placed_at) for name in accounts for order in orders.working(view, name)]
        active = [(alert.symbol, alert.set_at) for _, alert in alerts.changed_after(view, 0)]

        def count(waiting: list[tuple[str, float]], instrument: Instrument) -> int:
            return sum(symbol == str(instrument) and since < before[instrument] for symbol, since in waiting)

        return {each: Waiting(count(working, each), count(active, each)) for each in before}

    return await records.read(work)
