"""Queries about users: their passphrases, as scrypt hashes, and their scopes."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select, update

from openbell.stores.access import grants, scopes
from openbell.stores.access.tables import users


@dataclass(frozen=True, slots=True)
class PassphraseHash:
    """A scrypt hash with its salt and cost."""

    hash: bytes
    salt: bytes
    n: int
    r: int
    p: int


@dataclass(frozen=True, slots=True)
class User:
    """A user who can sign in. The name is the subject of the tokens."""

    name: str
    passphrase: PassphraseHash
    scopes: frozenset[str]
    """The most that the user can grant to a client."""


def find(connection: Connection, name: str) -> User | None:
    """Returns the user of a name; None if there is none."""
    row = connection.execute(select(users).where(users.c.name == name)).first()
    if row is None:
        return None
    passphrase = PassphraseHash(bytes.fromhex(row.hash), bytes.fromhex(row.salt), row.n, row.r, row.p)
    return User(row.name, passphrase, scopes.split(row.scopes))


def put(connection: Connection, user: User, now: float) -> None:
    """Add or change a user. Every earlier consent of the user is revoked."""
    held = user.passphrase
    values = {
        "hash": held.hash.hex(),
        "salt": held.salt.hex(),
        "n": held.n,
        "r": held.r,
        "p": held.p,
        "scopes": scopes.joined(user.scopes),
        "changed_at": now,
    }
    if not connection.execute(update(users).where(users.c.name == user.name), values).rowcount:
        connection.execute(insert(users), {"name": user.name, **values})
    grants.revoke_all_of(connection, user.name, now)


def remove(connection: Connection, name: str, now: float) -> bool:
    """Remove a user and revoke every consent. Returns True if there was such a user."""
    grants.revoke_all_of(connection, name, now)
    return bool(connection.execute(delete(users).where(users.c.name == name)).rowcount)


def count(connection: Connection) -> int:
    """Returns the number of users."""
    return len(connection.execute(select(users.c.name)).all())
