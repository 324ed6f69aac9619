"""Queries about users: their passphrases, as scrypt hashes, their scopes, and the lock-out after failed sign-ins.

A sign-in is counted as failed before its passphrase is compared, and taken back if it succeeds. So a burst of guesses,
also from several processes, has no more tries than the same guesses one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select, update

from openbell.stores.access import grants, scopes
from openbell.stores.access.tables import attempts, users

MEMORY_SECONDS = 86_400.0
"""After so long without a failure, failures are forgotten."""


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


@dataclass(frozen=True, slots=True)
class Limit:
    """How a key is locked: not for the first `free` failures, then for 1 s, 2 s, 4 s … up to `longest` seconds."""

    free: int
    longest: float

    def lock_seconds(self, failures: int) -> float:
        """Returns for how long a key is locked after so many failures."""
        return 0.0 if failures <= self.free else min(self.longest, 2.0 ** min(failures - self.free - 1, 60))


def begin_sign_in(connection: Connection, limits: Mapping[str, Limit], now: float) -> float:
    """Count a sign-in as failed under each key, and return 0.

    If a key is locked, nothing is counted, and the seconds to wait are returned.
    """
    connection.execute(delete(attempts).where(attempts.c.last_at <= now - MEMORY_SECONDS))
    rows = {row.key: row for row in connection.execute(select(attempts).where(attempts.c.key.in_(list(limits))))}
    wait = max((row.locked_until - now for row in rows.values()), default=0.0)
    if wait > 0:
        return wait
    for key, limit in limits.items():
        failures = rows[key].failures + 1 if key in rows else 1
        values = {"failures": failures, "last_at": now, "locked_until": now + limit.lock_seconds(failures)}
        if key in rows:
            connection.execute(update(attempts).where(attempts.c.key == key), values)
        else:
            connection.execute(insert(attempts), {"key": key, **values})
    return 0.0


def end_sign_in(connection: Connection, user_key: str, address_key: str) -> None:
    """Take back what `begin_sign_in` counted. The user's failures are forgotten; earlier ones of the address are not."""
    connection.execute(delete(attempts).where(attempts.c.key == user_key))
    own = attempts.c.key == address_key
    connection.execute(update(attempts).where(own).values(failures=attempts.c.failures - 1, locked_until=0.0))
