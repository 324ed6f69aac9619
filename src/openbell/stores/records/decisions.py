"""Queries about decisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Text, cast, func, select

from openbell.stores.records.snapshot import View
from openbell.stores.records.tables import decisions


def recent(
    view: View,
    principal: str,
    limit: int,
    offset: int,
    symbol: str | None,
    action: str | None,
) -> tuple[list[Mapping[str, Any]], int]:
    """A page of a principal's decisions, latest first, and how many there are in total.

    Without `tool_calls`, which no result shows: a page of them may have 25 MB, and reading it would stop all threads.
    """
    wanted = decisions.c.principal == principal
    if view.until is not None:
        wanted &= decisions.c.created_at <= view.until  # a decision is written once, at that time
    if symbol is not None:
        wanted &= decisions.c.symbol == symbol
    if action is not None:
        wanted &= decisions.c.action == action
    total = view.execute(select(func.count()).select_from(decisions).where(wanted)).scalar_one()
    shown = [column for column in decisions.c if column is not decisions.c.tool_calls]
    newest = select(*shown).where(wanted).order_by(decisions.c.created_at.desc(), decisions.c.seq.desc())
    rows = view.execute(newest.limit(limit).offset(offset))
    return [row._asdict() for row in rows], int(total)


@dataclass(frozen=True, slots=True)
class Kept:
    """How many decisions a principal has, their size in characters, and the number of the newest."""

    count: int = 0
    size: int = 0
    seq: int = 0


def kept(view: View, principal: str, known: Kept) -> Kept:
    """Returns what a principal keeps. Only decisions after the newest of `known` are read."""
    calls = func.coalesce(func.length(cast(decisions.c.tool_calls, Text)), 0)
    size = func.sum(func.length(decisions.c.reasoning) + calls)
    new = (decisions.c.principal == principal) & (decisions.c.seq > known.seq)
    found = select(func.count().label("total"), size.label("size"), func.max(decisions.c.seq).label("newest"))
    row = view.execute(found.where(new)).one()
    return Kept(known.count + int(row.total), known.size + int(row.size or 0), int(row.newest or known.seq))
