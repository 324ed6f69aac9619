"""The book of an account, kept up to date from its fills, its working orders, and what it held when a day began."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from decimal import Decimal

from openbell.stores.records import checkpoints
from openbell.stores.records import orders as queries
from openbell.stores.records.journal import head_of
from openbell.stores.records.view import View
from openbell.trading import amounts
from openbell.trading.accounts import Account
from openbell.trading.amounts import ZERO
from openbell.trading.book import Book
from openbell.trading.fills import Fill
from openbell.trading.orders import Order

_KEPT_DAYS = 2 * 86400
_MOMENTS = 8
"""Accounts at earlier moments that stay in memory."""


@dataclass(slots=True)
class _Kept:
    """One account's book as of some entry of the ledger, and its fills of the last days."""

    book: Book
    recent: list[Fill] = field(default_factory=list)
    seq: int = 0
    last: float = 0.0

    def add(self, fill: Fill) -> None:
        self.book = self.book.after(fill)
        self.last = max(self.last, fill.at)
        self.recent.append(fill)


@dataclass(frozen=True, slots=True)
class DayStart:
    """Cash and quantities at the beginning of a UTC day."""

    moment: int
    cash: Decimal
    held: dict[str, Decimal]

    def equity(self, marks: dict[str, Decimal]) -> Decimal:
        """What that was worth at some prices."""
        with amounts.exact():
            return self.cash + sum((quantity * marks[symbol] for symbol, quantity in self.held.items()), ZERO)


@dataclass(frozen=True, slots=True)
class Working:
    """An account's orders that are not final, each with the entry that wrote it last, as of some entry of the ledger."""

    orders: dict[str, tuple[int, Order]]
    seq: int


class Books:
    """Books of accounts, and the orders that still work, as a view shows them.

    Fills only ever come after those that are counted, so that each is added once. What a view of an earlier moment shows is
    kept: the present's for good, a scenario's until its ledger has a new entry.
    """

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._working: dict[str, Working] = {}
        self._guard = threading.Lock()
        self._fills_then: tuple[tuple[str, float, int, int], list[Fill]] = (("", 0.0, 0, 0), [])
        self._past: OrderedDict[tuple[str, float, int], tuple[Book, tuple[Order, ...]]] = OrderedDict()

    def orders(self, view: View, account: Account) -> tuple[Order, ...]:
        """The account's orders that are not final; only what has changed is read."""
        if view.until is not None:
            return self._then(view, view.until, account)[1]
        return tuple(order for _, order in self.working(view, account).orders.values())

    def working(self, view: View, account: Account) -> Working:
        """The same with the entries that wrote them, for an engine."""
        known = self._working.get(account.name)
        if known is None:
            seq = head_of(view.connection).seq
            found = {order.id: (number, order) for number, order in queries.numbered(view, account.name)}
        else:
            seq, found = known.seq, dict(known.orders)
            for changed, order in queries.changed_after(view, account.name, known.seq):
                seq = changed
                found.pop(order.id, None)
                if not order.final:
                    found[order.id] = (changed, order)
        self._working[account.name] = Working(found, seq)
        return self._working[account.name]

    def book(self, view: View, account: Account) -> Book:
        """The account's book."""
        if view.until is not None:
            return self._then(view, view.until, account)[0]
        return self._advanced(view, account).book

    def last_fill(self, view: View, account: Account) -> float:
        """When the account's last fill happened; 0 if there is none."""
        return self._advanced(view, account).last

    def day_start(self, view: View, account: Account, day: int) -> DayStart:
        """What the account held when a day began: the book without the fills since.

        A fill of the minute that ends at midnight has that time, and is of the day before.
        """
        book = self.book(view, account)
        since = [fill for fill in self._fills_since(view, account, day) if fill.at > day]
        held = {symbol: position.quantity for symbol, position in book.positions.items()}
        with amounts.exact():
            for fill in since:
                held[fill.symbol] = held.get(fill.symbol, ZERO) - fill.signed
            cash = book.cash - sum((fill.cash for fill in since), ZERO)
        return DayStart(day, cash, {symbol: quantity for symbol, quantity in held.items() if quantity})

    def forget(self) -> None:
        """Drop what is remembered: a transaction that was counted may have been undone."""
        self._kept.clear()
        self._working.clear()

    def _fills_since(self, view: View, account: Account, day: int) -> list[Fill]:
        if view.until is not None:
            # Only the newest question is kept.
            asked = (account.name, view.until, day, _grows(view))
            known = self._fills_then
            if known[0] != asked:
                known = self._fills_then = (asked, queries.fills_since(view, account.name, day))
            return known[1]
        kept = self._kept[account.name]
        if kept.last - day <= _KEPT_DAYS:
            return kept.recent
        return [fill for _, fill in queries.fills_after(view, account.name, 0)]

    def _advanced(self, view: View, account: Account) -> _Kept:
        before = self._kept.get(account.name) or _Kept(Book(account.cash))
        kept = _Kept(before.book, list(before.recent), before.seq, before.last)
        for seq, fill in queries.fills_after(view, account.name, kept.seq):
            kept.add(fill)
            kept.seq = seq
        kept.recent = [fill for fill in kept.recent if fill.at >= kept.last - _KEPT_DAYS]
        self._kept[account.name] = kept
        return kept

    def _then(self, view: View, until: float, account: Account) -> tuple[Book, tuple[Order, ...]]:
        key = (account.name, until, _grows(view))
        with self._guard:
            known = self._past.pop(key, None)
            if known is None:
                fold, orders = checkpoints.account_at(view, account.name, account.cash)
                known = (fold.book, tuple(orders))
            self._past[key] = known
            while len(self._past) > _MOMENTS:
                self._past.popitem(last=False)
            return known


def _grows(view: View) -> int:
    """What an earlier moment shows stays the same while this number does.

    The present's entries have the time at which they were written. A scenario's have the time of the event, so that a later
    walk adds to earlier moments.
    """
    return head_of(view.connection).seq if view.by_event else 0
