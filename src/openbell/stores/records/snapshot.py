"""What a transaction sees of the records: everything, or what had been written by a time.

Query functions take a `View` instead of a connection. Functions that only engines and writers call may ignore `until`:
their views have none.

The ledger holds every version of every row, with the time of its writing. Entries are chosen by their time and not by their
number, because a machine's clock may have been set back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import BindParameter, Connection, CursorResult, Dialect, Executable, bindparam, func, select

from openbell.stores.records.tables import ledger

_UNTIL: BindParameter[float] = bindparam("until")
_NEWEST = (
    select(ledger.c.body)
    .where((ledger.c.kind == bindparam("kind")) & (ledger.c.key == bindparam("key")) & (ledger.c.at <= _UNTIL))
    .order_by(ledger.c.seq.desc())
    .limit(1)
)
_LATER = select(ledger.c.at).where(ledger.c.at > _UNTIL).limit(1)
_LAST = select(func.max(ledger.c.at))
_CHUNK = 500


@dataclass(frozen=True, slots=True)
class View:
    """A connection inside a transaction, and the time up to which ledger entries are seen."""

    connection: Connection
    until: float | None = None
    """Epoch seconds; None if every entry is seen."""
    by_event: bool = False
    """True if entries have the time of their event, as in scenarios; False if they have the time of their writing."""

    @property
    def dialect(self) -> Dialect:
        """The database's dialect."""
        return self.connection.dialect

    def execute(
        self, statement: Executable, parameters: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None
    ) -> CursorResult[Any]:
        """Run a statement."""
        return self.connection.execute(statement, parameters)


def is_behind(view: View, moment: float) -> bool:
    """Returns True if the ledger has an entry that is later than a time."""
    return view.execute(_LATER, {"until": moment}).first() is not None


def last_moment(view: View) -> float:
    """The time of the latest entry; 0 if there is none."""
    return float(view.execute(_LAST).scalar() or 0.0)


def body_at(view: View, kind: str, key: str) -> dict[str, Any] | None:
    """The body of the last entry of a kind and key at the view's time; None if there was none."""
    body = view.execute(_NEWEST, {"kind": kind, "key": key, "until": view.until}).scalar()
    return None if body is None else cast("dict[str, Any]", json.loads(body))


def bodies_at(view: View, kind: str, keys: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The same for many keys; keys without an entry at that time are left out."""
    wanted, found = list(keys), dict[str, dict[str, Any]]()
    for start in range(0, len(wanted), _CHUNK):
        chosen = (
            (ledger.c.kind == kind) & ledger.c.key.in_(wanted[start : start + _CHUNK]) & (ledger.c.at <= view.until)
        )
        newest = select(func.max(ledger.c.seq)).where(chosen).group_by(ledger.c.key).scalar_subquery()
        rows = view.execute(select(ledger.c.key, ledger.c.body).where(ledger.c.seq.in_(newest)))
        found |= {row.key: json.loads(row.body) for row in rows}
    return found
