"""The engine's progress, and the failures that keep it from some of its work. Neither is part of the ledger.

How far something was processed is a time or the number of a ledger entry, by name, in the table `marks`.
"""

from __future__ import annotations

from sqlalchemy import delete, insert, select, update

from openbell.stores.records.snapshot import View
from openbell.stores.records.tables import marks, troubles


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


def trouble_of(account: str, symbol: str = "") -> str:
    """Returns the name of a trouble: an account cannot be advanced, or the bars of a symbol that it needs cannot be read."""
    return f"{account} {symbol}"


def account_of(name: str) -> str:
    """Returns the account of a trouble. Symbols have no blanks; names of accounts may."""
    return name.rpartition(" ")[0]


def all_troubles(view: View) -> dict[str, tuple[float, str]]:
    """Every current trouble by its name: since when it lasts, and its reason."""
    return {row.name: (row.since, row.reason) for row in view.execute(select(troubles).order_by(troubles.c.name))}


def set_trouble(view: View, name: str, since: float, reason: str | None) -> None:
    """Store a trouble, or remove it if `reason` is None. A known trouble keeps its `since`."""
    if reason is None:
        view.execute(delete(troubles).where(troubles.c.name == name))
    elif not view.execute(update(troubles).where(troubles.c.name == name), {"reason": reason}).rowcount:
        view.execute(insert(troubles), {"name": name, "since": since, "reason": reason})
