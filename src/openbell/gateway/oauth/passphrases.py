"""Passphrases: their hashes (scrypt), and the check of a sign-in with its lock-out."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
import unicodedata
from dataclasses import dataclass

from openbell.desk.settings.principals import LONGEST_PASSPHRASE
from openbell.gateway.guard.limits import SIGN_IN, CallLimits
from openbell.gateway.oauth.secret_texts import digest
from openbell.market.clock import Clock
from openbell.stores.access import users
from openbell.stores.access.store import AccessStore
from openbell.stores.access.users import Limit, PassphraseHash, User

log = logging.getLogger(__name__)

USER_LIMIT = Limit(free=5, longest=60.0)
"""The longest lock is short, so that a stranger's guesses do not keep the user out for long."""
ADDRESS_LIMIT = Limit(free=10, longest=900.0)
_AT_ONCE = 2
"""Hashes that are computed at the same time; each needs 32 MiB."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of scrypt: memory is 128 × n × r bytes, time grows with n × r × p."""

    n: int = 2**15
    r: int = 8
    p: int = 3


@dataclass(frozen=True, slots=True)
class Locked:
    """Too many sign-ins have failed."""

    seconds: float
    """How long to wait."""


def hashed(passphrase: str, cost: Cost = Cost()) -> PassphraseHash:  # noqa: B008 - immutable
    """Returns the hash of a new passphrase. Takes a quarter of a second."""
    salt = secrets.token_bytes(16)
    return PassphraseHash(_scrypt(passphrase, salt, cost.n, cost.r, cost.p), salt, cost.n, cost.r, cost.p)


def fits(passphrase: str, held: PassphraseHash) -> bool:
    """Returns True if a passphrase is the one of a hash."""
    return hmac.compare_digest(_scrypt(passphrase, held.salt, held.n, held.r, held.p), held.hash)


def _scrypt(passphrase: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    # The same letters may be typed as different characters on different machines.
    text = unicodedata.normalize("NFC", passphrase).encode("utf-8", "surrogatepass")
    return hashlib.scrypt(text, salt=salt, n=n, r=r, p=p, maxmem=2 * 128 * n * r + 2**20 * p)


class SignIn:
    """Checks names and passphrases. An unknown name takes as long as a wrong passphrase and is locked in the same way."""

    def __init__(
        self,
        store: AccessStore,
        clock: Clock,
        cost: Cost = Cost(),  # noqa: B008 - immutable
        limits: CallLimits | None = None,
    ) -> None:
        """`limits` bounds the attempts of an address per minute, right or wrong."""
        self._limits = CallLimits({}) if limits is None else limits
        self._store = store
        self._clock = clock
        # Compared with if there is no such user; it fits no passphrase.
        self._nobody = PassphraseHash(secrets.token_bytes(64), secrets.token_bytes(16), cost.n, cost.r, cost.p)
        self._free = asyncio.Semaphore(_AT_ONCE)

    async def check(self, name: str, passphrase: str, address: str) -> User | Locked | None:
        """Returns the user; None if name or passphrase is wrong; `Locked` if nothing was compared."""
        if (wait := self._limits.take(address, SIGN_IN)) is not None:
            return Locked(wait)
        user_key, address_key = f"user {digest(name)}", f"address {address}"
        limits = {user_key: USER_LIMIT, address_key: ADDRESS_LIMIT}
        now = self._clock.epoch()
        wait = await self._store.write(users.begin_sign_in, limits, now)
        shown = await self.shown_name(name)
        if wait > 0:
            log.warning("a sign-in as %s from %s was refused: locked for %.0f s", shown, address, wait)
            return Locked(wait)
        user = await self._store.read(users.find, name)
        held = self._nobody if user is None else user.passphrase
        async with self._free:
            right = await asyncio.to_thread(fits, passphrase[:LONGEST_PASSPHRASE], held)
        if user is None or not right:
            log.warning("a sign-in as %s from %s failed", shown, address)
            return None
        await self._store.write(users.end_sign_in, user_key, address_key)
        return user

    async def shown_name(self, name: str) -> str:
        """Returns the name of a user as logs may have it; of others only that: people type passphrases into wrong fields."""
        return name if await self._store.read(users.find, name) is not None else "an unknown user"

    async def has_users(self) -> bool:
        """Returns True if there is a user who can sign in."""
        return await self._store.read(users.count) > 0
