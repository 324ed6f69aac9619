"""The token of a consent form: the authorization request, sealed, so that nothing is stored before a user has consented.

The seal covers a cookie that only the browser has which was shown the form. The store remembers forms that were submitted.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
from base64 import urlsafe_b64decode
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from openbell.gateway.oauth.faults import OAuthFault
from openbell.gateway.oauth.secret_texts import base64url

SECONDS = 600.0
"""Time to fill in the form."""
_NONCE_BYTES = 16
_COOKIE = re.compile(r"[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """A request that was checked: what a client asks a user for."""

    client_id: str
    redirect_uri: str
    scopes: tuple[str, ...]
    resource: str
    challenge: str
    state: str | None


@dataclass(frozen=True, slots=True)
class SealedForm:
    """A new form: the token for its hidden field, and the cookie that belongs to it."""

    token: str
    cookie_name: str
    cookie: str


@dataclass(frozen=True, slots=True)
class OpenedForm:
    """A form that was submitted and is genuine. `nonce` must still be marked as used."""

    request: AuthorizationRequest
    nonce: str
    expires_at: float


class Forms:
    """Seals and opens forms with the key that all gateway processes share."""

    def __init__(self, key: bytes, *, is_secure: bool) -> None:
        """`is_secure`: browsers use https, so that cookies can be bound to this host."""
        self._key = hmac.digest(key, b"consent form", "sha256")
        self._prefix = "__Host-openbell-" if is_secure else "openbell-"

    def seal(self, request: AuthorizationRequest, now: float) -> SealedForm:
        """Returns a form for a request."""
        nonce, cookie = secrets.token_hex(_NONCE_BYTES), secrets.token_urlsafe(32)
        content = {"request": asdict(request), "nonce": nonce, "expires_at": now + SECONDS}
        payload = base64url(json.dumps(content).encode())
        return SealedForm(f"{payload}.{self._seal(payload, cookie)}", self._prefix + nonce[:16], cookie)

    def open(self, token: str, cookies: Iterable[str], now: float) -> OpenedForm:
        """Returns the form of a token; `cookies` are the Cookie headers of the request.

        Raises `OAuthFault` if it is forged, from another browser, or too old.
        """
        payload, _, seal = token.partition(".")
        try:
            content = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
            nonce, expires_at, fields = str(content["nonce"]), float(content["expires_at"]), content["request"]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise _again("The form is damaged.") from None
        cookie = _cookie(cookies, self._prefix + nonce[:16])
        if cookie is None or not hmac.compare_digest(self._seal(payload, cookie).encode(), seal.encode()):
            raise _again("The form does not belong to this browser.")
        if now >= expires_at:
            raise _again("The form is too old.")
        request = AuthorizationRequest(**{**fields, "scopes": tuple(fields["scopes"])})
        return OpenedForm(request, nonce, expires_at)

    def _seal(self, payload: str, cookie: str) -> str:
        return base64url(hmac.digest(self._key, f"{cookie}.{payload}".encode(), "sha256"))


def _cookie(headers: Iterable[str], name: str) -> str | None:
    """Returns our own cookie of a name; None if it is missing, twice there, or not one that we have set.

    Python's http.cookies unescapes the values of all cookies first, which takes seconds for a header of 15 kB in some of
    its patch levels (CVE-2024-7592).
    """
    found = [value for header in headers for value in re.findall(rf"(?:^|;) ?{re.escape(name)}=([^;]*)", header)]
    return found[0] if len(found) == 1 and _COOKIE.fullmatch(found[0]) else None


def _again(reason: str) -> OAuthFault:
    return OAuthFault("invalid_request", f"{reason} Go back to the application and start again.", 403)
