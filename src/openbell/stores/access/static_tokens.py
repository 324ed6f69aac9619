"""Queries about static tokens: bearer tokens for scripts, which an operator creates and removes."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select

from openbell.market.errors import InvalidParameter
from openbell.stores.access import scopes
from openbell.stores.access.tables import static_tokens


@dataclass(frozen=True, slots=True)
class StaticToken:
    """A token that is valid for the whole gateway."""

    name: str
    subject: str
    scopes: frozenset[str]
    hash: str
    created_at: float
    expires_at: float | None
    """None if it does not expire."""


def add(connection: Connection, token: StaticToken) -> None:
    """Write a token. Raises `InvalidParameter` if there is one of this name."""
    if connection.execute(select(static_tokens.c.name).where(static_tokens.c.name == token.name)).first():
        raise InvalidParameter(
            f"there is a token {token.name} already; remove it with: openbell token remove {token.name}"
        )
    values = {name: getattr(token, name) for name in StaticToken.__dataclass_fields__}
    connection.execute(insert(static_tokens), {**values, "scopes": scopes.joined(token.scopes)})


def find(connection: Connection, token_hash: str) -> StaticToken | None:
    """Returns the token of a hash, expired or not; None if there is none."""
    row = connection.execute(select(static_tokens).where(static_tokens.c.hash == token_hash)).first()
    return None if row is None else StaticToken(**{**row._asdict(), "scopes": scopes.split(row.scopes)})


def listed(connection: Connection) -> list[StaticToken]:
    """Returns every token, by name."""
    rows = connection.execute(select(static_tokens).order_by(static_tokens.c.name))
    return [StaticToken(**{**row._asdict(), "scopes": scopes.split(row.scopes)}) for row in rows]


def remove(connection: Connection, name: str) -> bool:
    """Remove a token; it is invalid at once. Returns True if there was one of this name."""
    return bool(connection.execute(delete(static_tokens).where(static_tokens.c.name == name)).rowcount)
