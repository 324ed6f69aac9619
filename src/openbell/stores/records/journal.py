"""Writes rows of journaled tables, each together with a ledger entry that holds the same row, and finds newer entries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, TypeVarTuple

from sqlalchemy import Connection, Float, Table, bindparam, case, insert, select, update

from openbell.market.errors import StoreError
from openbell.stores.records.snapshot import View
from openbell.stores.records.tables import JOURNALED, ledger
from openbell.trading.ledger import GENESIS, Head, LedgerEntry, canonical, seal
from openbell.trading.rows import to_row

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
# Built once: building a statement takes longer than running it.
_INSERTS = {kind: insert(table) for kind, (table, _) in JOURNALED.items()}
_UPDATES = {kind: update(table).where(table.c[key] == bindparam("the_key")) for kind, (table, key) in JOURNALED.items()}
_APPEND = insert(ledger)
_FIRST = select(ledger.c.hash).where(ledger.c.seq == 1)
_NEWEST = select(ledger.c.seq, ledger.c.hash).order_by(ledger.c.seq.desc()).limit(1)
_FIRED = '"state":"fired"'
_ALERT_BODY = case((ledger.c.kind == "alert", ledger.c.body), else_=None).label("body")


class LedgerBroken(StoreError):
    """The ledger does not contain the head that was noted: it was cut off or rewritten."""


def in_view(work: Callable[[View, *Ts], T]) -> Callable[[Journal, *Ts], T]:
    """Returns a function that writes without an entry of the ledger, such as progress and leases, for a transaction."""

    def transaction(journal: Journal, *given: *Ts) -> T:
        return work(journal.view, *given)

    return transaction


class Journal:
    """One write transaction."""

    def __init__(self, connection: Connection, at: float, noted: Head | None = None, *, by_event: bool = False) -> None:
        """`noted` is the newest head that this process has noted. Raises `LedgerBroken` if the ledger lacks it.

        With `by_event`, as in scenarios, an entry has the time of its event, at most `at`; otherwise it has the time `at`.
        """
        self.connection = connection
        self.view = View(connection)
        self.at = at
        self._by_event = by_event
        self._entries: list[LedgerEntry] = []
        self._failed = False
        self.found = self._head = head_of(connection)
        """Where the ledger ended when this transaction began."""
        if noted is not None and not contains(connection, self._head, noted):
            raise LedgerBroken(
                f"the ledger ends at entry {self._head.seq}, and entry {noted.seq} is not the one that was noted: it was "
                "cut or rewritten. Nothing is written to it; openbell verify shows the differences"
            )

    @property
    def seq(self) -> int:
        """The number of the last entry."""
        return self._head.seq

    def put(self, kind: str, value: Any, *, new: bool = False, happened: float | None = None) -> int:
        """Write a row and its entry. `new`: the row cannot exist yet. Returns the entry's number."""
        table, key = JOURNALED[kind]
        row = _as_stored(table, value if isinstance(value, dict) else to_row(value))
        seq = self.note(kind, str(row[key]), row, happened)
        stored = {**row, "seq": seq}
        try:
            if not new:
                changed = self.connection.execute(_UPDATES[kind], {**stored, "the_key": row[key]})
                if changed.rowcount:
                    return seq
            self.connection.execute(_INSERTS[kind], stored)
        except BaseException:
            self._failed = True
            raise
        return seq

    def note(self, kind: str, key: str, body: Any, happened: float | None = None) -> int:
        """Write an entry without a row. Returns its number."""
        at = min(self.at, happened) if self._by_event and happened is not None else self.at
        entry = seal(self._head.seq + 1, at, kind, key, canonical(body), self._head.hash)
        self._entries.append(entry)
        self._head = Head(entry.seq, entry.hash)
        return entry.seq

    def finish(self) -> Head:
        """Insert the entries into the ledger. Returns the new head. Raises `StoreError` if a row could not be written."""
        if self._failed:
            raise StoreError("a row could not be written, so nothing was: its entry would have no row")
        if not self._entries:
            return self._head
        names = LedgerEntry.__dataclass_fields__
        rows = [{name: getattr(entry, name) for name in names} for entry in self._entries]
        self.connection.execute(_APPEND, rows)
        return self._head


def head_of(connection: Connection) -> Head:
    """The number and hash of the last entry."""
    row = connection.execute(_NEWEST).first()
    return Head(row.seq, row.hash) if row else Head(0, GENESIS)


def name_of(connection: Connection) -> str:
    """The name of a ledger: the beginning of its first entry's hash; empty if it has no entry."""
    return str(connection.execute(_FIRST).scalar() or "").partition(":")[2][:8]


def contains(connection: Connection, newest: Head, noted: Head) -> bool:
    """Returns True if the ledger that ends with `newest` contains a head that was noted."""
    if newest == noted or not noted.seq:
        return True
    found = connection.execute(select(ledger.c.hash).where(ledger.c.seq == noted.seq)).scalar()
    return bool(found == noted.hash)


def _as_stored(table: Table, row: dict[str, Any]) -> dict[str, Any]:
    """The row as it will be read back, because its hash must fit: float columns turn 1 into 1.0 and −0.0 into 0.0."""
    numbers = {
        name: float(value) + 0.0
        for name, value in row.items()
        if value is not None and name in table.c and isinstance(table.c[name].type, Float)
    }
    return {**row, **numbers}


@dataclass(frozen=True, slots=True)
class LedgerChanges:
    """The entries after some entry, as far as a view shows them."""

    seq: int
    """The entry after which to look next."""
    complete: bool
    """Whether the view shows all of them; otherwise its clock has not reached the rest."""
    kinds: frozenset[str]
    fired: bool
    """Whether an alert has fired."""


def newest(view: View) -> int:
    """Returns the number of the newest entry."""
    return head_of(view.connection).seq


def changes_after(view: View, seq: int) -> LedgerChanges:
    """Returns the kinds of the entries after `seq`."""
    query = select(ledger.c.seq, ledger.c.at, ledger.c.kind, _ALERT_BODY).where(ledger.c.seq > seq)
    rows = view.execute(query.order_by(ledger.c.seq)).all()
    shown = [row for row in rows if view.until is None or row.at <= view.until]
    hidden = [row.seq for row in rows if view.until is not None and row.at > view.until]
    last = max((row.seq for row in rows), default=min(seq, newest(view)))
    return LedgerChanges(
        min(hidden) - 1 if hidden else last,
        not hidden,
        frozenset(row.kind for row in shown),
        any(_FIRED in (row.body or "") for row in shown),
    )
