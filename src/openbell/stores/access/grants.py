"""Queries about grants (a user's consent to a client), the forms of consents, their authorization codes and tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Row, Select, Table, delete, insert, select, update

from openbell.stores.access import scopes as stored
from openbell.stores.access.tables import clients, codes, forms, grants, tokens, users

ACCESS = "access"
REFRESH = "refresh"
_GRANTED = ("client_id", "subject", "scopes", "resource", "created_at")


@dataclass(frozen=True, slots=True)
class Grant:
    """A user's consent. All tokens that follow from it are one family and are revoked together."""

    id: str
    client_id: str
    subject: str
    scopes: frozenset[str]
    resource: str
    """The URL for which its tokens are valid."""
    created_at: float = field(default=0.0, compare=False)
    """When the user has consented, as the store knows it."""


@dataclass(frozen=True, slots=True)
class ListedConsent:
    """A consent that is valid, as a list shows it."""

    grant: Grant
    client_name: str
    expires_at: float
    """When the last of its tokens expires, unless they are refreshed."""


@dataclass(frozen=True, slots=True)
class Code:
    """An authorization code, which can be used once."""

    hash: str
    grant: Grant
    redirect_uri: str
    challenge: str
    """The PKCE challenge, of the method S256."""
    expires_at: float
    used_at: float | None = None


@dataclass(frozen=True, slots=True)
class Token:
    """An access or refresh token."""

    hash: str
    kind: str
    grant: Grant
    scopes: frozenset[str]
    resource: str
    expires_at: float
    rotated_at: float | None = None
    """When a refresh token was used; it cannot be used again."""


def create(connection: Connection, code: Code, now: float) -> None:
    """Write a new grant and its code. Grants and tokens that have expired are removed."""
    purge(connection, now)
    grant = code.grant
    row = {"id": grant.id, "client_id": grant.client_id, "subject": grant.subject, "resource": grant.resource}
    times = {"created_at": now, "expires_at": code.expires_at}
    connection.execute(insert(grants), {**row, **times, "scopes": stored.joined(grant.scopes)})
    written = {name: getattr(code, name) for name in ("hash", "redirect_uri", "challenge", "expires_at")}
    connection.execute(insert(codes), {**written, "grant_id": grant.id})


def find_code(connection: Connection, code_hash: str) -> Code | None:
    """Returns a code, used or not; None if there is none, or its grant was revoked or its user removed."""
    row = connection.execute(_query(codes).where(codes.c.hash == code_hash)).first()
    if row is None:
        return None
    return Code(row.hash, _grant(row), row.redirect_uri, row.challenge, row.expires_at, row.used_at)


def use_code(connection: Connection, code_hash: str, now: float) -> bool:
    """Mark a code as used. Returns True for exactly one caller, if the code has not expired."""
    unused = (codes.c.hash == code_hash) & codes.c.used_at.is_(None) & (codes.c.expires_at > now)
    return connection.execute(update(codes).where(unused), {"used_at": now}).rowcount == 1


def add_token(connection: Connection, token: Token) -> None:
    """Write a token, and extend the life of its grant."""
    values = {name: getattr(token, name) for name in ("hash", "kind", "resource", "expires_at")}
    connection.execute(insert(tokens), {**values, "grant_id": token.grant.id, "scopes": stored.joined(token.scopes)})
    shorter = (grants.c.id == token.grant.id) & (grants.c.expires_at < token.expires_at)
    connection.execute(update(grants).where(shorter), {"expires_at": token.expires_at})


def find_token(connection: Connection, token_hash: str) -> Token | None:
    """Returns a token, expired or not; None if there is none, or its grant was revoked or its user removed.

    Its scopes are those that its user still has.
    """
    row = connection.execute(_query(tokens).where(tokens.c.hash == token_hash)).first()
    if row is None:
        return None
    left = stored.left(row.scopes, row.user_scopes)
    return Token(row.hash, row.kind, _grant(row), left, row.resource, row.expires_at, row.rotated_at)


def rotate(connection: Connection, token_hash: str, now: float) -> bool:
    """Mark a refresh token as used. Returns True for exactly one caller, if the token has not expired."""
    fresh = (tokens.c.hash == token_hash) & (tokens.c.kind == REFRESH)
    fresh &= tokens.c.rotated_at.is_(None) & (tokens.c.expires_at > now)
    return connection.execute(update(tokens).where(fresh), {"rotated_at": now}).rowcount == 1


