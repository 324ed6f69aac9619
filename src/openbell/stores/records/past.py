"""Rows as they were: the ledger holds every version of every row, with the time at which it was written.

An entry counts if its time is not after the view's moment. Entries follow each other in time, but for a machine whose
clock was set back; so it is the time that decides, not the place in the chain.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, cast

from sqlalchemy import BindParameter, bindparam, func, select

from openbell.stores.records.tables import ledger
from openbell.stores.records.view import View

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


def is_behind(view: View, moment: float) -> bool:
    """Returns True if the ledger has an entry that was written after a moment."""
    return view.execute(_LATER, {"until": moment}).first() is not None


def last_moment(view: View) -> float:
    """When the latest entry was written; 0 if there is none."""
    return float(view.execute(_LAST).scalar() or 0.0)


def version(view: View, kind: str, key: str) -> dict[str, Any] | None:
    """A row, or an entry without a row, as it was last written by the view's moment; None if it was not yet."""
    body = view.execute(_NEWEST, {"kind": kind, "key": key, "until": view.until}).scalar()
    return None if body is None else cast("dict[str, Any]", json.loads(body))


def versions(view: View, kind: str, keys: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The same of many keys at once; those that were not written yet are left out."""
    wanted, found = list(keys), dict[str, dict[str, Any]]()
    for start in range(0, len(wanted), _CHUNK):
        chosen = (
            (ledger.c.kind == kind) & ledger.c.key.in_(wanted[start : start + _CHUNK]) & (ledger.c.at <= view.until)
        )
        newest = select(func.max(ledger.c.seq)).where(chosen).group_by(ledger.c.key).scalar_subquery()
        rows = view.execute(select(ledger.c.key, ledger.c.body).where(ledger.c.seq.in_(newest)))
        found |= {row.key: json.loads(row.body) for row in rows}
    return found
