"""Who asks: the checks between a request and the protocol, and the keys that stand for a bearer token.

A key is sent as `X-Api-Key`, or it is the one that this gateway gave to its own machine (`gateway.json`).
"""

from __future__ import annotations

import hmac
import logging
import re
from collections.abc import Callable
from typing import Protocol

from starlette.types import Scope as ASGIScope

from openbell.desk.quotes.arche.gateway_file import IDENTITY, PROOF, GatewayFile, signed
from openbell.desk.settings.principals import OPERATOR
from openbell.gateway.guard.headers import headers_of, is_from_other_page, is_local
from openbell.gateway.guard.refusals import GuardRefusal, Headers
from openbell.gateway.guard.responses import request_id_of
from openbell.gateway.oauth.scopes import DEFAULT, scope_text
from openbell.market.errors import OpenbellError
from openbell.protocol.session import Principal, Scope

log = logging.getLogger(__name__)

_BEARER = re.compile(rb"bearer +([A-Za-z0-9._~+/-]{1,4096}=*)", re.IGNORECASE)
_READER = Principal(OPERATOR, frozenset({Scope.READ}), anonymous=True)
_UNSIGNED = "a token is needed: scripts use one of openbell token add, WWW-Authenticate leads other clients to OAuth"
_ASKED = scope_text(DEFAULT)
"""The scope that a challenge without a tool names: clients ask for it first."""
_FROM_PAGE = GuardRefusal(
    403, "origin_not_allowed", "Web pages cannot read without a token: send one, or open the address itself."
)
_UNAVAILABLE = GuardRefusal(503, "unavailable", "The store of users and tokens does not answer: retry later.", 5.0)


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


Challenge = Callable[[str, str | None, str | None, str], str]
"""Returns the value of WWW-Authenticate for a resource, an error, a scope and the Host of the request."""


class Admission:
    """Returns the principal of a request."""

    def __init__(self, credentials: Credentials, challenge: Challenge, *, open_reading: bool = False) -> None:
        """With `open_reading`, clients on this machine may read without a token."""
        self._credentials = credentials
        self._challenge = challenge
        self._open_reading = open_reading

    async def admit(self, scope: ASGIScope, resource: str) -> Principal | GuardRefusal:
        """Returns the principal of the request's token, or why it has none."""
        given = headers_of(scope).all(b"authorization")
        if not given:
            if self._open_reading and is_local(scope):
                return _FROM_PAGE if is_from_other_page(scope) else _READER
            return self._refuse(scope, 401, resource, None, _ASKED, _UNSIGNED)
        found = _BEARER.fullmatch(given[0].strip()) if len(given) == 1 else None
        try:
            principal = None if found is None else await self._credentials.principal(found[1].decode("ascii"), resource)
        except OpenbellError as error:
            log.warning("tokens cannot be checked: %s", error.message)
            return _UNAVAILABLE
        if principal is None:
            text = (
                "one header Authorization: Bearer TOKEN is needed"
                if found is None
                else "the token is unknown, expired, revoked or for another resource"
            )
            return self._refuse(scope, 401, resource, "invalid_token", _ASKED, text)
        return principal

    def lacks(
        self, request: ASGIScope, missing: frozenset[Scope], principal: Principal, resource: str, what: str
    ) -> GuardRefusal:
        """Returns the refusal of a call that needs scopes which the token does not have.

        The challenge names them together with those of the token, because clients replace a token's scopes by those of the
        challenge.
        """
        text = f"{what} needs the scope {min(missing)}: authorize again with it, or add a token that has it"
        return self._refuse(request, 403, resource, "insufficient_scope", scope_text(principal.scopes | missing), text)

    def needs_token(self, request: ASGIScope, resource: str, what: str) -> GuardRefusal:
        """Returns the refusal of a call without a token that changes something."""
        return self._refuse(request, 401, resource, None, _ASKED, f"{what} needs a token: reading alone does not")

    def _refuse(
        self, request: ASGIScope, status: int, resource: str, error: str | None, scope: str | None, message: str
    ) -> GuardRefusal:
        reason = "unauthorized" if status == 401 else "forbidden"
        host = headers_of(request).text(b"host") or ""
        header = self._challenge(resource, error, scope, host).encode("latin-1")
        return GuardRefusal(status, reason, message, headers=((b"www-authenticate", header),))


class TokenCheck:
    """The right of a request that was admitted: a stream outlasts it, and must end when its token does."""

    def __init__(self, admission: Admission, request: ASGIScope, resource: str, principal: Principal) -> None:
        self._admission = admission
        self._request = request
        self._resource = resource
        self._principal = principal
        self.key = (tuple(headers_of(request).all(b"authorization")), resource, principal)
        """Equal for requests with the same token."""

    async def holds(self) -> bool:
        """Returns False if the token is no longer valid, or has other scopes. While it cannot be checked, it holds."""
        found = await self._admission.admit(self._request, self._resource)
        return found == self._principal or found is _UNAVAILABLE


_ANY_BEARER = re.compile(rb"bearer +(\S+)", re.IGNORECASE)
_KEY = b"x-api-key"
_TOKEN = b"authorization"


class OwnKey:
    """The key in `gateway.json`. Only its hash is kept."""

    def __init__(self, file: GatewayFile | None = None) -> None:
        """Without a file, no key is accepted."""
        self._digest = file.digest if file else b""

    def opens(self, scope: ASGIScope) -> bool:
        """Returns True if a request proves the knowledge of the key, and has no token."""
        headers = headers_of(scope)
        given = headers.all(PROOF.encode())
        if not self._digest or len(given) != 1 or _KEY in headers or _TOKEN in headers:
            return False
        return hmac.compare_digest(given[0], signed(self._digest, PROOF, request_id_of(scope)).encode())

    def answer(self, scope: ASGIScope) -> Headers:
        """Returns the headers of the response to a request that this key opens."""
        return [(IDENTITY.encode(), signed(self._digest, IDENTITY, request_id_of(scope)).encode())]


def with_token(scope: ASGIScope) -> ASGIScope:
    """Returns the request with its key as a bearer token.

    Two keys, or a key and another token, become two tokens, which are refused.
    """
    keys = [value.strip() for name, value in scope["headers"] if name == _KEY]
    if not keys:
        return scope
    tokens = [value.strip() for name, value in scope["headers"] if name == _TOKEN]
    same = [
        found for each in tokens if (found := _ANY_BEARER.fullmatch(each)) and hmac.compare_digest(found[1], keys[0])
    ]
    headers = [each for each in scope["headers"] if each[0] != _TOKEN]
    if len(keys) == 1 and len(same) == len(tokens) <= 1:
        headers.append((_TOKEN, b"Bearer " + keys[0]))
    else:
        headers += [(_TOKEN, each) for each in (*keys, *tokens)]
    return {**scope, "headers": headers}
