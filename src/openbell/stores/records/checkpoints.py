"""Accounts at an earlier time, computed from the ledger from the nearest checkpoint on. One is stored every 2,000 entries.

A checkpoint depends on ledger entries only: `openbell verify` computes every checkpoint again and compares.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from sqlalchemy import BindParameter, bindparam, func, insert, select

from openbell.stores.records import progress
from openbell.stores.records.snapshot import View
from openbell.stores.records.tables import checkpoints, ledger
from openbell.trading import amounts
from openbell.trading.book import Book, Position
from openbell.trading.fills import Fill
from openbell.trading.orders import FINAL, Order
from openbell.trading.rows import from_row

EVERY = 2000
"""Ledger entries between two checkpoints."""
_PROGRESS = "checkpoints"
"""The name under which the last checkpoint's entry is stored."""
_KINDS = ("account", "order", "fill")
_ENDED = frozenset(state.value for state in FINAL)
_UNREADABLE = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError)
"""What reading a row raises that is not as it was written."""
_WRONG = "the checkpoint of account {} at entry {} does not follow from the ledger"
_NAME: BindParameter[str] = bindparam("name")
_NEAREST = (
    select(checkpoints.c.seq, checkpoints.c.body)
    .where((checkpoints.c.account == _NAME) & (checkpoints.c.at <= bindparam("until")))
    .order_by(checkpoints.c.seq.desc())
    .limit(1)
)
_NEWEST = select(func.max(ledger.c.seq)).where(ledger.c.at <= bindparam("until"))


@dataclass(slots=True)
class Fold:
    """One account after some entries: its book, and the last entry of each of its working orders."""

    book: Book
    working: dict[str, int] = field(default_factory=dict)

    def take(self, seq: int, kind: str, row: dict[str, Any]) -> None:
        """Apply one entry about this account."""
        if kind == "fill":
            self.book = self.book.after(from_row(Fill, row))
        elif kind == "order" and row["state"] in _ENDED:
            self.working.pop(row["id"], None)
        elif kind == "order":
            self.working[row["id"]] = seq

    def to_row(self) -> dict[str, Any]:
        """The stored form."""
        book = self.book
        return {
            "cash": amounts.text(book.cash),
            "realised": amounts.text(book.realised),
            "fees": amounts.text(book.fees),
            "count": book.count,
            "positions": [
                [p.symbol, amounts.text(p.quantity), amounts.text(p.cost), p.opened_at] for p in book.positions.values()
            ],
            "working": self.working,
        }

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> Fold:
        """The fold of a stored checkpoint."""
        positions = {
            symbol: Position(symbol, Decimal(quantity), Decimal(cost), float(opened))
            for symbol, quantity, cost, opened in row["positions"]
        }
        realised, fees = Decimal(row["realised"]), Decimal(row["fees"])
        return cls(Book(Decimal(row["cash"]), positions, realised, fees, row["count"]), dict(row["working"]))


Folds = dict[str, Fold]


def fold(folds: Folds, rows: Iterable[tuple[int, str, dict[str, Any]]]) -> None:
    """Apply entries (number, kind, row) of any accounts."""
    for seq, kind, row in rows:
        if kind == "account":
            folds.setdefault(row["name"], Fold(Book(Decimal(row["cash"]))))
        elif (known := folds.get(row["account"])) is not None:
            known.take(seq, kind, row)


def account_at(view: View, name: str, cash: Decimal) -> tuple[Fold, list[Order]]:
    """An account at the view's time, computed from the nearest checkpoint on, and its working orders."""
    found = view.execute(_NEAREST, {"name": name, "until": view.until}).first()
    known = Fold.from_row(found.body) if found else Fold(Book(cash))
    last = view.execute(_NEWEST, {"until": view.until}).scalar() or 0
    for seq, kind, row in _entries(view, found.seq if found else 0, last):
        if kind != "account" and row["account"] == name:
            known.take(seq, kind, row)
    return known, _orders(view, known.working.values())


