"""A ledger with entries of every kind, made by the real code, and a list of forgeries that the audit must find."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from openbell.market.bars import Bars
from openbell.trading.accounts import Account
from openbell.trading.alerts import Alert, AlertState, Type
from openbell.trading.amounts import ZERO
from openbell.trading.costs import Costs
from openbell.trading.fills import Fill, fill_of
from openbell.trading.ledger import GENESIS, LedgerEntry, canonical, seal
from openbell.trading.orders import Order, OrderState, Role, exits_of
from openbell.trading.rows import to_row
from tests.trading.matching import match
from tests.trading.samples import BUY, SELL, START, D, limit, minutes, order

NOON = START + 3600.0


@dataclass
class Line:
    """An entry before it gets its hash; tests may change its row."""

    kind: str
    row: dict[str, Any]

    @property
    def key(self) -> str:
        name = {"account": "name", "verdict": "order_id"}.get(self.kind, "id")
        return str(self.row[name])


Lines = list[Line]


def bars() -> Bars:
    """Returns three minutes around 100; two of them have little volume."""
    return minutes([(100.0, 101.0, 99.8, 1e6), (100.0, 100.5, 98.0, 30.0), (99.0, 99.9, 98.5, 10.0)])


def verdict(of: Order, valid: bool = True) -> Line:
    row = to_row(of)
    same = {name: row[name] for name in ("account", "symbol", "side", "quantity", "opening")}
    return Line("verdict", {"order_id": of.id, "valid": valid, **same})


def written(*changes: Order | Fill | Account | Alert) -> Lines:
    kinds = {Order: "order", Fill: "fill", Account: "account", Alert: "alert"}
    return [Line(kinds[type(each)], to_row(each)) for each in changes]


def _on_paper() -> Lines:
    """Returns a bracket that fills, a limit order that fills in parts, a refused order and a cancelled one."""
    entry = order("a", BUY, "10", role=Role.ENTRY, take_profit="120", stop_loss="80")
    exits = exits_of(entry)
    resting = limit("b", BUY, "5", "99.5")
    refused = replace(order("c", BUY, "999"), state=OrderState.REJECTED, reason="too large")
    gone = limit("e", BUY, "1", "50")
    placed = [verdict(entry), *written(entry, *exits), verdict(resting), *written(resting)]
    placed += [verdict(refused, valid=False), *written(refused), verdict(gone), *written(gone)]
    changes = match([entry, *exits, resting], bars().between(START, START + 180), ZERO, START + 180, Costs())
    return [*placed, *written(*changes, gone.to(OrderState.CANCELLED, NOON))]


def _at_a_broker() -> Lines:
    """Returns an order whose last fill the broker reports after its end."""
    one = replace(order("d", SELL, "6", state=OrderState.PENDING), account="live")
    first = fill_of(one, "d-x1", D(2), D("99.5"), START + 7.25, fee=D("0.01"))
    late = fill_of(one, "d-x2", D(1), D("99.4"), START + 7.5)
    part = one.with_fill(D(2), D("99.5"), D("0.01"), START + 8.0)
    ended = part.to(OrderState.CANCELLED, START + 9.0)
    more = replace(ended, filled=D(3), paid=ended.paid + D("99.4"), updated_at=START + 10.0)
    return [verdict(one), *written(one, first, part, ended, late, more)]


def _alerts() -> Lines:
    set_one = Alert("x", "me", "BTC/USD", "BTCUSD", "1m", Type.PRICE_ABOVE, float(START), D("100.5"))
    fired = replace(set_one, state=AlertState.FIRED, fired_at=START + 60.0, value=101.0, bar_hash="c" * 64)
    other = Alert("y", "me", "BTC/USD", "BTCUSD", "1m", Type.PRICE_BELOW, float(START), D(5))
    return written(set_one, other, fired, replace(other, state=AlertState.CANCELLED))


def honest() -> Lines:
    """Returns all entries."""
    paper = Account("paper", "paper", "me", D(100_000), None, 1.0)
    renewed = replace(paper, token="f" * 64)
    live = Account("live", "alpaca", "me", D(5000), None, 1.0)
    told = {"id": "d1", "principal": "me", "symbol": "AAPL", "action": "hold", "confidence": 0.5, "created_at": NOON}
    decision = Line("decision", {**told, "opportunity_score": None, "reasoning": "because", "tool_calls": None})
    return [*written(paper, live), *_on_paper(), *written(renewed), *_at_a_broker(), *_alerts(), decision]


def sealed(lines: Iterable[Line]) -> list[LedgerEntry]:
    """Returns the entries of a chain with correct hashes."""
    entries: list[LedgerEntry] = []
    prev = GENESIS
    for seq, line in enumerate(lines, 1):
        entries.append(seal(seq, NOON, line.kind, line.key, canonical(line.row), prev))
        prev = entries[-1].hash
    return entries


# Forgeries


def of(lines: Lines, kind: str, key: str, number: int = 0) -> Line:
    """Returns one entry of a kind and key."""
    return [line for line in lines if (line.kind, line.key) == (kind, key)][number]


def change(kind: str, key: str, number: int = 0, **values: Any) -> Callable[[Lines], None]:
    """Returns a change of values in one entry."""
    return lambda lines: of(lines, kind, key, number).row.update(values)


def change_all(kind: str, key: str, **values: Any) -> Callable[[Lines], None]:
    """Returns a change of values in every entry of a kind and key."""

    def work(lines: Lines) -> None:
        for line in lines:
            if (line.kind, line.key) == (kind, key):
                line.row.update(values)

    return work


def drop(kind: str, key: str, number: int = 0) -> Callable[[Lines], None]:
    """Returns the removal of one entry."""

    def work(lines: Lines) -> None:
        found = of(lines, kind, key, number)
        lines[:] = [line for line in lines if line is not found]

    return work


def add(kind: str, key: str, number: int = -1, **values: Any) -> Callable[[Lines], None]:
    """Returns the addition of a changed copy of an entry at the end."""

    def work(lines: Lines) -> None:
        row = json.loads(json.dumps(of([line for line in lines if line.key == key], kind, key, number).row))
        lines.append(Line(kind, {**row, **values}))

    return work


def both(*changes: Callable[[Lines], None]) -> Callable[[Lines], None]:
    """Returns a change that makes several changes."""

    def work(lines: Lines) -> None:
        for each in changes:
            each(lines)

    return work


def fills_of(key: str) -> list[str]:
    """Returns the ids of the fills of an order."""
    return [line.key for line in honest() if line.kind == "fill" and line.row["order_id"] == key]


A, B = fills_of("a")[0], fills_of("b")[0]
FORGERIES: dict[str, tuple[Callable[[Lines], None], str]] = {
    # Fills and their orders
    "a fill of no order": (
        add("fill", B, id="z-1", order_id="z"),
        "fill z-1 is of the order z, which does not exist",
    ),
    "a fill of an order that was filled": (
        add("fill", A, id="a-9"),
        "fill a-9 is of the order a, which had ended",
    ),
    "a fill of an order that was cancelled": (add("fill", A, id="e-9", order_id="e"), "the order e, which had ended"),
    "a fill on another account": (change("fill", A, account="other"), f"fill {A} and its order differ in account"),
    "a fill of another principal": (change("fill", A, principal="eve"), "and its order differ in principal"),
    "a fill in another symbol": (change("fill", A, symbol="ETH/USD"), "and its order differ in symbol"),
    "a fill on the other side": (change("fill", A, side="sell"), "and its order differ in side"),
    "a fill beyond the quantity": (change("fill", B, quantity="5.5"), f"fill {B} fills its order beyond its quantity"),
    "a fill that was counted twice": (add("fill", B), f"fill {B} was written twice"),
    "a fill of nothing": (change("fill", B, quantity="0"), "a quantity or a price that is not above zero"),
    "a fill for nothing": (change("fill", B, price="0"), "a quantity or a price that is not above zero"),
    "a fill backwards": (change("fill", B, quantity="-1"), "a quantity or a price that is not above zero"),
    "a fill that its order does not show": (
        add("fill", B, id="b-9", quantity="0.5"),
        "order b does not show its last fill",
    ),
    "more filled than the fills": (
        change("order", "b", -1, filled="5"),
        "order b has filled 5, and its fills add up to",
    ),
    "less paid than the fills": (change("order", "b", -1, paid="1"), "order b has paid 1, and its fills add up to"),
    "no fees": (change("order", "b", -1, fees="0"), "order b has fees 0, and its fills add up to"),
    "an order that begins with fills": (
        change("order", "b", filled="1"),
        "order b has filled 1, and its fills add up to 0",
    ),
    "an order that is filled and is not": (
        change("order", "d", 1, state="filled"),
        "order d is filled, but its fills are only 2 of 6",
    ),
    # Fills on paper and their bars
    "a fill before the order": (
        both(change("fill", A, bar=START - 60), change("fill", A, at=float(START))),
        f"fill {A} is in a bar that opened before its order was placed",
    ),
    "a fill known too early": (change("fill", A, at=START + 1.0), f"fill {A} does not have the time of its bar's end"),
    "a fill above its limit": (change("fill", B, price="99.6"), f"fill {B} at 99.6 is worse than the limit 99.5"),
    "a fill below its limit": (
        add("fill", A, id="a-tp-9", order_id="a-tp", side="sell", price="110", quantity="1"),
        "fill a-tp-9 at 110 is worse than the limit 120",
    ),
    "a fill on paper without a bar": (
        change("fill", A, bar=None, bar_hash=None),
        f"fill {A} is on paper and names no bar",
    ),
    "a fill on paper without a hash": (change("fill", A, bar_hash=None), f"fill {A} is on paper and names no bar"),
    "a fill of what is held": (
        both(
            add("fill", A, id="a-tp-9", order_id="a-tp", side="sell"),
            lambda lines: lines.insert(lines.index(of(lines, "order", "a-tp")) + 1, lines.pop()),
        ),
        "fill a-tp-9 happened while its order was held",
    ),
    "a fill that opens too much": (
        both(change_all("order", "b", opening="1"), change("verdict", "b", opening="1")),
        f"fill {B} opens more than its order may",
    ),
    "a broker's fill with a bar": (change("fill", "d-x1", bar=START), "fill d-x1 is a broker's and names a bar"),
    "a broker's fill with a hash": (change("fill", "d-x2", bar_hash="f" * 64), "is a broker's and names a bar"),
    # Orders
    "an order without a verdict": (drop("verdict", "b"), "order b was written without a verdict before it"),
    "an order whose verdict comes later": (
        lambda lines: lines.append(lines.pop(lines.index(of(lines, "verdict", "b")))),
        "order b was written without a verdict before it",
    ),
    "an order that was refused": (
        change("order", "c", state="open"),
        "order c was accepted, and its verdict refuses it",
    ),
    "another size than was judged": (
        change("verdict", "b", quantity="1"),
        "order b and its verdict differ in quantity",
    ),
    "another symbol than was judged": (
        change("verdict", "b", symbol="AAPL"),
        "order b and its verdict differ in symbol",
    ),
    "a verdict that says nothing": (
        change("verdict", "b", valid="yes"),
        "the verdict on order b is neither valid nor invalid",
    ),
    "an order that begins in the middle": (change("order", "d", state="cancelling"), "order d begins as cancelling"),
    "a state that cannot follow": (add("order", "d", state="open"), "order d was cancelled and cannot become open"),
    "an order that comes back": (add("order", "e", state="open"), "order e was written again after its end"),
    "another side": (change("order", "b", -1, side="sell"), "order b has other terms than it was placed with"),
    "another limit": (change("order", "b", -1, limit_price="99.9"), "order b has other terms than it was placed with"),
    "another owner": (change("order", "b", -1, principal="eve"), "order b has other terms than it was placed with"),
    "an earlier order": (change("order", "b", -1, placed_at=1.0), "order b has other terms than it was placed with"),
    "a larger order": (change("order", "b", -1, quantity="6"), "order b is larger, or opens more"),
    "an order that opens more": (change("order", "a", -1, opening="11"), "order a is larger, or opens more"),
    "an account that does not exist": (
        both(change_all("order", "e", account="ghost"), change("verdict", "e", account="ghost")),
        "order e is on the account ghost, which does not exist",
    ),
    # Exits, which have no verdict
    "an exit of nothing": (
        change_all("order", "a-tp", parent="z"),
        "order a-tp is the exit of an order that does not exist",
    ),
    "a second target": (add("order", "a-tp", 0, id="a-tp2"), "order a-tp2 is the exit of an order"),
    "an exit of what is no bracket": (
        add("order", "a-tp", 0, id="b-tp", parent="b"),
        "order b-tp is the exit of an order",
    ),
    "an exit of what has ended": (
        both(change_all("order", "d", role="entry"), add("order", "a-tp", 0, id="d-tp", parent="d", account="live")),
        "order d-tp is the exit of an order that does not exist, has ended",
    ),
    "an exit on the same side": (
        change_all("order", "a-tp", side="buy"),
        "order a-tp does not close what its entry a opens",
    ),
    "an exit in another symbol": (change_all("order", "a-tp", symbol="X"), "order a-tp does not close what its entry"),
    "an exit that opens": (change("order", "a-tp", opening="1"), "order a-tp is an exit and could open a position"),
    "an exit that is too large": (change("order", "a-tp", quantity="11"), "order a-tp is an exit and could open"),
    "an exit that grows": (change("order", "a-sl", -1, quantity="11"), "order a-sl is larger, or opens more"),
    "an exit that is not held": (change("order", "a-tp", state="open"), "order a-tp is an exit and begins as open"),
    # Accounts and alerts
    "more cash": (change("account", "paper", -1, cash="200000"), "account paper has another broker, owner or cash"),
    "another broker": (
        change("account", "paper", -1, broker="alpaca"),
        "account paper has another broker, owner or cash",
    ),
    "an alert that fired without a bar": (change("alert", "x", -1, bar_hash=None), "alert x fired and names no bar"),
    "an alert that fired too early": (
        change("alert", "x", -1, fired_at=float(START)),
        "alert x fired in a bar that had closed when it was set",
    ),
    "an alert that was not reached": (
        change("alert", "x", -1, value=100.25),
        "alert x fired at 100.25, which does not reach its threshold 100.5",
    ),
    "an alert that fired twice": (add("alert", "x"), "alert x was written again after its end"),
    "an alert that comes back": (add("alert", "y", 0), "alert y was written again after its end"),
    "another threshold": (change("alert", "x", -1, threshold="90"), "alert x has other terms than it was set with"),
    # Rows that cannot be read
    "a quantity that is none": (change("fill", B, quantity="many"), f"(fill {B}) cannot be read"),
    "a number beyond sense": (change("fill", B, quantity="1e999999"), f"(fill {B}) cannot be read"),
    "not a number": (change("order", "b", -1, paid="NaN"), "(order b) cannot be read"),
    "a state that is none": (change("order", "b", -1, state="lucky"), "(order b) cannot be read"),
    "a column less": (lambda lines: of(lines, "order", "b").row.pop("side"), "(order b) cannot be read"),
}
"""By name, a change of an honest ledger, whose hashes are then computed again, and the fault that the audit must report."""
