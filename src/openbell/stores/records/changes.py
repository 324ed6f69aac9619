"""What was recorded since a ledger entry: the kinds of the newer entries."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import case, select

from openbell.stores.records.journal import head_of
from openbell.stores.records.snapshot import View
from openbell.stores.records.tables import ledger

_FIRED = '"state":"fired"'
_ALERT_BODY = case((ledger.c.kind == "alert", ledger.c.body), else_=None).label("body")


@dataclass(frozen=True, slots=True)
class Changes:
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


def changes_after(view: View, seq: int) -> Changes:
    """Returns the kinds of the entries after `seq`."""
    query = select(ledger.c.seq, ledger.c.at, ledger.c.kind, _ALERT_BODY).where(ledger.c.seq > seq)
    rows = view.execute(query.order_by(ledger.c.seq)).all()
    shown = [row for row in rows if view.until is None or row.at <= view.until]
    hidden = [row.seq for row in rows if view.until is not None and row.at > view.until]
    last = max((row.seq for row in rows), default=min(seq, newest(view)))
    return Changes(
        min(hidden) - 1 if hidden else last,
        not hidden,
        frozenset(row.kind for row in shown),
        any(_FIRED in (row.body or "") for row in shown),
    )
