"""Keys of requests: `X-Api-Key` in place of a bearer token, and the key that this gateway gave to its own machine."""

from __future__ import annotations

import hmac
import re

from starlette.types import Scope

from openbell.desk.quotes.arche.gateway_file import IDENTITY, PROOF, GatewayFile, signed
from openbell.gateway.guard.headers import headers_of
from openbell.gateway.guard.refusals import Headers
from openbell.gateway.guard.responses import request_id_of

_BEARER = re.compile(rb"bearer +(\S+)", re.IGNORECASE)
_KEY = b"x-api-key"
_TOKEN = b"authorization"


class OwnKey:
    """The key in `gateway.json`. Only its hash is kept."""

    def __init__(self, file: GatewayFile | None = None) -> None:
        """Without a file, no key is accepted."""
        self._digest = file.digest if file else b""

    def opens(self, scope: Scope) -> bool:
        """Returns True if a request proves the knowledge of the key, and has no token."""
        headers = headers_of(scope)
        given = headers.all(PROOF.encode())
        if not self._digest or len(given) != 1 or _KEY in headers or _TOKEN in headers:
            return False
        return hmac.compare_digest(given[0], signed(self._digest, PROOF, request_id_of(scope)).encode())

    def answer(self, scope: Scope) -> Headers:
        """Returns the headers of the response to a request that this key opens."""
        return [(IDENTITY.encode(), signed(self._digest, IDENTITY, request_id_of(scope)).encode())]


def with_token(scope: Scope) -> Scope:
    """Returns the request with its key as a bearer token.

    Two keys, or a key and another token, become two tokens, which are refused.
    """
    keys = [value.strip() for name, value in scope["headers"] if name == _KEY]
    if not keys:
        return scope
    tokens = [value.strip() for name, value in scope["headers"] if name == _TOKEN]
    same = [found for each in tokens if (found := _BEARER.fullmatch(each)) and hmac.compare_digest(found[1], keys[0])]
    headers = [each for each in scope["headers"] if each[0] != _TOKEN]
    if len(keys) == 1 and len(same) == len(tokens) <= 1:
        headers.append((_TOKEN, b"Bearer " + keys[0]))
    else:
        headers += [(_TOKEN, each) for each in (*keys, *tokens)]
    return {**scope, "headers": headers}
