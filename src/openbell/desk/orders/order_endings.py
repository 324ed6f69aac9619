"""Recording the end of an order."""

from __future__ import annotations

from openbell.stores.records import orders as queries
from openbell.stores.records.journal import Journal
from openbell.trading.orders import Order, OrderState, end_exits


def end(journal: Journal, order: Order, state: OrderState, reason: str | None) -> Order:
    """Record the new state of an order and, if it is final, the end of exits that have nothing to close without it."""
    order = order.to(state, journal.at, reason)
    journal.put("order", order)
    end_exits_of(journal, order)
    return order


def end_exits_of(journal: Journal, entry: Order) -> None:
    """Record the end of the exits of an order that has ended."""
    for each in end_exits(entry, queries.bracket(journal.view, entry.id), journal.at):
        journal.put("order", each)
