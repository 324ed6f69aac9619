"""Queries about accounts, orders, fills and the times of fills."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, ColumnElement, Row, Select, bindparam, func, insert, select, tuple_

from openbell.stores.records import snapshot
from openbell.stores.records.checkpoints import account_at
from openbell.stores.records.snapshot import View
from openbell.stores.records.tables import accounts, fills, ledger, orders, requests
from openbell.trading.accounts import PAPER, Account
from openbell.trading.amounts import ZERO
from openbell.trading.book import Position
from openbell.trading.fills import Fill, FillTime, fill_time
from openbell.trading.orders import FINAL, Order, OrderKind, OrderState
from openbell.trading.rows import from_row

_FINAL = [state.value for state in FINAL]

# Built once: building a statement takes longer than running it.
_NAME: BindParameter[str] = bindparam("name")
_WHO: BindParameter[str] = bindparam("who")
_SEQ: BindParameter[int] = bindparam("seq")
_ACCOUNT = select(accounts).where(accounts.c.name == _NAME)
_ORDER = select(orders).where(orders.c.id == _NAME)
_BY_CLIENT_ID = select(orders).where(
    (orders.c.account == _NAME) & (orders.c.principal == _WHO) & (orders.c.client_order_id == bindparam("key"))
)
_IN_ORDER = (orders.c.placed_at, orders.c.id)
_UNFINISHED = (orders.c.account == _NAME) & orders.c.state.not_in(_FINAL)
_WORKING = select(orders).where(_UNFINISHED).order_by(*_IN_ORDER)
_CHANGED = select(orders).where((orders.c.account == _NAME) & (orders.c.seq > _SEQ)).order_by(orders.c.seq)
_BRACKET = select(orders).where(orders.c.parent == _NAME).order_by(orders.c.id)
_WORK = (
    select(orders.c.account, orders.c.symbol)
    .where(orders.c.state.not_in(_FINAL))
    .distinct()
    .order_by(orders.c.account, orders.c.symbol)
)
_ADD_REQUEST = insert(requests)
_DIGEST = select(requests.c.digest).where(requests.c.order_id == _NAME)
_COUNT_REQUESTS = select(func.count()).where((requests.c.account == _NAME) & (requests.c.received > bindparam("since")))
_DUPLICATE = (
    select(orders)
    .join(requests, requests.c.order_id == orders.c.id)
    .where((requests.c.account == _NAME) & (requests.c.principal == _WHO) & (requests.c.digest == bindparam("digest")))
    .where((requests.c.received > bindparam("since")) & (orders.c.state != "rejected"))
    .order_by(requests.c.received.desc())
    .limit(1)
)
_FILLS = select(fills).where((fills.c.account == _NAME) & (fills.c.seq > _SEQ)).order_by(fills.c.seq)
# A broker's clock may be ahead of ours, but by less than a day: the last condition only bounds the index scan.
_FILLS_BEFORE = (
    select(fills)
    .join(ledger, ledger.c.seq == fills.c.seq)
    .where((fills.c.account == _NAME) & (fills.c.at >= bindparam("since")) & (ledger.c.at <= bindparam("until")))
    .where(fills.c.at <= bindparam("until") + 86400.0)
    .order_by(fills.c.seq)
)

_OF_SYMBOL = (fills.c.account == _NAME) & (fills.c.symbol == bindparam("symbol"))
_SYMBOL_FILLS = select(fills).where(_OF_SYMBOL).order_by(fills.c.seq)
_SYMBOL_FILLS_BEFORE = (
    select(fills)
    .join(ledger, ledger.c.seq == fills.c.seq)
    .where(_OF_SYMBOL & (ledger.c.at <= bindparam("until")))
    .order_by(fills.c.seq)
)
_CHUNK = 500
_WITH_TERMS = (
    select(fills, orders.c.kind.label("order_kind"), orders.c.limit_price.label("order_limit"))
    .join(orders, orders.c.id == fills.c.order_id)
    .order_by(fills.c.seq)
)


def account(view: View, name: str) -> Account | None:
    """The account of a name; None if there is none."""
    if view.until is not None:
        known, now = snapshot.body_at(view, "account", name), view.execute(_ACCOUNT, {"name": name}).first()
        if known is None or now is None:
            return None
        # Access is decided by the current owner and token: a token that was replaced is void at every clock.
        return from_row(Account, known | {"token": now.token, "owner": now.owner})
    row = view.execute(_ACCOUNT, {"name": name}).first()
    return from_row(Account, row._asdict()) if row else None


def all_accounts(view: View) -> list[Account]:
    """Every account, by name."""
    rows = view.execute(select(accounts).order_by(accounts.c.name))
    return [from_row(Account, row._asdict()) for row in rows]


def order(view: View, order_id: str) -> Order | None:
    """The order of an id; None if there is none."""
    return _first(view, _ORDER, name=order_id)


def by_client_id(view: View, account_name: str, principal: str, client_order_id: str) -> Order | None:
    """The order that a principal placed with a client order id; None if there is none."""
    return _first(view, _BY_CLIENT_ID, name=account_name, who=principal, key=client_order_id)


def working(view: View, account_name: str) -> list[Order]:
    """The orders of an account that are not final, in the order in which they were placed."""
    return _orders(view.execute(_WORKING, {"name": account_name}))


def all_working(view: View) -> list[Order]:
    """The paper orders of all accounts that are not final."""
    paper = (account.name for account in all_accounts(view) if account.broker == PAPER)
    return [order for name in paper for order in working(view, name)]


def working_with_seq(view: View, account_name: str) -> list[tuple[int, Order]]:
    """The orders of `working`, each with the number of the ledger entry that wrote it last."""
    rows = view.execute(_WORKING, {"name": account_name})
    return [(row.seq, from_row(Order, row._asdict())) for row in rows]


def changed_after(view: View, account_name: str, seq: int) -> list[tuple[int, Order]]:
    """The orders of an account that were written after a ledger entry, each with the number of its last entry."""
    rows = view.execute(_CHANGED, {"name": account_name, "seq": seq})
    return [(row.seq, from_row(Order, row._asdict())) for row in rows]


def bracket(view: View, entry_id: str) -> list[Order]:
    """The exit orders of an entry order."""
    return _orders(view.execute(_BRACKET, {"name": entry_id}))


class OrderPage(NamedTuple):
    """A page of orders, latest first."""

    orders: list[Order]
    total: int
    """How many orders there are on all pages."""
    offset: int
    """How many of them are before this page."""
    last: str | None
    """The id of the page's last order."""


