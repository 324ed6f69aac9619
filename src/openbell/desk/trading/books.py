"""The book of an account, kept up to date from its fills, and what it was worth when the day began."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from sqlalchemy import Connection

from openbell.market.clock import Clock
from openbell.stores.records import orders as queries
from openbell.stores.records.journal import head_of
from openbell.trading import amounts
from openbell.trading.accounts import Account
from openbell.trading.amounts import ZERO
from openbell.trading.book import Book
from openbell.trading.fills import Fill
from openbell.trading.orders import Order

_DAY = 86400


@dataclass(slots=True)
class _Kept:
    """One account's book as of some entry of the ledger, and the sums of what was done before a day began."""

    book: Book
    day: int
    cash: Decimal
    held: dict[str, Decimal] = field(default_factory=dict)
    seq: int = 0

    def add(self, fill: Fill) -> None:
        self.book = self.book.after(fill)
        if fill.at < self.day:
            with amounts.exact():
                self.cash += fill.cash
                self.held[fill.symbol] = self.held.get(fill.symbol, ZERO) + fill.signed


@dataclass(frozen=True, slots=True)
class DayStart:
    """Cash and quantities at 00:00 UTC."""

    moment: int
    cash: Decimal
    held: dict[str, Decimal]

    def equity(self, marks: dict[str, Decimal]) -> Decimal:
        """What that was worth at some prices."""
        with amounts.exact():
            return self.cash + sum((quantity * marks[symbol] for symbol, quantity in self.held.items()), ZERO)


@dataclass(frozen=True, slots=True)
class _Working:
    """An account's orders that are not final, as of some entry of the ledger."""

    orders: dict[str, Order]
    seq: int


class Books:
    """Books of accounts, and the orders that still work.

    Fills only ever come after those that are counted, so that each is added once.

    A desk whose clock stands in the past counts what was done by then, afresh each time.
    """

    def __init__(self, clock: Clock, *, now: bool) -> None:
        """`now`: the clock is the present, after which nothing was done."""
        self._clock = clock
        self._now = now
        self._kept: dict[str, _Kept] = {}
        self._working: dict[str, _Working] = {}

    def orders(self, connection: Connection, account: Account) -> tuple[Order, ...]:
        """The account's orders that are not final, as this transaction sees them; only what has changed is read."""
        known = self._working.get(account.name)
        if known is None:
            seq = head_of(connection).seq
            found = {order.id: order for order in queries.working(connection, account.name)}
        else:
            seq, found = known.seq, dict(known.orders)
            for changed, order in queries.changed_after(connection, account.name, known.seq):
                seq = changed
                found.pop(order.id, None)
                if not order.final:
                    found[order.id] = order
        self._working[account.name] = _Working(found, seq)
        return tuple(found.values())

    def book(self, connection: Connection, account: Account) -> Book:
        """The account's book as this transaction sees it."""
        return self._advanced(connection, account).book

    def day_start(self, connection: Connection, account: Account) -> DayStart:
        """What the account held when the clock's day began."""
        kept = self._advanced(connection, account)
        return DayStart(kept.day, kept.cash, {symbol: held for symbol, held in kept.held.items() if held})

    def forget(self) -> None:
        """Drop what is remembered: a transaction that was counted may have been undone."""
        self._kept.clear()
        self._working.clear()

    def _advanced(self, connection: Connection, account: Account) -> _Kept:
        moment = self._clock.epoch()
        day = int(moment // _DAY * _DAY)
        kept = self._kept.get(account.name) if self._now else None
        if kept is None or kept.day != day:
            kept = _Kept(Book(account.cash), day, account.cash)
        else:
            kept = _Kept(kept.book, kept.day, kept.cash, dict(kept.held), kept.seq)
        for seq, fill in queries.fills_after(connection, account.name, kept.seq, None if self._now else moment):
            kept.add(fill)
            kept.seq = seq
        self._kept[account.name] = kept
        return kept