def redeem_code(connection: Connection, code: Code, issued: Sequence[Token], now: float) -> bool:
    """Use a code and write its tokens. Returns False if it has expired, or was used: then its grant is revoked."""
    if use_code(connection, code.hash, now):
        for token in issued:
            add_token(connection, token)
        return True
    if code.expires_at > now or code.used_at is not None:
        revoke(connection, code.grant.id, now)
    return False


def replace_refresh(
    connection: Connection, old: str, access: Token, refresh: Token, now: float, retry_since: float
) -> Token | None:
    """Replace a refresh token by two tokens. Returns the access token; None if the old one cannot be used.

    If it was used before, its grant is revoked, unless this is the same request again: the old token was used after
    `retry_since`, for the same two tokens, and the new refresh token was not used yet. Then nothing changes.
    """
    if rotate(connection, old, now):
        for token in (access, refresh):
            add_token(connection, token)
        return access
    used = find_token(connection, old)
    if used is None or used.rotated_at is None:
        return None
    first, following = find_token(connection, access.hash), find_token(connection, refresh.hash)
    unused = first is not None and following is not None and following.rotated_at is None
    if unused and used.rotated_at > retry_since and _is_same(first, access):
        return first
    revoke(connection, used.grant.id, now)
    return None


def revoke(connection: Connection, grant_id: str, now: float) -> None:
    """Revoke a grant: its code and all its tokens are invalid at once."""
    current = (grants.c.id == grant_id) & grants.c.revoked_at.is_(None)
    connection.execute(update(grants).where(current), {"revoked_at": now})


def revoke_all_of(connection: Connection, subject: str, now: float) -> None:
    """Revoke every grant of a user."""
    current = (grants.c.subject == subject) & grants.c.revoked_at.is_(None)
    connection.execute(update(grants).where(current), {"revoked_at": now})


def listed(connection: Connection, now: float) -> list[ListedConsent]:
    """Returns the consents that are valid, the newest first. Their scopes are those that their users still have."""
    selected = select(grants, users.c.scopes.label("user_scopes"), clients.c.name.label("client_name"))
    joined = selected.join(users, users.c.name == grants.c.subject).outerjoin(
        clients, clients.c.id == grants.c.client_id
    )
    valid = joined.where(grants.c.revoked_at.is_(None), grants.c.expires_at > now)
    found = []
    for row in connection.execute(valid.order_by(grants.c.created_at.desc())):
        left = stored.left(row.scopes, row.user_scopes)
        grant = Grant(row.id, row.client_id, row.subject, left, row.resource, row.created_at)
        found.append(ListedConsent(grant, row.client_name or "", row.expires_at))
    return found


def purge(connection: Connection, now: float) -> None:
    """Remove expired access tokens, and grants of which everything has expired."""
    connection.execute(delete(tokens).where((tokens.c.kind == ACCESS) & (tokens.c.expires_at <= now)))
    over = select(grants.c.id).where(grants.c.expires_at <= now)
    for table in (codes, tokens):
        connection.execute(delete(table).where(table.c.grant_id.in_(over)))
    connection.execute(delete(grants).where(grants.c.expires_at <= now))


def _is_same(one: Token | None, other: Token) -> bool:
    return one is not None and (one.scopes, one.resource) == (other.scopes, other.resource)


def _query(table: Table) -> Select[Any]:
    """Selects the rows of a table whose grant is not revoked and whose user exists."""
    granted = [grants.c[name].label(f"grant_{name}") for name in _GRANTED]
    selected = select(table, *granted, users.c.scopes.label("user_scopes"))
    joined = selected.join(grants, grants.c.id == table.c.grant_id).join(users, users.c.name == grants.c.subject)
    return joined.where(grants.c.revoked_at.is_(None))


def _grant(row: Row[Any]) -> Grant:
    granted = stored.left(row.grant_scopes, row.user_scopes)
    return Grant(
        row.grant_id, row.grant_client_id, row.grant_subject, granted, row.grant_resource, row.grant_created_at
    )


def use_form(connection: Connection, nonce: str, expires_at: float, now: float) -> bool:
    """Mark a consent form as submitted. Returns True for exactly one caller."""
    connection.execute(delete(forms).where(forms.c.expires_at <= now))
    if connection.execute(select(forms.c.nonce).where(forms.c.nonce == nonce)).first():
        return False
    connection.execute(insert(forms), {"nonce": nonce, "expires_at": expires_at})
    return True