def listing(
    view: View,
    account_name: str,
    principal: str,
    limit: int,
    offset: int,
    *,
    open_only: bool,
    before: Order | None = None,
) -> OrderPage:
    """A page of a principal's orders; `before`: of those that were placed before this order, which may have ended."""
    mine = (orders.c.account == account_name) & (orders.c.principal == principal)
    if view.until is not None and open_only:
        opened = [each for each in account_at(view, account_name, ZERO)[1] if each.principal == principal][::-1]
        if before is not None:
            offset = sum((each.placed_at, each.id) >= (before.placed_at, before.id) for each in opened)
        chosen = opened[offset : offset + limit]
        return OrderPage(chosen, len(opened), offset, chosen[-1].id if chosen else None)
    wanted = mine & orders.c.state.not_in(_FINAL) if open_only else mine
    if view.until is not None:
        wanted = mine & (orders.c.placed_at <= view.until)
    total, page = _count(view, wanted), _page(wanted, limit, offset)
    if before is not None:
        # By the place of the order and not by its rank, which changes when orders end.
        older = wanted & (tuple_(orders.c.placed_at, orders.c.id) < (before.placed_at, before.id))
        offset, page = total - _count(view, older), _page(older, limit, 0)
    found = _orders(view.execute(page))
    last = found[-1].id if found else None
    if view.until is not None:
        then = snapshot.bodies_at(view, "order", [each.id for each in found])
        found = [from_row(Order, then[each.id]) for each in found if each.id in then]
    return OrderPage(found, total, offset, last)


