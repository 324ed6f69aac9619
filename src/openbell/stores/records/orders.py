"""Questions about accounts, orders and fills."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, Row, Select, Table, func, insert, select

from openbell.stores.records.tables import accounts, fills, orders, requests
from openbell.trading.accounts import Account
from openbell.trading.fills import Fill
from openbell.trading.orders import FINAL, Order
from openbell.trading.rows import from_row

_FINAL = [state.value for state in FINAL]


def account(connection: Connection, name: str) -> Account | None:
    """The account of a name."""
    row = connection.execute(select(accounts).where(accounts.c.name == name)).first()
    return from_row(Account, row._asdict()) if row else None


def all_accounts(connection: Connection) -> list[Account]:
    """Every account, by name."""
    rows = connection.execute(select(accounts).order_by(accounts.c.name))
    return [from_row(Account, row._asdict()) for row in rows]


def order(connection: Connection, order_id: str) -> Order | None:
    """The order of an id."""
    return _first(connection, select(orders).where(orders.c.id == order_id))


def by_client_id(connection: Connection, account_name: str, principal: str, client_order_id: str) -> Order | None:
    """The order that a principal placed under an id of its own."""
    mine = (orders.c.account == account_name) & (orders.c.principal == principal)
    return _first(connection, select(orders).where(mine & (orders.c.client_order_id == client_order_id)))


def working(connection: Connection, account_name: str, symbol: str | None = None) -> list[Order]:
    """The orders of an account that are not final, in the order in which they were placed."""
    query = select(orders).where((orders.c.account == account_name) & orders.c.state.not_in(_FINAL))
    if symbol is not None:
        query = query.where(orders.c.symbol == symbol)
    return _orders(connection.execute(query.order_by(orders.c.placed_at, orders.c.id)))


def bracket(connection: Connection, entry_id: str) -> list[Order]:
    """The exits of an entry."""
    return _orders(connection.execute(select(orders).where(orders.c.parent == entry_id).order_by(orders.c.id)))


def listing(
    connection: Connection, account_name: str, principal: str, until: float, limit: int, *, open_only: bool
) -> list[Order]:
    """A principal's orders that were placed by some time, newest first."""
    mine = (orders.c.account == account_name) & (orders.c.principal == principal) & (orders.c.placed_at <= until)
    query = select(orders).where(mine & orders.c.state.not_in(_FINAL) if open_only else mine)
    return _orders(connection.execute(query.order_by(orders.c.placed_at.desc(), orders.c.id).limit(limit)))


def working_accounts(connection: Connection) -> list[tuple[str, str]]:
    """Account and symbol of everything that is not final."""
    query = select(orders.c.account, orders.c.symbol).where(orders.c.state.not_in(_FINAL)).distinct()
    return [(row.account, row.symbol) for row in connection.execute(query.order_by(orders.c.account, orders.c.symbol))]


# What was asked for


def remember(connection: Connection, placed: Order, digest: str, received: float) -> None:
    """Note that an order was asked for."""
    values = {"order_id": placed.id, "account": placed.account, "principal": placed.principal}
    connection.execute(insert(requests), {**values, "digest": digest, "received": received})


def digest_of(connection: Connection, order_id: str) -> str | None:
    """The digest of what was asked for when an order was placed."""
    return connection.execute(select(requests.c.digest).where(requests.c.order_id == order_id)).scalar()


def twin(connection: Connection, account_name: str, principal: str, digest: str, since: float) -> Order | None:
    """The newest order of the same content that was asked for since some time and not rejected."""
    same = (requests.c.account == account_name) & (requests.c.principal == principal) & (requests.c.digest == digest)
    query = (
        select(orders)
        .join(requests, requests.c.order_id == orders.c.id)
        .where(same & (requests.c.received > since) & (orders.c.state != "rejected"))
        .order_by(requests.c.received.desc())
        .limit(1)
    )
    return _first(connection, query)


def asked_since(connection: Connection, account_name: str, since: float) -> int:
    """How many orders an account has asked for since some time."""
    query = select(func.count()).where((requests.c.account == account_name) & (requests.c.received > since))
    return int(connection.execute(query).scalar_one())


# Fills


def fills_after(
    connection: Connection, account_name: str, seq: int, until: float | None = None
) -> list[tuple[int, Fill]]:
    """An account's fills with a number above `seq`, as they were written, each with its number."""
    query = select(fills).where((fills.c.account == account_name) & (fills.c.seq > seq))
    if until is not None:
        query = query.where(fills.c.at <= until)
    rows = connection.execute(query.order_by(fills.c.seq))
    return [(row.seq, from_row(Fill, row._asdict())) for row in rows]


def known_fills(connection: Connection, ids: Iterable[str]) -> set[str]:
    """Which of some fills are written already."""
    return set(connection.execute(select(fills.c.id).where(fills.c.id.in_(list(ids)))).scalars())


def fill_count(connection: Connection, order_id: str) -> int:
    """How many fills an order has."""
    return int(connection.execute(select(func.count()).where(fills.c.order_id == order_id)).scalar_one())


def _first(connection: Connection, query: Select[Any]) -> Order | None:
    row = connection.execute(query).first()
    return from_row(Order, row._asdict()) if row else None


def _orders(rows: Iterable[Row[Any]]) -> list[Order]:
    return [from_row(Order, row._asdict()) for row in rows]


def rows_of(connection: Connection, table: Table) -> Iterable[dict[str, Any]]:
    """Every row of a table."""
    for row in connection.execution_options(yield_per=1000).execute(select(table)):
        yield row._asdict()
