"""Questions about accounts, orders and fills."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import BindParameter, Connection, Row, Select, Table, bindparam, func, insert, select

from openbell.stores.records.tables import accounts, fills, orders, requests
from openbell.trading.accounts import Account
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
_WORKING_ON = select(orders).where(_UNFINISHED & (orders.c.symbol == bindparam("symbol"))).order_by(*_IN_ORDER)
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
_LAST_PLACED = select(func.max(orders.c.placed_at)).where((orders.c.account == _NAME) & (orders.c.state != "rejected"))
_LAST_FILL = select(func.max(fills.c.at)).where(fills.c.account == _NAME)
_FILLS_UNTIL = _FILLS.where(fills.c.at <= bindparam("until"))


def account(connection: Connection, name: str) -> Account | None:
    """The account of a name."""
    row = connection.execute(_ACCOUNT, {"name": name}).first()
    return from_row(Account, row._asdict()) if row else None


def all_accounts(connection: Connection) -> list[Account]:
    """Every account, by name."""
    rows = connection.execute(select(accounts).order_by(accounts.c.name))
    return [from_row(Account, row._asdict()) for row in rows]


def order(connection: Connection, order_id: str) -> Order | None:
    """The order of an id."""
    return _first(connection, _ORDER, name=order_id)


def by_client_id(connection: Connection, account_name: str, principal: str, client_order_id: str) -> Order | None:
    """The order that a principal placed under an id of its own."""
    return _first(connection, _BY_CLIENT_ID, name=account_name, who=principal, key=client_order_id)


def working(connection: Connection, account_name: str) -> list[Order]:
    """The orders of an account that are not final, in the order in which they were placed."""
    return _orders(connection.execute(_WORKING, {"name": account_name}))


def working_on(connection: Connection, account_name: str, symbol: str) -> list[tuple[int, Order]]:
    """The same of one symbol, each with the entry of the ledger that wrote it last."""
    rows = connection.execute(_WORKING_ON, {"name": account_name, "symbol": symbol})
    return [(row.seq, from_row(Order, row._asdict())) for row in rows]


def changed_after(connection: Connection, account_name: str, seq: int) -> list[tuple[int, Order]]:
    """The orders of an account that were written after an entry of the ledger, each with its own."""
    rows = connection.execute(_CHANGED, {"name": account_name, "seq": seq})
    return [(row.seq, from_row(Order, row._asdict())) for row in rows]


def bracket(connection: Connection, entry_id: str) -> list[Order]:
    """The exits of an entry."""
    return _orders(connection.execute(_BRACKET, {"name": entry_id}))


def listing(
    connection: Connection, account_name: str, principal: str, until: float, limit: int, *, open_only: bool
) -> list[Order]:
    """A principal's orders that were placed by some time, newest first."""
    mine = (orders.c.account == account_name) & (orders.c.principal == principal) & (orders.c.placed_at <= until)
    query = select(orders).where(mine & orders.c.state.not_in(_FINAL) if open_only else mine)
    return _orders(connection.execute(query.order_by(orders.c.placed_at.desc(), orders.c.id.desc()).limit(limit)))


def newest_moment(connection: Connection, account_name: str) -> float:
    """When the account's last order was placed or its last fill was known, on the desk's clock; 0 if there is none."""
    placed = connection.execute(_LAST_PLACED, {"name": account_name}).scalar() or 0.0
    filled = connection.execute(_LAST_FILL, {"name": account_name}).scalar() or 0.0
    return max(float(placed), float(filled))


def working_accounts(connection: Connection) -> list[tuple[str, str]]:
    """Account and symbol of everything that is not final."""
    return [(row.account, row.symbol) for row in connection.execute(_WORK)]


# What was asked for


def remember(connection: Connection, placed: Order, digest: str, received: float) -> None:
    """Note that an order was asked for."""
    values = {"order_id": placed.id, "account": placed.account, "principal": placed.principal}
    connection.execute(_REMEMBER, {**values, "digest": digest, "received": received})


def digest_of(connection: Connection, order_id: str) -> str | None:
    """The digest of what was asked for when an order was placed."""
    return connection.execute(_DIGEST, {"name": order_id}).scalar()


def twin(connection: Connection, account_name: str, principal: str, digest: str, since: float) -> Order | None:
    """The newest order of the same content that was asked for since some time and not rejected."""
    return _first(connection, _TWIN, name=account_name, who=principal, digest=digest, since=since)


def asked_since(connection: Connection, account_name: str, since: float) -> int:
    """How many orders an account has asked for since some time."""
    return int(connection.execute(_ASKED, {"name": account_name, "since": since}).scalar_one())


# Fills


def fills_after(
    connection: Connection, account_name: str, seq: int, until: float | None = None
) -> list[tuple[int, Fill]]:
    """An account's fills with a number above `seq`, as they were written, each with its number."""
    given: dict[str, Any] = {"name": account_name, "seq": seq}
    rows = (
        connection.execute(_FILLS, given)
        if until is None
        else connection.execute(_FILLS_UNTIL, given | {"until": until})
    )
    return [(row.seq, from_row(Fill, row._asdict())) for row in rows]


def known_fills(connection: Connection, ids: Iterable[str]) -> set[str]:
    """Which of some fills are written already."""
    return set(connection.execute(select(fills.c.id).where(fills.c.id.in_(list(ids)))).scalars())


def _first(connection: Connection, query: Select[Any], **given: Any) -> Order | None:
    row = connection.execute(query, given).first()
    return from_row(Order, row._asdict()) if row else None


def _orders(rows: Iterable[Row[Any]]) -> list[Order]:
    return [from_row(Order, row._asdict()) for row in rows]


def rows_of(connection: Connection, table: Table) -> Iterable[dict[str, Any]]:
    """Every row of a table."""
    for row in connection.execute(select(table).execution_options(yield_per=1000)):
        yield row._asdict()
