"""How far the engine has looked, and switches that an operator turns."""

from __future__ import annotations

from sqlalchemy import delete, insert, select, update

from openbell.stores.records import past
from openbell.stores.records.tables import marks, switches, troubles
from openbell.stores.records.view import View

HALT = "halt"
_HALTED = select(switches.c.reason).where(switches.c.name == HALT)


def mark(view: View, name: str) -> float:
    """How far something was looked at; 0 if not at all."""
    return float(view.execute(select(marks.c.until).where(marks.c.name == name)).scalar() or 0.0)


def set_mark(view: View, name: str, until: float) -> None:
    """Note how far."""
    if not view.execute(update(marks).where(marks.c.name == name), {"until": until}).rowcount:
        view.execute(insert(marks), {"name": name, "until": until})


def marked(view: View, prefix: str) -> dict[str, float]:
    """How far all things were looked at whose names begin alike, by the rest of the name."""
    rows = view.execute(select(marks).where(marks.c.name.startswith(prefix, autoescape=True)))
    return {row.name.removeprefix(prefix): row.until for row in rows}


def halted(view: View) -> str | None:
    """Why nothing may be opened; None if it may."""
    if view.until is not None:
        return (past.version(view, "switch", HALT) or {}).get("reason")
    return view.execute(_HALTED).scalar()


def troubled(view: View) -> dict[str, tuple[float, str]]:
    """What keeps the engine from its work: since when, and why."""
    return {row.name: (row.since, row.reason) for row in view.execute(select(troubles).order_by(troubles.c.name))}


def set_trouble(view: View, name: str, since: float, reason: str | None) -> None:
    """Note what keeps the engine from something; None: nothing does any more."""
    if reason is None:
        view.execute(delete(troubles).where(troubles.c.name == name))
    elif not view.execute(update(troubles).where(troubles.c.name == name), {"reason": reason}).rowcount:
        view.execute(insert(troubles), {"name": name, "since": since, "reason": reason})
