"""How far the engine has looked, and switches that an operator turns."""

from __future__ import annotations

from sqlalchemy import Connection, insert, select, update

from openbell.stores.records.tables import marks, switches

HALT = "halt"
_HALTED = select(switches.c.reason).where(switches.c.name == HALT)


def mark(connection: Connection, name: str) -> float:
    """How far something was looked at; 0 if not at all."""
    return float(connection.execute(select(marks.c.until).where(marks.c.name == name)).scalar() or 0.0)


def set_mark(connection: Connection, name: str, until: float) -> None:
    """Note how far."""
    if not connection.execute(update(marks).where(marks.c.name == name), {"until": until}).rowcount:
        connection.execute(insert(marks), {"name": name, "until": until})


def halted(connection: Connection) -> str | None:
    """Why nothing may be opened; None if it may."""
    return connection.execute(_HALTED).scalar()
