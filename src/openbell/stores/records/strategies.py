"""Queries about strategy specs, implementations, signals, consensus and figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, delete, insert, select

from openbell.stores.records import snapshot
from openbell.stores.records.journal import Journal
from openbell.stores.records.snapshot import View
from openbell.stores.records.tables import (
    consensuses,
    implementations,
    performance,
    searches,
    signals,
    specs,
)
from openbell.strategies.implementations import Implementation, ImplementationStatus
from openbell.trading.rows import from_row

_ACTIVE = tuple(each.value for each in ImplementationStatus if each.active)
_CHUNK = 500
EVERYONE = ""
"""The principal of canonical specs and their implementations."""
Costs = Sequence[float]
"""Fee and slippage as shares. Strategies that were found with other costs are not seen."""


# Specs


def specs_of(view: View, principal: str) -> list[Mapping[str, Any]]:
    """The specs that a principal has submitted, oldest first."""
    wanted = specs.c.principal == principal
    if view.until is not None:
        wanted &= specs.c.created_at <= view.until  # a spec is written once, at that time
    return [row._asdict() for row in view.execute(select(specs).where(wanted).order_by(specs.c.seq))]


def owners(view: View) -> list[str]:
    """The principals that have submitted specs."""
    return list(view.execute(select(specs.c.principal).distinct().order_by(specs.c.principal)).scalars())


# Implementations


def implementations_of(
    view: View, principal: str, costs: Costs, *, symbol: str | None = None, spec_id: str | None = None
) -> list[Implementation]:
    """The implementations that a principal sees, oldest first: those of canonical specs and of its own."""
    wanted: ColumnElement[bool] = implementations.c.principal.in_({EVERYONE, principal})
    if symbol is not None:
        wanted &= implementations.c.symbol == symbol
    if spec_id is not None:
        wanted &= implementations.c.spec_id == spec_id
    return _found(view, wanted, costs)


def implementation(view: View, principal: str, costs: Costs, implementation_id: str) -> Implementation | None:
    """The implementation of an id, if the principal sees it."""
    seen = implementations.c.principal.in_({EVERYONE, principal})
    return next(iter(_found(view, seen & (implementations.c.id == implementation_id), costs)), None)


def followed(view: View, costs: Costs) -> list[Implementation]:
    """All active implementations, of every principal, oldest first."""
    return _found(view, implementations.c.status.in_(_ACTIVE), costs)


def has_followed(view: View) -> bool:
    """Returns True if an implementation is active."""
    found = select(implementations.c.id).where(implementations.c.status.in_(_ACTIVE)).limit(1)
    return view.execute(found).first() is not None


def series_of(view: View, symbol: str, timeframe: str, costs: Costs) -> list[Implementation]:
    """All implementations on a series, of every principal, oldest first."""
    return _found(view, (implementations.c.symbol == symbol) & (implementations.c.timeframe == timeframe), costs)


def _found(view: View, wanted: ColumnElement[bool], costs: Costs) -> list[Implementation]:
    """The implementations of a condition that were found with these costs."""
    if view.until is None:
        rows = view.execute(select(implementations).where(wanted).order_by(implementations.c.seq, implementations.c.id))
        found = [from_row(Implementation, row._asdict()) for row in rows]
    else:
        then = wanted & (implementations.c.found_at <= view.until)
        order = (implementations.c.found_at, implementations.c.id)
        ids = list(view.execute(select(implementations.c.id).where(then).order_by(*order)).scalars())
        bodies = snapshot.bodies_at(view, "implementation", ids)
        found = [from_row(Implementation, bodies[each]) for each in ids if each in bodies]
    return [each for each in found if each.costs == list(costs)]


# Searches


def search(view: View, symbol: str, timeframe: str, principal: str, costs: Costs) -> Mapping[str, Any] | None:
    """The last search of a series for a principal with these costs, without its number; None if it was not searched."""
    key = search_id(symbol, timeframe, principal, costs)
    if view.until is not None:
        return snapshot.body_at(view, "search", key)
    row = view.execute(select(searches).where(searches.c.id == key)).first()
    return {name: value for name, value in row._asdict().items() if name != "seq"} if row else None


def search_id(symbol: str, timeframe: str, principal: str, costs: Costs) -> str:
    """The key of the searches of a series for a principal."""
    return f"{symbol} {timeframe} {_text(costs)} {principal}".strip()


def _text(costs: Costs) -> str:
    return "/".join(map(repr, costs))


# Signals and consensus


def signals_of(view: View, ids: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    """The recorded signals of implementations, by id, each with the number of its ledger entry."""
    wanted, found = list(ids), dict[str, Mapping[str, Any]]()
    for start in range(0, len(wanted), _CHUNK):
        chosen = signals.c.implementation_id.in_(wanted[start : start + _CHUNK])
        found |= {row.implementation_id: row._asdict() for row in view.execute(select(signals).where(chosen))}
    return found


def signals_at(view: View, entries: Iterable[int]) -> list[Mapping[str, Any]]:
    """The recorded signals whose last ledger entries are these, oldest first."""
    wanted, found = list(entries), list[Mapping[str, Any]]()
    for start in range(0, len(wanted), _CHUNK):
        chosen = select(signals).where(signals.c.seq.in_(wanted[start : start + _CHUNK])).order_by(signals.c.seq)
        found += [row._asdict() for row in view.execute(chosen)]
    return found


def consensus(view: View, consensus_id: str) -> Mapping[str, Any] | None:
    """The recorded consensus of a symbol and principal, with the number of its ledger entry; None if there is none."""
    row = view.execute(select(consensuses).where(consensuses.c.id == consensus_id)).first()
    return row._asdict() if row else None


def consensus_owners(view: View, symbol: str, costs: Costs) -> set[str]:
    """The principals for whom a consensus of a symbol was recorded."""
    rows = view.execute(select(consensuses.c.id, consensuses.c.principal).where(consensuses.c.symbol == symbol))
    return {row.principal for row in rows if row.id == consensus_id(symbol, row.principal, costs)}


def latest_consensus(view: View, symbol: str, principal: str, costs: Costs) -> int | None:
    """The ledger entry of the consensus that a principal sees of a symbol; None if there is none, or it has ended."""
    keys = (consensus_id(symbol, principal, costs), consensus_id(symbol, EVERYONE, costs))
    found = {row.id: row for row in view.execute(select(consensuses).where(consensuses.c.id.in_(keys)))}
    row = found.get(keys[0], found.get(keys[1]))
    return int(row.seq) if row is not None and row.bullish + row.bearish + row.neutral else None


def consensus_id(symbol: str, principal: str, costs: Costs) -> str:
    """The key of a symbol's consensus for a principal."""
    return f"{symbol} {_text(costs)} {principal}".strip()


# Figures


def figures(view: View, ids: Iterable[str]) -> dict[str, tuple[float, dict[str, Any]]]:
    """The stored figures of implementations, by id, each with the time of the last bar that they include.

    There are none at a past time: only the newest ones are stored.
    """
    if view.until is not None:
        return {}
    wanted, found = list(ids), dict[str, tuple[float, dict[str, Any]]]()
    for start in range(0, len(wanted), _CHUNK):
        chosen = performance.c.implementation_id.in_(wanted[start : start + _CHUNK])
        rows = view.execute(select(performance).where(chosen))
        found |= {row.implementation_id: (row.until, row.body) for row in rows}
    return found


def keep_figures(journal: Journal, found: Mapping[str, tuple[float, dict[str, Any]]]) -> None:
    """Store figures of implementations."""
    ids = list(found)
    for start in range(0, len(ids), _CHUNK):
        some = ids[start : start + _CHUNK]
        journal.view.execute(delete(performance).where(performance.c.implementation_id.in_(some)))
        rows = [{"implementation_id": each, "until": found[each][0], "body": found[each][1]} for each in some]
        journal.view.execute(insert(performance), rows)
