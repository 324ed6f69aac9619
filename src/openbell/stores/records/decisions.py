"""Queries about decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import func, select

from openbell.stores.records.tables import decisions
from openbell.stores.records.view import View


def recent(
    view: View,
    principal: str,
    limit: int,
    offset: int,
    symbol: str | None,
    action: str | None,
) -> tuple[list[Mapping[str, Any]], int]:
    """A page of a principal's decisions, latest first, and how many there are in total."""
    wanted = decisions.c.principal == principal
    if view.until is not None:
        wanted &= decisions.c.created_at <= view.until  # a decision is written once, at that time
    if symbol is not None:
        wanted &= decisions.c.symbol == symbol
    if action is not None:
        wanted &= decisions.c.action == action
    total = view.execute(select(func.count()).select_from(decisions).where(wanted)).scalar_one()
    newest = select(decisions).where(wanted).order_by(decisions.c.created_at.desc(), decisions.c.seq.desc())
    rows = view.execute(newest.limit(limit).offset(offset))
    return [row._asdict() for row in rows], int(total)
