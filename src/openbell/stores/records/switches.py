"""Switches that an operator turns: the halt."""

from __future__ import annotations

from sqlalchemy import select

from openbell.stores.records import past
from openbell.stores.records.tables import switches
from openbell.stores.records.view import View

HALT = "halt"
_HALTED_SINCE = select(switches.c.at).where((switches.c.name == HALT) & switches.c.reason.is_not(None))
_HALTED = select(switches.c.reason).where(switches.c.name == HALT)


def halted(view: View) -> str | None:
    """Why no position may be opened; None if trading is not halted."""
    if view.until is not None:
        return (past.body_at(view, "switch", HALT) or {}).get("reason")
    return view.execute(_HALTED).scalar()


def halted_since(view: View) -> float | None:
    """When trading was halted; None if it is not halted."""
    return view.execute(_HALTED_SINCE).scalar()