def _page(wanted: ColumnElement[bool], limit: int, offset: int) -> Select[Any]:
    newest = (orders.c.placed_at.desc(), orders.c.id.desc())
    return select(orders).where(wanted).order_by(*newest).limit(limit).offset(offset)


def _count(view: View, wanted: ColumnElement[bool]) -> int:
    return int(view.execute(select(func.count()).select_from(orders).where(wanted)).scalar_one())


def count_cancelled(view: View, broker: str, reason: str, since: float) -> int:
    """How many orders at a broker were cancelled for a reason at or after a time, confirmed or not."""
    names = select(accounts.c.name).where(accounts.c.broker == broker)
    cancelled = orders.c.state.in_([OrderState.CANCELLING.value, OrderState.CANCELLED.value]) & (
        orders.c.reason == reason
    )
    return _count(view, orders.c.account.in_(names) & cancelled & (orders.c.updated_at >= since))


def working_accounts(view: View) -> list[tuple[str, str]]:
    """The accounts and symbols that have orders which are not final."""
    return [(row.account, row.symbol) for row in view.execute(_WORK)]


# Requests for orders


def add_request(view: View, placed: Order, digest: str, received: float) -> None:
    """Store the request for an order; `received` is the machine's time."""
    values = {"order_id": placed.id, "account": placed.account, "principal": placed.principal}
    view.execute(_ADD_REQUEST, {**values, "digest": digest, "received": received})


def request_digest(view: View, order_id: str) -> str | None:
    """The digest of the request for an order; None if there is none."""
    return view.execute(_DIGEST, {"name": order_id}).scalar()


def recent_duplicate(view: View, account_name: str, principal: str, digest: str, since: float) -> Order | None:
    """The latest order with the same digest that was requested after a time and not rejected; None if there is none."""
    return _first(view, _DUPLICATE, name=account_name, who=principal, digest=digest, since=since)


def count_requests(view: View, account_name: str, since: float) -> int:
    """How many orders were requested for an account after a time."""
    return int(view.execute(_COUNT_REQUESTS, {"name": account_name, "since": since}).scalar_one())


# Fills


def fills_after(view: View, account_name: str, seq: int) -> list[tuple[int, Fill]]:
    """An account's fills that were written after a ledger entry, each with the number of its own entry."""
    rows = view.execute(_FILLS, {"name": account_name, "seq": seq})
    return [(row.seq, from_row(Fill, row._asdict())) for row in rows]


def fills_since(view: View, account_name: str, since: float) -> list[Fill]:
    """An account's fills with a market time of at least `since` that had been written by the view's time."""
    rows = view.execute(_FILLS_BEFORE, {"name": account_name, "since": since, "until": view.until})
    return [from_row(Fill, row._asdict()) for row in rows]


def fills_of(view: View, account_name: str, symbol: str) -> list[Fill]:
    """An account's fills in a symbol that had been written by the view's time, in the order in which they were written."""
    given = {"name": account_name, "symbol": symbol}
    query = _SYMBOL_FILLS if view.until is None else _SYMBOL_FILLS_BEFORE
    rows = view.execute(query, given if view.until is None else {**given, "until": view.until})
    return [from_row(Fill, row._asdict()) for row in rows]


def newest_fills(view: View, account_name: str, limit: int) -> list[Fill]:
    """An account's latest fills, the latest first."""
    if view.until is not None:
        return fills_since(view, account_name, 0.0)[-limit:][::-1]
    newest = select(fills).where(fills.c.account == account_name).order_by(fills.c.seq.desc()).limit(limit)
    return [from_row(Fill, row._asdict()) for row in view.execute(newest)]


def known_fills(view: View, ids: Iterable[str]) -> set[str]:
    """The ids among `ids` whose fills are stored."""
    return set(view.execute(select(fills.c.id).where(fills.c.id.in_(list(ids)))).scalars())


def _first(view: View, query: Select[Any], **given: Any) -> Order | None:
    row = view.execute(query, given).first()
    return from_row(Order, row._asdict()) if row else None


def _orders(rows: Iterable[Row[Any]]) -> list[Order]:
    return [from_row(Order, row._asdict()) for row in rows]


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
