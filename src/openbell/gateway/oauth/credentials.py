"""Tokens as credentials: which principal an access token, or a static token, stands for.

What was read from the store is used again for at most a second, and only while no process has written to the store. So a
revocation takes effect at the next request, or within a second if its announcement is lost.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from openbell.gateway.oauth.resources import Resources
from openbell.gateway.oauth.scopes import in_order
from openbell.gateway.oauth.secret_texts import ACCESS, STATIC, digest, is_secret
from openbell.market.clock import Clock
from openbell.protocol.session import Principal
from openbell.stores.access import grants, static_tokens
from openbell.stores.access.grants import Token
from openbell.stores.access.static_tokens import StaticToken
from openbell.stores.access.store import AccessStore

T = TypeVar("T")
_SECONDS = 1.0
_MOST = 4096


class _Recent(Generic[T]):
    """What was found lately, by the hash of its token."""

    def __init__(self, version: Callable[[], Hashable], find: Callable[[str], Awaitable[T | None]]) -> None:
        self._version_now = version
        self._find = find
        self._version: Hashable = None
        self._found: dict[str, tuple[float, T]] = {}

    async def get(self, token: str) -> T | None:
        """Returns what a token stands for; None if it is unknown, which is not remembered."""
        version, key, now = self._version_now(), digest(token), time.monotonic()
        if version != self._version or len(self._found) >= _MOST:
            self._found, self._version = {}, version
        at, held = self._found.get(key, (-_SECONDS, None))
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
        async def find(key: str) -> Token | None:
            return await store.read(lambda connection: grants.find_token(connection, key))

        self._resources = resources
        self._clock = clock
        self._recent = _Recent[Token](store.version, find)

    async def principal(self, token: str, resource: str) -> Principal | None:
        """See `Credentials`: the subject is the user's name, and the scopes are those that the user has granted and has."""
        found = await self._recent.get(token) if is_secret(token, ACCESS) else None
        if found is None or found.kind != grants.ACCESS or self._clock.epoch() >= found.expires_at:
            return None
        scopes = frozenset(in_order(found.scopes))
        if not scopes or not self._resources.covers(found.resource, resource):
            return None
        return Principal(found.grant.subject, scopes)


class StaticTokens:
    """Tokens that an operator has created (`openbell token add`), valid for the whole gateway."""

    def __init__(self, store: AccessStore, resources: Resources, clock: Clock) -> None:
        async def find(key: str) -> StaticToken | None:
            return await store.read(lambda connection: static_tokens.find(connection, key))

        self._resources = resources
        self._clock = clock
        self._recent = _Recent[StaticToken](store.version, find)

    async def principal(self, token: str, resource: str) -> Principal | None:
        """See `Credentials`."""
        found = await self._recent.get(token) if is_secret(token, STATIC) else None
        if found is None or (found.expires_at is not None and self._clock.epoch() >= found.expires_at):
            return None
        scopes = frozenset(in_order(found.scopes))
        if not scopes or not self._resources.covers(self._resources.base, resource):
            return None
        return Principal(found.subject, scopes)
