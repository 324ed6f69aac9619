"""Orders, fills and books, rebuilt from the entries of a ledger only."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, replace
from decimal import Decimal

from openbell.stores.records.verify import entries
from openbell.trading.book import Book
from openbell.trading.fills import Fill
from openbell.trading.ledger import LedgerEntry
from openbell.trading.orders import FINAL, MOVES, Order, OrderState
from openbell.trading.rows import from_row
from tests.desk.trading.memory_databases import Memory

_MONEY = {"filled", "paid", "fees", "updated_at", "broker_id", "opening"}
"""Fields of an ended order that a late fill may change."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A fill, the entry that wrote it, and what the account held before it."""

    fill: Fill
    seq: int
    written: float
    held: dict[str, Decimal]

    @property
    def opened(self) -> bool:
        """Whether it opened or increased a position."""
        before = self.held.get(self.fill.symbol, Decimal(0))
        return abs(before + self.fill.signed) > abs(before)


class ReplayedLedger:
    """The state after all entries, and the faults that were found on the way."""

    def __init__(self, ledger: list[LedgerEntry]) -> None:
        self.ledger = ledger
        self.orders: dict[str, Order] = {}
        self.first: dict[str, Order] = {}
        self.versions: dict[str, list[Order]] = defaultdict(list)
        self.counted: list[Counted] = []
        self.cash: dict[str, Decimal] = {}
        self.books: dict[str, Book] = {}
        self.halted: str | None = None
        self.halts: list[float] = []
        """When trading was halted."""
        self.faults: list[str] = []
        self._fresh: set[str] = set()
        """Orders whose row does not include their last fill yet."""
        for entry in ledger:
            body = json.loads(entry.body)
            if entry.kind == "account":
                self.cash[body["name"]] = Decimal(body["cash"])
                self.books[body["name"]] = Book(Decimal(body["cash"]))
            elif entry.kind == "switch":
                self.halted = body["reason"]
                self.halts += [entry.at] if self.halted else []
            elif entry.kind == "fill":
                self._fill(entry, from_row(Fill, body))
            elif entry.kind == "order":
                self._order(from_row(Order, body))

    @classmethod
    def of(cls, memory: Memory) -> ReplayedLedger:
        """Returns the replayed ledger of a database."""
        with memory.engine.connect() as connection:
            return cls(list(entries(connection)))

    @property
    def fills(self) -> list[Fill]:
        """All fills in the order of the ledger."""
        return [each.fill for each in self.counted]

    def _fill(self, entry: LedgerEntry, fill: Fill) -> None:
        order = self.orders.get(fill.order_id)
        if order is None or order.account != fill.account or order.symbol != fill.symbol:
            self.faults.append(f"fill {fill.id} has no order")
            return
        book = self.books[fill.account]
        held = {symbol: position.quantity for symbol, position in book.positions.items()}
        counted = Counted(fill, entry.seq, entry.at, held)
        if self.halted and fill.bar is not None and counted.opened:
            self.faults.append(f"fill {fill.id} opened while trading was halted")
        self.counted.append(counted)
        self.books[fill.account] = book.after(fill)
        self._fresh.add(fill.order_id)

    def _order(self, order: Order) -> None:
        before = self.orders.get(order.id)
        if before is None:
            self.first[order.id] = order
            if order.state not in {OrderState.PENDING, OrderState.OPEN, OrderState.HELD, OrderState.REJECTED}:
                self.faults.append(f"{order.id} began as {order.state}")
            if order.role.exit and order.state is not OrderState.HELD:
                self.faults.append(f"the exit {order.id} began as {order.state}")
        elif order.state is not before.state and order.state not in MOVES[before.state]:
            self.faults.append(f"{order.id} went from {before.state} to {order.state}")
        elif before.state in FINAL and replace(order, **{name: getattr(before, name) for name in _MONEY}) != before:
            self.faults.append(f"{order.id} has ended as {before.state} and was changed")
        elif before.state in FINAL and order.id not in self._fresh:
            self.faults.append(f"{order.id} has ended as {before.state} and was written again without a fill")
        if before is not None and order.filled < before.filled:
            self.faults.append(f"{order.id} has lost fills")
        if before is not None and order.account != before.account:
            self.faults.append(f"{order.id} went to another account")
        self._fresh.discard(order.id)
        self.orders[order.id] = order
        self.versions[order.id].append(order)
