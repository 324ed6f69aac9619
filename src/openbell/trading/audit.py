"""Checks that the entries of the ledger are consistent: fills with their orders and bars, orders with their verdicts.

The hash chain detects entries that were edited. The audit detects entries that should never have been written, such as an
entry that somebody appended with a correct hash. It checks each entry against the earlier ones:

account         keeps its broker, owner and cash
order           follows a verdict that allows it, or is an exit of such an order; has no fills at first; keeps its terms and
                never grows; changes its state as `MOVES` allows; shows the sum of its fills
fill            belongs to a known order with the same account, symbol and side, within its quantity; is written once
fill on paper   names a bar that opened no earlier than its order was placed, has the time of that bar's end, is no worse
                than the order's limit, happened while the order was working, and opens no more than the order may
fill elsewhere  names no bar: a broker made it
alert           fires once, after it was set, at a value that reaches its threshold, and names the bar

`LedgerAudit.take` must get the entries in order. It keeps only what later entries can refer to; of ended orders it keeps
only the hash of the id. `LedgerAudit.books` has the book of each account, computed from its fills; stored positions and cash
must equal it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from sys import intern
from typing import Any

from openbell.market.bars import MINUTE
from openbell.trading import amounts
from openbell.trading.accounts import PAPER
from openbell.trading.alerts import PRICE_CONDITIONS, AlertState, Type
from openbell.trading.amounts import ZERO
from openbell.trading.book import Book
from openbell.trading.fills import Fill
from openbell.trading.ledger import LedgerEntry, LedgerFault
from openbell.trading.orders import FINAL, MOVES, OrderState, Role, Side
from openbell.trading.rows import from_row

Row = dict[str, Any]
_PARTIES = ("account", "principal", "symbol", "side")
"""Fields that are equal in a fill and its order."""
_ORDER_TERMS = (
    *_PARTIES,
    *("kind", "time_in_force", "placed_at", "spelling", "limit_price", "stop_price", "take_profit", "stop_loss"),
    *("role", "parent", "client_order_id", "expires_at"),
)
"""Fields of an order that never change. The quantity changes only for exits, which follow the fills of their entry."""
_ALERT_TERMS = ("principal", "symbol", "spelling", "interval", "type", "set_at", "threshold", "indicator", "signal")
_WORKING = frozenset({OrderState.OPEN, OrderState.PARTIALLY_FILLED})
"""States in which an order can fill on paper."""
_LARGEST = 60
"""The most digits before or after the decimal point; the product of two amounts has no more."""
_UNREADABLE = (KeyError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError)


@dataclass(slots=True)
class _Order:
    """The fields of an order that later entries are checked against."""

    account: str
    principal: str
    symbol: str
    side: str
    quantity: Decimal
    limit: Decimal | None
    placed_at: float
    state: OrderState
    terms: int
    role: Role
    opening: Decimal
    """The quantity that may still open a position."""
    most: Decimal
    """The largest quantity that it may have; for an exit, the quantity of its entry."""
    filled: Decimal = ZERO
    paid: Decimal = ZERO
    fees: Decimal = ZERO


@dataclass(slots=True)
class _Account:
    broker: str
    terms: tuple[Any, ...]

    @property
    def on_paper(self) -> bool:
        return self.broker == PAPER


class LedgerAudit:
    """Checks the entries of a ledger, one by one from the first."""

    def __init__(self) -> None:
        self.books: dict[str, Book] = {}
        """The book of each account, computed from its fills."""
        self._accounts: dict[str, _Account] = {}
        self._verdicts: dict[str, Row] = {}
        """Verdicts whose order has not followed yet, by order id."""
        self._orders: dict[str, _Order] = {}
        self._ended: set[int] = set()
        """Hashes of the ids of orders and alerts that have ended."""
        self._fills: set[int] = set()
        """Hashes of the ids of all fills."""
        self._unshown: dict[str, int] = {}
        """Orders whose row does not include their last fill yet, with the number of the fill's entry."""
        self._alerts: dict[str, tuple[int, float]] = {}
        self._checks: dict[str, Callable[[Row], Iterator[str]]] = {
            "account": self._account,
            "verdict": self._verdict,
            "order": self._order,
            "fill": self._fill,
            "alert": self._alert,
        }
        self._seq = 0

    def take(self, entry: LedgerEntry) -> list[LedgerFault]:
        """Returns the faults of the next entry."""
        self._seq = entry.seq if type(entry.seq) is int else self._seq + 1
        reasons = []
        try:
            check = self._checks.get(entry.kind)
            if check is None:
                return []
            row = json.loads(entry.body)
            if row[_KEYS[entry.kind]] != entry.key:
                reasons.append(f"entry {self._seq} has the key of {entry.kind} {entry.key} and the content of another")
            reasons.extend(check(row))
        except _UNREADABLE:
            reasons.append(f"entry {self._seq} ({entry.kind} {entry.key}) cannot be read")
        return [LedgerFault(self._seq, reason) for reason in reasons]

    def finish(self) -> list[LedgerFault]:
        """Returns the faults that are certain only after the last entry."""
        return [LedgerFault(seq, f"order {name} does not show its last fill") for name, seq in self._unshown.items()]

    # Accounts and verdicts

    def _account(self, row: Row) -> Iterator[str]:
        name, terms = row["name"], (row["broker"], row["owner"], row["cash"], row["created_at"])
        known = self._accounts.get(name)
        if known is None:
            self._accounts[name] = _Account(row["broker"], terms)
            self.books[name] = Book(_amount(row["cash"]))
        elif known.terms != terms:
            yield f"account {name} has another broker, owner or cash than it began with"

    def _verdict(self, row: Row) -> Iterator[str]:
        self._verdicts[row["order_id"]] = row
        if type(row["valid"]) is not bool:
            yield f"the verdict on order {row['order_id']} is neither valid nor invalid"

    # Orders

    def _order(self, row: Row) -> Iterator[str]:
        name, state = row["id"], OrderState(row["state"])
        quantity = _amount(row["quantity"])
        order = self._orders.get(name)
        if order is None:
            if hash(name) in self._ended:
                yield f"order {name} was written again after its end"
                return
            order = self._orders[name] = _first(row, quantity, state)
            yield from self._exit(name, row, order) if order.role.exit else self._judged(name, row, order)
            if order.account not in self._accounts:
                yield f"order {name} is on the account {order.account}, which does not exist"
        else:
            if hash(tuple(row[each] for each in _ORDER_TERMS)) != order.terms:
                yield f"order {name} has other terms than it was placed with"
            opening = _amount(row["opening"])
            if quantity > order.most or (quantity != order.quantity and not order.role.exit) or opening > order.opening:
                yield f"order {name} is larger, or opens more, than it was placed with"
            if state is not order.state and state not in MOVES[order.state]:
                yield f"order {name} was {order.state} and cannot become {state}"
            order.quantity, order.opening, order.state = quantity, opening, state
        yield from self._shows(name, row, order)
        self._unshown.pop(name, None)
        if state is OrderState.FILLED or (state in FINAL and self._is_on_paper(order.account)):
            del self._orders[name]
            self._ended.add(hash(name))

    def _judged(self, name: str, row: Row, order: _Order) -> Iterator[str]:
        """Check a new order that is not an exit."""
        verdict = self._verdicts.pop(name, None)
        if verdict is None:
            yield f"order {name} was written without a verdict before it"
            return
        judged = ("account", "symbol", "side", "quantity", "opening")
        if other := [each for each in judged if verdict.get(each, row[each]) != row[each]]:
            yield f"order {name} and its verdict differ in {', '.join(other)}"
        if not verdict["valid"] and order.state is not OrderState.REJECTED:
            yield f"order {name} was accepted, and its verdict refuses it"
        if order.state not in {OrderState.OPEN, OrderState.PENDING, OrderState.REJECTED}:
            yield f"order {name} begins as {order.state}"

    def _exit(self, name: str, row: Row, order: _Order) -> Iterator[str]:
        """Check a new exit. It has no verdict; that of its entry applies."""
        entry, suffix = self._orders.get(row["parent"]), "tp" if order.role is Role.TAKE_PROFIT else "sl"
        if entry is None or entry.state in FINAL or entry.role is not Role.ENTRY or name != f"{row['parent']}-{suffix}":
            yield f"order {name} is the exit of an order that does not exist, has ended, or has another"
            return
        order.most = entry.quantity
        same = (order.account, order.principal, order.symbol) == (entry.account, entry.principal, entry.symbol)
        if not same or Side(order.side) is not Side(entry.side).other:
            yield f"order {name} does not close what its entry {row['parent']} opens"
        if order.opening or order.quantity > entry.quantity:
            yield f"order {name} is an exit and could open a position"
        if order.state is not OrderState.HELD:
            yield f"order {name} is an exit and begins as {order.state}"

    @staticmethod
    def _shows(name: str, row: Row, order: _Order) -> Iterator[str]:
        for column in ("filled", "paid", "fees"):
            if _amount(row[column]) != getattr(order, column):
                yield f"order {name} has {column} {row[column]}, and its fills add up to {getattr(order, column)}"
        if order.state is OrderState.FILLED and order.filled != order.quantity:
            yield f"order {name} is filled, but its fills are only {order.filled} of {order.quantity}"

    # Fills

    def _fill(self, row: Row) -> Iterator[str]:
        fill = from_row(Fill, row)
        quantity, price, fee = (_amount(row[column]) for column in ("quantity", "price", "fee"))
        if hash(fill.id) in self._fills:
            yield f"fill {fill.id} was written twice"
        self._fills.add(hash(fill.id))
        if quantity <= 0 or price <= 0:
            yield f"fill {fill.id} has a quantity or a price that is not above zero"
        book = self.books.get(fill.account)
        if book is not None:
            self.books[fill.account] = book.after(fill)
        order = self._orders.get(fill.order_id)
        if order is None:
            gone = "had ended" if hash(fill.order_id) in self._ended else "does not exist"
            yield f"fill {fill.id} is of the order {fill.order_id}, which {gone}"
            return
        if other := [each for each in _PARTIES if row[each] != getattr(order, each)]:
            yield f"fill {fill.id} and its order differ in {', '.join(other)}"
        with amounts.exact():
            order.filled, order.paid, order.fees = (
                order.filled + quantity,
                order.paid + quantity * price,
                order.fees + fee,
            )
        self._unshown[fill.order_id] = self._seq
        if order.filled > order.quantity:
            yield f"fill {fill.id} fills its order beyond its quantity: {order.filled} of {order.quantity}"
        if book is not None and self._is_on_paper(order.account):
            reduced = max(ZERO, -book.quantity(fill.symbol) * fill.side.sign)
            if quantity > reduced + order.opening:
                yield f"fill {fill.id} opens more than its order may"
        yield from self._in_its_bar(fill, order)

    def _in_its_bar(self, fill: Fill, order: _Order) -> Iterator[str]:
        if not self._is_on_paper(order.account):
            if fill.bar is not None or fill.bar_hash is not None:
                yield f"fill {fill.id} is a broker's and names a bar"
            return
        if order.state not in _WORKING:
            yield f"fill {fill.id} happened while its order was {order.state}"
        if fill.bar is None or not fill.bar_hash:
            yield f"fill {fill.id} is on paper and names no bar"
            return
        if fill.bar < order.placed_at:
            yield f"fill {fill.id} is in a bar that opened before its order was placed"
        if fill.at != fill.bar + MINUTE:
            yield f"fill {fill.id} does not have the time of its bar's end"
        if order.limit is not None and (fill.price - order.limit) * fill.side.sign > 0:
            yield f"fill {fill.id} at {fill.price} is worse than the limit {order.limit}"

    def _is_on_paper(self, account: str) -> bool:
        known = self._accounts.get(account)
        return known is None or known.on_paper

    # Alerts

    def _alert(self, row: Row) -> Iterator[str]:
        name, state = row["id"], AlertState(row["state"])
        terms = hash(tuple(row[each] for each in _ALERT_TERMS))
        if hash(name) in self._ended:
            yield f"alert {name} was written again after its end"
            return
        known = self._alerts.setdefault(name, (terms, row["set_at"]))
        if known[0] != terms:
            yield f"alert {name} has other terms than it was set with"
        if state is AlertState.ACTIVE:
            return
        if state is AlertState.FIRED:
            yield from _fired(name, row, known[1])
        del self._alerts[name]
        self._ended.add(hash(name))


