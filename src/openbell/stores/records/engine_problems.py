"""Failures that keep the engine from some of its work, for `openbell doctor`. Not part of the ledger."""

from __future__ import annotations

from sqlalchemy import delete, insert, select, update

from openbell.stores.records.snapshot import View
from openbell.stores.records.tables import troubles


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
