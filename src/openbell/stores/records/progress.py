"""How far the engine has processed something, by name: a time or a ledger entry. Not part of the ledger.

The table is called `marks`.
"""

from __future__ import annotations

from sqlalchemy import insert, select, update

from openbell.stores.records.snapshot import View
from openbell.stores.records.tables import marks


def progress(view: View, name: str) -> float:
    """How far something was processed; 0 if it was not."""
    return float(view.execute(select(marks.c.until).where(marks.c.name == name)).scalar() or 0.0)


def set_progress(view: View, name: str, until: float) -> None:
    """Store how far something was processed."""
    if not view.execute(update(marks).where(marks.c.name == name), {"until": until}).rowcount:
        view.execute(insert(marks), {"name": name, "until": until})


def all_progress(view: View, prefix: str) -> dict[str, float]:
    """The progress of everything whose name starts with `prefix`, by the rest of the name."""
    rows = view.execute(select(marks).where(marks.c.name.startswith(prefix, autoescape=True)))
    return {row.name.removeprefix(prefix): row.until for row in rows}