_KEYS = {"account": "name", "verdict": "order_id", "order": "id", "fill": "id", "alert": "id"}


def audit(entries: Iterable[LedgerEntry]) -> Iterator[LedgerFault]:
    """Yields the faults of a ledger from its first entry."""
    each = LedgerAudit()
    for entry in entries:
        yield from each.take(entry)
    yield from each.finish()


def _first(row: Row, quantity: Decimal, state: OrderState) -> _Order:
    account, principal, symbol, side = (intern(row[each]) for each in _PARTIES)
    limit = None if row["limit_price"] is None else _amount(row["limit_price"])
    terms = hash(tuple(row[each] for each in _ORDER_TERMS))
    placed_at, role = float(row["placed_at"]), Role(row["role"])
    opening = _amount(row["opening"])
    return _Order(account, principal, symbol, side, quantity, limit, placed_at, state, terms, role, opening, quantity)


def _fired(name: str, row: Row, set_at: float) -> Iterator[str]:
    if not row["bar_hash"]:
        yield f"alert {name} fired and names no bar"
    if row["fired_at"] is None or row["fired_at"] <= set_at:
        yield f"alert {name} fired in a bar that had closed when it was set"
    kind = Type(row["type"])
    if kind.of_price and not PRICE_CONDITIONS[kind].is_reached(row["value"], float(row["threshold"])):
        yield f"alert {name} fired at {row['value']!r}, which does not reach its threshold {row['threshold']}"


@lru_cache(4096)
def _amount(text: Any) -> Decimal:
    """Returns the amount of a row's text; equal texts share one object. Raises `ValueError` if it is not an amount."""
    number = Decimal(text) if isinstance(text, str) else None
    if number is None or not number.is_finite() or (number and not -_LARGEST < number.adjusted() < _LARGEST):
        raise ValueError(text)
    return number
