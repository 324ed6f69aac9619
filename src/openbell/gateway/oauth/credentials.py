"""Tokens as credentials: which principal an access token, or a static token, stands for.

What was read from the store is used again for at most a second, and only while no process has written to the store. So a
revocation takes effect within 20 ms, at once in the same process, and within a second if its announcement is lost.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Hashable, Iterable
from dataclasses import dataclass
from math import inf

from openbell.gateway.oauth.resources import Resources
from openbell.gateway.oauth.scopes import in_order
from openbell.gateway.oauth.secret_texts import ACCESS, STATIC, digest, is_secret
from openbell.market.clock import Clock
from openbell.protocol.session import Principal
from openbell.stores.access import grants, static_tokens
from openbell.stores.access.store import AccessStore

_SECONDS = 1.0
_MOST = 4096


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What a token stands for."""

    principal: Principal
    resource: str
    expires_at: float

    def valid_principal(self, resource: str, resources: Resources, now: float) -> Principal | None:
        """Returns the principal if the token is valid now for a resource."""
        valid = now < self.expires_at and self.principal.scopes and resources.covers(self.resource, resource)
        return self.principal if valid else None


class _Recent:
    """The tokens that were found lately, by their hashes."""

    def __init__(self, version: Callable[[], Hashable], find: Callable[[str], Awaitable[_Meaning | None]]) -> None:
        self._version_now = version
        self._find = find
        self._version: Hashable = None
        self._found: dict[str, tuple[float, _Meaning]] = {}

    async def get(self, token: str) -> _Meaning | None:
        """Returns what a token stands for; None if it is unknown, which is not remembered."""
        version, key, now = self._version_now(), digest(token), time.monotonic()
        if version != self._version or len(self._found) >= _MOST:
            self._found, self._version = {}, version
        at, held = self._found.get(key, (now - _SECONDS, None))
        if held is not None and now - at < _SECONDS:
            return held
        found = await self._find(key)
        # Not if the store was written to meanwhile: another call has noted the newer version.
        if found is not None and version == self._version:
            self._found[key] = (now, found)
        return found


class OAuthCredentials:
    """Access tokens that the token endpoint has issued."""

    def __init__(self, store: AccessStore, resources: Resources, clock: Clock) -> None:
        async def find(key: str) -> _Meaning | None:
            found = await store.read(lambda connection: grants.find_token(connection, key))
            if found is None or found.kind != grants.ACCESS:
                return None
            return _Meaning(_principal(found.grant.subject, found.scopes), found.resource, found.expires_at)

        self._resources = resources
        self._clock = clock
        self._recent = _Recent(store.version, find)

    async def principal(self, token: str, resource: str) -> Principal | None:
        """See `Credentials`: the subject is the user's name, and the scopes are those that the user has granted and has."""
        found = await self._recent.get(token) if is_secret(token, ACCESS) else None
        return None if found is None else found.valid_principal(resource, self._resources, self._clock.epoch())


class StaticTokens:
    """Tokens that an operator has created (`openbell token add`), valid for the whole gateway."""

    def __init__(self, store: AccessStore, resources: Resources, clock: Clock) -> None:
        async def find(key: str) -> _Meaning | None:
            found = await store.read(lambda connection: static_tokens.find(connection, key))
            if found is None:
                return None
            end = inf if found.expires_at is None else found.expires_at
            return _Meaning(_principal(found.subject, found.scopes), resources.base, end)

        self._resources = resources
        self._clock = clock
        self._recent = _Recent(store.version, find)

    async def principal(self, token: str, resource: str) -> Principal | None:
        """See `Credentials`."""
        found = await self._recent.get(token) if is_secret(token, STATIC) else None
        return None if found is None else found.valid_principal(resource, self._resources, self._clock.epoch())


def _principal(subject: str, scopes: Iterable[str]) -> Principal:
    return Principal(subject, frozenset(in_order(scopes)))
