"""Questions about accounts, orders and fills."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, Row, Select, bindparam, func, insert, select

from openbell.stores.records import past
from openbell.stores.records.checkpoints import account_at
from openbell.stores.records.tables import accounts, fills, ledger, orders, requests
from openbell.stores.records.view import View
from openbell.trading.accounts import Account
from openbell.trading.amounts import ZERO
from openbell.trading.fills import Fill
from openbell.trading.orders import FINAL, Order
from openbell.trading.rows import from_row

_FINAL = [state.value for state in FINAL]

# Made once: putting a statement together takes longer than running it.
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
_REMEMBER = insert(requests)
_DIGEST = select(requests.c.digest).where(requests.c.order_id == _NAME)
_ASKED = select(func.count()).where((requests.c.account == _NAME) & (requests.c.received > bindparam("since")))
_TWIN = (
    select(orders)
    .join(requests, requests.c.order_id == orders.c.id)
    .where((requests.c.account == _NAME) & (requests.c.principal == _WHO) & (requests.c.digest == bindparam("digest")))
    .where((requests.c.received > bindparam("since")) & (orders.c.state != "rejected"))
    .order_by(requests.c.received.desc())
    .limit(1)
)
_FILLS = select(fills).where((fills.c.account == _NAME) & (fills.c.seq > _SEQ)).order_by(fills.c.seq)
# A broker's clock may run ahead of ours, never by a day: the last condition only keeps the index from reading on.
_FILLS_BEFORE = (
    select(fills)
    .join(ledger, ledger.c.seq == fills.c.seq)
    .where((fills.c.account == _NAME) & (fills.c.at >= bindparam("since")) & (ledger.c.at <= bindparam("until")))
    .where(fills.c.at <= bindparam("until") + 86400.0)
    .order_by(fills.c.seq)
)


def account(view: View, name: str) -> Account | None:
    """The account of a name."""
    if view.until is not None:
        known, now = past.version(view, "account", name), view.execute(_ACCOUNT, {"name": name}).first()
        if known is None or now is None:
            return None
        # Who may look is decided by the present: an old token ends at once, whatever the clock shows.
        return from_row(Account, known | {"token": now.token, "owner": now.owner})
    row = view.execute(_ACCOUNT, {"name": name}).first()
    return from_row(Account, row._asdict()) if row else None


def all_accounts(view: View) -> list[Account]:
    """Every account, by name."""
    rows = view.execute(select(accounts).order_by(accounts.c.name))
    return [from_row(Account, row._asdict()) for row in rows]


def order(view: View, order_id: str) -> Order | None:
    """The order of an id."""
    return _first(view, _ORDER, name=order_id)


def by_client_id(view: View, account_name: str, principal: str, client_order_id: str) -> Order | None:
    """The order that a principal placed under an id of its own."""
    return _first(view, _BY_CLIENT_ID, name=account_name, who=principal, key=client_order_id)


def working(view: View, account_name: str) -> list[Order]:
    """The orders of an account that are not final, in the order in which they were placed."""
    return _orders(view.execute(_WORKING, {"name": account_name}))


def numbered(view: View, account_name: str) -> list[tuple[int, Order]]:
    """The same, each with the entry of the ledger that wrote it last."""
    rows = view.execute(_WORKING, {"name": account_name})
    return [(row.seq, from_row(Order, row._asdict())) for row in rows]


def changed_after(view: View, account_name: str, seq: int) -> list[tuple[int, Order]]:
    """The orders of an account that were written after an entry of the ledger, each with its own."""
    rows = view.execute(_CHANGED, {"name": account_name, "seq": seq})
    return [(row.seq, from_row(Order, row._asdict())) for row in rows]


def bracket(view: View, entry_id: str) -> list[Order]:
    """The exits of an entry."""
    return _orders(view.execute(_BRACKET, {"name": entry_id}))


def listing(
    view: View, account_name: str, principal: str, limit: int, offset: int, *, open_only: bool
) -> tuple[list[Order], int]:
    """A page of a principal's orders, newest first, and how many there are in all."""
    mine = (orders.c.account == account_name) & (orders.c.principal == principal)
    if view.until is None:
        wanted = mine & orders.c.state.not_in(_FINAL) if open_only else mine
        return _orders(view.execute(_page(wanted, limit, offset))), _count(view, wanted)
    if open_only:
        opened = [each for each in account_at(view, account_name, ZERO)[1] if each.principal == principal]
        return opened[::-1][offset : offset + limit], len(opened)
    wanted = mine & (orders.c.placed_at <= view.until)
    ids = [row.id for row in view.execute(_page(wanted, limit, offset))]
    then = past.versions(view, "order", ids)
    return [from_row(Order, then[each]) for each in ids if each in then], _count(view, wanted)


def _page(wanted: ColumnElement[bool], limit: int, offset: int) -> Select[Any]:
    newest = (orders.c.placed_at.desc(), orders.c.id.desc())
    return select(orders).where(wanted).order_by(*newest).limit(limit).offset(offset)


def _count(view: View, wanted: ColumnElement[bool]) -> int:
    return int(view.execute(select(func.count()).select_from(orders).where(wanted)).scalar_one())


def working_accounts(view: View) -> list[tuple[str, str]]:
    """Account and symbol of everything that is not final."""
    return [(row.account, row.symbol) for row in view.execute(_WORK)]


# What was asked for


def remember(view: View, placed: Order, digest: str, received: float) -> None:
    """Note that an order was asked for."""
    values = {"order_id": placed.id, "account": placed.account, "principal": placed.principal}
    view.execute(_REMEMBER, {**values, "digest": digest, "received": received})


def digest_of(view: View, order_id: str) -> str | None:
    """The digest of what was asked for when an order was placed."""
    return view.execute(_DIGEST, {"name": order_id}).scalar()


def twin(view: View, account_name: str, principal: str, digest: str, since: float) -> Order | None:
    """The newest order of the same content that was asked for since some time and not rejected."""
    return _first(view, _TWIN, name=account_name, who=principal, digest=digest, since=since)


def asked_since(view: View, account_name: str, since: float) -> int:
    """How many orders an account has asked for since some time."""
    return int(view.execute(_ASKED, {"name": account_name, "since": since}).scalar_one())


# Fills


def fills_after(view: View, account_name: str, seq: int) -> list[tuple[int, Fill]]:
    """An account's fills with a number above `seq`, as they were written, each with its number."""
    rows = view.execute(_FILLS, {"name": account_name, "seq": seq})
    return [(row.seq, from_row(Fill, row._asdict())) for row in rows]


def fills_since(view: View, account_name: str, since: float) -> list[Fill]:
    """An account's fills since some time on the market's clock that had been written by the view's moment."""
    rows = view.execute(_FILLS_BEFORE, {"name": account_name, "since": since, "until": view.until})
    return [from_row(Fill, row._asdict()) for row in rows]


def known_fills(view: View, ids: Iterable[str]) -> set[str]:
    """Which of some fills are written already."""
    return set(view.execute(select(fills.c.id).where(fills.c.id.in_(list(ids)))).scalars())


def _first(view: View, query: Select[Any], **given: Any) -> Order | None:
    row = view.execute(query, given).first()
    return from_row(Order, row._asdict()) if row else None


def _orders(rows: Iterable[Row[Any]]) -> list[Order]:
    return [from_row(Order, row._asdict()) for row in rows]
