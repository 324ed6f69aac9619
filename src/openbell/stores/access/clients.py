"""Queries about OAuth clients: registered ones, and copies of client-id metadata documents."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update

from openbell.stores.access.tables import clients, grants

REGISTERED = "registered"
DOCUMENT = "document"
_SIGN_IN_SECONDS = 600.0
"""For so long, a new client is not removed to make room for others: its user may be signing in."""


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """A client as it described itself."""

    id: str
    kind: str
    """`registered`, or `document` if the id is the URL of its description."""
    name: str
    redirect_uris: tuple[str, ...]
    grant_types: tuple[str, ...]
    auth_method: str = "none"
    secret: str | None = None
    """The hash of its secret; None if it has none."""
    address: str = ""
    """The network address that registered it."""
    created_at: float = 0.0
    fresh_until: float | None = None
    """When a document must be fetched again."""


def find(connection: Connection, client_id: str) -> OAuthClient | None:
    """Returns the client of an id; None if there is none."""
    row = connection.execute(select(clients).where(clients.c.id == client_id)).first()
    if row is None:
        return None
    lists = {name: tuple(getattr(row, name)) for name in ("redirect_uris", "grant_types")}
    return OAuthClient(**{**row._asdict(), **lists})


def put(connection: Connection, client: OAuthClient) -> None:
    """Add a client, or replace the one of the same id."""
    values = {name: getattr(client, name) for name in OAuthClient.__dataclass_fields__}
    if not connection.execute(update(clients).where(clients.c.id == client.id), values).rowcount:
        connection.execute(insert(clients), values)


def put_within(connection: Connection, client: OAuthClient, most: int, now: float) -> bool:
    """Write a client if there are fewer than `most` of its kind, or there is an old one to remove. Returns True if so."""
    if find(connection, client.id) is None and not make_room(connection, client.kind, most, now - _SIGN_IN_SECONDS):
        return False
    put(connection, client)
    return True


def count_registered(connection: Connection, address: str, since: float) -> int:
    """Returns how many clients an address has registered since a time."""
    mine = (clients.c.address == address) & (clients.c.kind == REGISTERED) & (clients.c.created_at > since)
    return _count(connection, mine)


def make_room(connection: Connection, kind: str, most: int, keep_since: float) -> bool:
    """Remove the oldest clients of a kind that no user has given consent, until there are fewer than `most`.

    Clients created after `keep_since` are kept: their users may be signing in. Returns False if there is no room.
    """
    excess = _count(connection, clients.c.kind == kind) - most + 1
    if excess <= 0:
        return True
    unused = ~select(grants.c.id).where(grants.c.client_id == clients.c.id).exists()
    old = (clients.c.kind == kind) & unused & (clients.c.created_at <= keep_since)
    oldest = select(clients.c.id).where(old).order_by(clients.c.created_at).limit(excess)
    chosen = connection.execute(oldest).scalars().all()
    if chosen:
        connection.execute(delete(clients).where(clients.c.id.in_(chosen)))
    return len(chosen) == excess


def _count(connection: Connection, condition: ColumnElement[bool]) -> int:
    return int(connection.execute(select(func.count()).select_from(clients).where(condition)).scalar_one())
