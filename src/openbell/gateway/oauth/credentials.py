"""Tokens as credentials: which principal an access token, or a static token, stands for.

What was read from the store is used again for at most a second, and only while no process has written to the store. So a
revocation takes effect within 20 ms, at once in the same process, and within a second if its announcement is lost.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass

from openbell.desk.bars.single_flight import SingleFlight
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
    expires_at: float | None


class _Version:
    """The version of a store, read once in each pass of the event loop.

    All requests that are handled in one pass had arrived before it began, so that the version is not older than they are.
    """

    def __init__(self, read: Callable[[], Hashable]) -> None:
        self._read = read
        self._value: Hashable = None
        self._is_current = False

    def __call__(self) -> Hashable:
        if not self._is_current:
            self._value = self._read()
            self._is_current = True
            asyncio.get_running_loop().call_soon(self._end_pass)
        return self._value

    def _end_pass(self) -> None:
        self._is_current = False


class _Recent:
    """What was found lately, by the hash of its token."""

    def __init__(
        self,
        store: AccessStore,
        resources: Resources,
        clock: Clock,
        find: Callable[[str], Awaitable[_Meaning | None]],
    ) -> None:
        self._version_now = _Version(store.version)
        self._resources = resources
        self._clock = clock
        self._find = find
        self._finding = SingleFlight()
        self._version: Hashable = None
        self._found: dict[str, tuple[float, _Meaning]] = {}

    async def principal(self, token: str, resource: str) -> Principal | None:
        """Returns the principal of a token, if it is valid now for a resource."""
        found = await self._get(token)
        if found is None or (found.expires_at is not None and self._clock.epoch() >= found.expires_at):
            return None
        return found.principal if self._resources.covers(found.resource, resource) else None

    async def _get(self, token: str) -> _Meaning | None:
        """Returns what a token stands for; None if it is unknown, which is not remembered."""
        version, key, now = self._version_now(), digest(token), time.monotonic()
        if version != self._version or len(self._found) >= _MOST:
            self._found, self._version = {}, version
        held = self._found.get(key)
        if held is not None and now - held[0] < _SECONDS:
            return held[1]
        # All calls that wait for it have seen the same version.
        found: _Meaning | None = await self._finding.run((version, key), lambda: self._find(key))
        # Not if the store was written to meanwhile: another call has noted the newer version.
        if found is not None and version == self._version:
            self._found[key] = (now, found)
        return found


class OAuthCredentials:
    """Access tokens that the token endpoint has issued."""

    def __init__(self, store: AccessStore, resources: Resources, clock: Clock) -> None:
        async def find(key: str) -> _Meaning | None:
            found = await store.read(grants.find_token, key)
            if found is None or found.kind != grants.ACCESS or not (scopes := frozenset(in_order(found.scopes))):
                return None
            return _Meaning(
                Principal(found.grant.subject, scopes, client=found.grant.client_id), found.resource, found.expires_at
            )

        self._recent = _Recent(store, resources, clock, find)

    async def principal(self, token: str, resource: str) -> Principal | None:
        """See `Credentials`. The subject is the user's name, and the scopes are those that the user has granted and has."""
        return await self._recent.principal(token, resource) if is_secret(token, ACCESS) else None


class StaticTokens:
    """Tokens that an operator has created (`openbell token add`), valid for the whole gateway."""

    def __init__(self, store: AccessStore, resources: Resources, clock: Clock) -> None:
        async def find(key: str) -> _Meaning | None:
            found = await store.read(static_tokens.find, key)
            if found is None or not (scopes := frozenset(in_order(found.scopes))):
                return None
            return _Meaning(Principal(found.subject, scopes, token=found.name), resources.base, found.expires_at)

        self._recent = _Recent(store, resources, clock, find)

    async def principal(self, token: str, resource: str) -> Principal | None:
        """See `Credentials`."""
        return await self._recent.principal(token, resource) if is_secret(token, STATIC) else None
