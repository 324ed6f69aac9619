"""Who asks: the checks between a request and the protocol."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Protocol

from openbell.desk.principals import OPERATOR
from openbell.gateway.streamable import wire
from openbell.protocol.session import Principal, Scope

_BEARER = re.compile(rb"bearer +([A-Za-z0-9._~+/-]{1,4096}=*)", re.IGNORECASE)
_FORWARDED = frozenset({b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip", b"via"})
_READER = Principal(OPERATOR, frozenset({Scope.READ}))


class Credentials(Protocol):
    """Knows which principal a token stands for."""

    async def principal(self, token: str, resource: str) -> Principal | None:
        """Returns the principal of a token that is valid now for a resource (the URL of an endpoint); None if it is not."""


class AnyOf:
    """Tokens of several kinds."""

    def __init__(self, *kinds: Credentials) -> None:
        self._kinds = kinds

    async def principal(self, token: str, resource: str) -> Principal | None:
        """See `Credentials`."""
        for kind in self._kinds:
            if (found := await kind.principal(token, resource)) is not None:
                return found
        return None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not admitted: an HTTP status and its WWW-Authenticate header."""

    status: int
    challenge: str
    message: str

    async def send(self, send: wire.Send) -> None:
        """Send it as the response."""
        headers = ((b"www-authenticate", self.challenge.encode("latin-1")),)
        await wire.answer(send, self.status, wire.error(None, -32001, self.message), headers)


Challenge = Callable[[str, str | None, str | None], str]
"""Returns the value of WWW-Authenticate for a resource, an error and a scope."""


class Admission:
    """Returns the principal of a request."""

    def __init__(self, credentials: Credentials, challenge: Challenge, *, open_reading: bool = False) -> None:
        """With `open_reading`, clients on this machine may read without a token."""
        self._credentials = credentials
        self._challenge = challenge
        self._open_reading = open_reading

    async def admit(self, scope: wire.Scope, resource: str) -> Principal | Refusal:
        """Returns the principal of the request's token, or why it has none."""
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if not given:
            if self._open_reading and _is_local(scope):
                return _READER
            return Refusal(401, self._challenge(resource, None, None), "a token is needed: see WWW-Authenticate")
        found = _BEARER.fullmatch(given[0].strip()) if len(given) == 1 else None
        if found is None:
            return self._invalid(resource, "one header Authorization: Bearer TOKEN is needed")
        principal = await self._credentials.principal(found[1].decode("ascii"), resource)
        if principal is None:
            return self._invalid(resource, "the token is unknown, expired, revoked or for another resource")
        return principal

    def _invalid(self, resource: str, message: str) -> Refusal:
        return Refusal(401, self._challenge(resource, "invalid_token", None), message)

    def lacks(self, scope: Scope, resource: str, what: str) -> Refusal:
        """Returns the refusal of a call that needs another scope."""
        text = f"{what} needs the scope {scope}: authorize again with it"
        return Refusal(403, self._challenge(resource, "insufficient_scope", str(scope)), text)


def _is_local(scope: wire.Scope) -> bool:
    """Returns True if the client is on this machine, and not a proxy on this machine."""
    client = scope.get("client")
    if not client or any(name in _FORWARDED for name, _ in scope["headers"]):
        return False
    try:
        return ip_address(client[0]).is_loopback
    except ValueError:
        return False
