"""Switches that an operator turns: the halt."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select

from openbell.stores.records import snapshot
from openbell.stores.records.snapshot import View
from openbell.stores.records.tables import switches
from openbell.trading.halt import Halt

HALT = "halt"
_HALTED_SINCE = select(switches.c.at).where((switches.c.name == HALT) & switches.c.reason.is_not(None))
_HALTED = select(switches.c.reason).where(switches.c.name == HALT)
_LAST = select(switches.c.seq, switches.c.reason).where(switches.c.name == HALT)


@dataclass(frozen=True, slots=True)
class Turned:
    """The last ledger entry about the halt; without a reason it has ended the halt."""

    seq: int
    reason: str | None


def halted(view: View) -> Halt | None:
    """Why no position may be opened; None if trading is not halted."""
    if view.until is not None:
        reason = (snapshot.body_at(view, "switch", HALT) or {}).get("reason")
    else:
        reason = view.execute(_HALTED).scalar()
    return None if reason is None else Halt(reason)


def halted_since(view: View) -> float | None:
    """When trading was halted; None if it is not halted."""
    return view.execute(_HALTED_SINCE).scalar()


def last_entry(view: View) -> Turned | None:
    """The last entry about the halt; None if trading was never halted."""
    row = view.execute(_LAST).first()
    return Turned(row.seq, row.reason) if row else None
