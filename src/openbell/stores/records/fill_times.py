"""Queries about the times of fills."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from sqlalchemy import Row, Select, select

from openbell.stores.records.snapshot import View
from openbell.stores.records.tables import fills, ledger, orders
from openbell.trading.book import Position
from openbell.trading.fills import Fill, FillTime, fill_time
from openbell.trading.orders import OrderKind
from openbell.trading.rows import from_row

_CHUNK = 500
_WITH_TERMS = (
    select(fills, orders.c.kind.label("order_kind"), orders.c.limit_price.label("order_limit"))
    .join(orders, orders.c.id == fills.c.order_id)
    .order_by(fills.c.seq)
)


def opening_times(view: View, account_name: str, positions: Iterable[Position]) -> dict[str, FillTime]:
    """By symbol, when each position of an account was opened."""
    opened = {(each.symbol, each.opened_at): each for each in positions}
    found = {symbol: FillTime(at, at, exact=False) for symbol, at in opened}
    times = sorted({at for _, at in opened})
    chosen = (fills.c.account == account_name) & fills.c.at.in_(times)
    for row in _rows(view, _WITH_TERMS.where(chosen)) if times else ():
        if (row.symbol, row.at) in opened:
            found[row.symbol] = _time(row)
    return found


def last_fill_times(view: View, order_ids: Iterable[str]) -> dict[str, FillTime]:
    """By order id, when each of these orders was filled last; orders without a fill are left out."""
    wanted, found = list(order_ids), dict[str, FillTime]()
    for start in range(0, len(wanted), _CHUNK):
        query = _WITH_TERMS.where(fills.c.order_id.in_(wanted[start : start + _CHUNK]))
        found |= {row.order_id: _time(row) for row in _rows(view, query)}
    return found


def _rows(view: View, query: Select[Any]) -> Iterable[Row[Any]]:
    """Runs a query about fills; those that were written after the view's time are left out."""
    if view.until is not None:
        query = query.join(ledger, ledger.c.seq == fills.c.seq).where(ledger.c.at <= view.until)
    return view.execute(query)


def _time(row: Row[Any]) -> FillTime:
    limit = None if row.order_limit is None else Decimal(row.order_limit)
    return fill_time(from_row(Fill, row._asdict()), OrderKind(row.order_kind), limit)
