"""The book of each account, its working orders, and what it held when a day began, cached between transactions."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal

from openbell.stores.records import checkpoints
from openbell.stores.records import orders as queries
from openbell.stores.records.journal import head_of
from openbell.stores.records.snapshot import View
from openbell.trading import amounts
from openbell.trading.accounts import Account
from openbell.trading.amounts import ZERO
from openbell.trading.book import Book
from openbell.trading.fills import Fill
from openbell.trading.orders import Order

_RECENT_SECONDS = 2 * 86400
"""Fills up to this much older than the last one are cached."""
_MOMENTS = 8
"""The number of accounts at earlier moments that are cached."""


@dataclass(slots=True)
class _Cached:
    """An account's book after some entry of the ledger, and its fills of the last two days."""

    book: Book
    recent: list[Fill] = field(default_factory=list)
    seq: int = 0
    """The entry of the last fill that is in `book`."""
    last: float = 0.0
    """The time of the last fill."""

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

    def equity(self, prices: dict[str, Decimal]) -> Decimal:
        """Returns the equity at these prices."""
        with amounts.exact():
            return self.cash + sum((quantity * prices[symbol] for symbol, quantity in self.held.items()), ZERO)


@dataclass(frozen=True, slots=True)
class Working:
    """An account's orders that are not final, after some entry of the ledger."""

    orders: dict[str, tuple[int, Order]]
    """By order id, the entry of the ledger that wrote the order last, and the order."""
    seq: int
    """The newest entry that is included."""


class Books:
    """Returns books and working orders of accounts as a view shows them, and caches them.

    A view of now only reads the entries that are newer than the cached state: entries are never removed or inserted before
    others. Accounts at an earlier moment (`view.until`) are cached apart. In the present's records they never change; in a
    scenario's they are read again when its ledger has a new entry.
    """

    def __init__(self, on_replaced: list[Callable[[], None]] | None = None) -> None:
        """Adds to `on_replaced` the function that empties the cache."""
        self._cached: dict[str, _Cached] = {}
        self._working: dict[str, Working] = {}
        self._guard = threading.Lock()
        self._past_fills: tuple[tuple[str, float, int, int], list[Fill]] = (("", 0.0, 0, 0), [])
        """The result of the last `_fills_since` at an earlier moment, with its arguments."""
        self._past: OrderedDict[tuple[str, float, int], tuple[Book, tuple[Order, ...]]] = OrderedDict()
        if on_replaced is not None:
            on_replaced.append(self._forget)

    def _forget(self) -> None:
        """Drop everything: another ledger was accepted."""
        with self._guard:
            self._cached, self._working = {}, {}
            self._past_fills = (("", 0.0, 0, 0), [])
            self._past.clear()

    def orders(self, view: View, account: Account) -> tuple[Order, ...]:
        """Returns the account's orders that are not final; reads only those that have changed."""
        if view.until is not None:
            return self._at_moment(view, view.until, account)[1]
        return tuple(order for _, order in self.working(view, account).orders.values())

    def working(self, view: View, account: Account) -> Working:
        """Returns the orders that are not final, each with the entry that wrote it last. Only for views of now."""
        known = self._working.get(account.name)
        if known is None:
            seq = head_of(view.connection).seq
            found = {order.id: (number, order) for number, order in queries.working_with_seq(view, account.name)}
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
        """Returns the account's book."""
        if view.until is not None:
            return self._at_moment(view, view.until, account)[0]
        return self._updated(view, account).book

    def last_fill(self, view: View, account: Account) -> float:
        """Returns the time of the account's last fill; 0 if there is none. Only for views of now."""
        return self._updated(view, account).last

    def day_start(self, view: View, account: Account, day: int) -> DayStart:
        """Returns what the account held when a day began: the book less the fills since then.

        A fill at midnight is from the last minute of the day before, and belongs to that day.
        """
        book = self.book(view, account)
        since = [fill for fill in self._fills_since(view, account, day) if fill.at > day]
        held = {symbol: position.quantity for symbol, position in book.positions.items()}
        with amounts.exact():
            for fill in since:
                held[fill.symbol] = held.get(fill.symbol, ZERO) - fill.signed
            cash = book.cash - sum((fill.cash for fill in since), ZERO)
        return DayStart(day, cash, {symbol: quantity for symbol, quantity in held.items() if quantity})

    def _fills_since(self, view: View, account: Account, day: int) -> list[Fill]:
        if view.until is not None:
            # Only the last result is cached.
            wanted = (account.name, view.until, day, _version(view))
            known = self._past_fills
            if known[0] != wanted:
                known = self._past_fills = (wanted, queries.fills_since(view, account.name, day))
            return known[1]
        cached = self._cached[account.name]
        if cached.last - day <= _RECENT_SECONDS:
            return cached.recent
        return [fill for _, fill in queries.fills_after(view, account.name, 0)]

    def _updated(self, view: View, account: Account) -> _Cached:
        before = self._cached.get(account.name) or _Cached(Book(account.cash))
        cached = _Cached(before.book, list(before.recent), before.seq, before.last)
        for seq, fill in queries.fills_after(view, account.name, cached.seq):
            cached.add(fill)
            cached.seq = seq
        cached.recent = [fill for fill in cached.recent if fill.at >= cached.last - _RECENT_SECONDS]
        self._cached[account.name] = cached
        return cached

    def _at_moment(self, view: View, until: float, account: Account) -> tuple[Book, tuple[Order, ...]]:
        """Returns the book and the working orders at an earlier moment."""
        key = (account.name, until, _version(view))
        with self._guard:
            known = self._past.pop(key, None)
            if known is None:
                fold, orders = checkpoints.account_at(view, account.name, account.cash)
                known = (fold.book, tuple(orders))
            self._past[key] = known
            while len(self._past) > _MOMENTS:
                self._past.popitem(last=False)
            return known


def _version(view: View) -> int:
    """Returns a number that changes when an account at an earlier moment may have changed.

    The present's entries have the time at which they were written, so that earlier moments never change. A scenario's
    entries have the time of the event, so that a new entry may belong to an earlier moment.
    """
    return head_of(view.connection).seq if view.by_event else 0