def write_due(view: View, most: int = 5) -> int:
    """Write the checkpoints that are due, at most `most`. Returns how many were written."""
    done = 0
    while done < most and due(view):
        last = _last(view)
        _write(view, last, last + EVERY)
        done += 1
    return done


def mismatches(view: View) -> Iterator[tuple[int, str]]:
    """Checkpoints that differ from the ledger: the number of their entry, and a message."""
    try:
        yield from _wrong(view)
    except _UNREADABLE:  # somebody has edited the database
        yield (
            0,
            "the checkpoints cannot be compared with the ledger: an entry, or one of them, does not hold what it should",
        )


def _wrong(view: View) -> Iterator[tuple[int, str]]:
    last = _last(view)
    folds: Folds = {}
    at = 0.0
    for through in range(EVERY, last + 1, EVERY):
        at = _latest(view, through - EVERY, through, at if folds else 0.0)
        fold(folds, _entries(view, through - EVERY, through))
        rows = view.execute(select(checkpoints).where(checkpoints.c.seq == through))
        kept = {row.account: (row.at, row.body) for row in rows}
        for name in sorted({*kept, *folds}):
            if name not in kept or name not in folds or kept[name] != (at, folds[name].to_row()):
                yield through, _WRONG.format(name, through)
    strays = select(checkpoints.c.account, checkpoints.c.seq).where(
        (checkpoints.c.seq > last) | (checkpoints.c.seq % EVERY != 0)
    )
    for row in view.execute(strays.order_by(checkpoints.c.seq, checkpoints.c.account)):
        yield row.seq, _WRONG.format(row.account, row.seq)


def due(view: View) -> bool:
    """Returns True if `write_due` has something to write."""
    newest = view.execute(select(ledger.c.seq).order_by(ledger.c.seq.desc()).limit(1)).scalar() or 0
    return newest - _last(view) >= EVERY


def _last(view: View) -> int:
    """The entry of the last checkpoint; 0 if there is none."""
    return int(progress.progress(view, _PROGRESS))


def _write(view: View, last: int, through: int) -> None:
    rows = view.execute(select(checkpoints).where(checkpoints.c.seq == last))
    before = {row.account: (row.at, row.body) for row in rows}
    folds = {name: Fold.from_row(body) for name, (_, body) in before.items()}
    fold(folds, _entries(view, last, through))
    at = _latest(view, last, through, max((each for each, _ in before.values()), default=0.0))
    if folds:
        view.execute(
            insert(checkpoints),
            [{"account": name, "seq": through, "at": at, "body": each.to_row()} for name, each in folds.items()],
        )
    progress.set_progress(view, _PROGRESS, through)


def _latest(view: View, after: int, through: int, before: float) -> float:
    """The latest time of some entries and of the checkpoint before them; `before` is 0 if there is none.

    Not the last entry's time: a machine's clock may have been set back, and every entry must count.
    """
    times = view.execute(select(ledger.c.at).where((ledger.c.seq > after) & (ledger.c.seq <= through))).scalars()
    return float(max([*times, before]))


def _entries(view: View, after: int, through: int) -> Iterator[tuple[int, str, dict[str, Any]]]:
    chosen = (ledger.c.seq > after) & (ledger.c.seq <= through) & ledger.c.kind.in_(_KINDS)
    query = select(ledger.c.seq, ledger.c.kind, ledger.c.body).where(chosen)
    if view.until is not None:
        query = query.where(ledger.c.at <= view.until)
    for row in view.execute(query.order_by(ledger.c.seq).execution_options(yield_per=1000)):
        yield row.seq, row.kind, json.loads(row.body)


def _orders(view: View, numbers: Iterable[int]) -> list[Order]:
    wanted, found = list(numbers), list[Order]()
    for start in range(0, len(wanted), 500):
        rows = view.execute(select(ledger.c.body).where(ledger.c.seq.in_(wanted[start : start + 500])))
        found += [from_row(Order, json.loads(row.body)) for row in rows]
    return sorted(found, key=lambda order: (order.placed_at, order.id))
