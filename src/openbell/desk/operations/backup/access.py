"""Who may use a restored home: a restore makes no user, token or consent valid that the operator has removed since."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from openbell.desk.settings.access import FILE
from openbell.market.errors import StoreError
from openbell.stores.sqlite_connections import copy_database, open_reader


@dataclass(frozen=True, slots=True)
class AccessCopy:
    """What is valid in a database of users and tokens: names by a key that differs after every change."""

    users: dict[str, str]
    tokens: dict[str, str]
    consents: dict[str, str]
    """Users by the id of what they have granted to a client."""

    def besides(self, other: AccessCopy) -> AccessCopy:
        """Returns what is valid here and not there."""
        return AccessCopy(
            _besides(self.users, other.users),
            _besides(self.tokens, other.tokens),
            _besides(self.consents, other.consents),
        )

    def __bool__(self) -> bool:
        """Returns True if anything is valid."""
        return bool(self.users or self.tokens or self.consents)


NOTHING = AccessCopy({}, {}, {})


@dataclass(frozen=True, slots=True)
class RestoredAccess:
    """What a restore has done with users and tokens."""

    from_backup: bool
    """Whether those of the backup are valid, as they were when it was made."""
    differs: AccessCopy
    """What is valid in the backup alone: it is valid again, or not used."""
    unreadable: str | None = None
    """Why those of the old home could not be kept."""


def put_access(old_home: Path, building: Path, *, keep_tokens: bool) -> RestoredAccess:
    """Choose the database of users and tokens for a home that is being restored. Raises `OSError`.

    Those of the old home stay valid. Without them nothing is valid, unless the operator keeps the tokens of the backup.
    """
    target, old = building / FILE, old_home / FILE
    copied, known = _read(target), _read(old)
    if keep_tokens:
        return RestoredAccess(True, copied.besides(known))
    target.unlink(missing_ok=True)
    unreadable = None
    if old.exists():
        try:
            target.touch(0o600)
            copy_database(old, target)
        except StoreError as error:
            target.unlink(missing_ok=True)
            unreadable = error.message
    return RestoredAccess(False, copied.besides(known), unreadable)


def _read(path: Path) -> AccessCopy:
    """Returns what is valid in a database; nothing if it does not exist or cannot be read."""
    if not path.exists():
        return NOTHING
    now = time.time()
    try:
        with closing(open_reader(path)) as db:
            users = dict(db.execute("SELECT salt || hash, name FROM users"))
            tokens = dict(
                db.execute("SELECT hash, name FROM static_tokens WHERE expires_at IS NULL OR expires_at > ?", (now,))
            )
            granted = "SELECT id, subject FROM grants WHERE revoked_at IS NULL AND expires_at > ?"
            consents = dict(db.execute(granted, (now,)))
    except sqlite3.Error:
        return NOTHING
    return AccessCopy(users, tokens, consents)


def _besides(mine: dict[str, str], others: dict[str, str]) -> dict[str, str]:
    return {key: name for key, name in mine.items() if key not in others}
