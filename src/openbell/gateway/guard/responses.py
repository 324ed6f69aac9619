"""The headers of every response: the ids of the request and of its session, the security headers of pages, and no CORS."""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Iterable
from itertools import count

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from openbell.desk.settings import Settings
from openbell.gateway.guard.headers import RequestHeaders, headers_of
from openbell.gateway.guard.refusals import Headers

SESSION = b"mcp-session-id"
LONGEST_SESSION = 1024
_CORS = b"access-control-"
_VISIBLE = re.compile(rb"[\x21-\x7e]{1,%d}" % LONGEST_SESSION)
REQUEST_ID = b"x-request-id"
_GOOD_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_CSP = (
    b"default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; "
    b"frame-ancestors 'none'"
)
_PAGE_HEADERS = (
    (b"content-security-policy", _CSP),
    (b"x-frame-options", b"DENY"),
    (b"x-content-type-options", b"nosniff"),
    # With `no-referrer`, browsers send `Origin: null` with a form, which `Hosts` refuses.
    (b"referrer-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=()"),
)
_HSTS = (b"strict-transport-security", b"max-age=31536000")


def request_id_of(scope: Scope) -> str:
    """Returns the id that a request was given; empty before."""
    return str(scope.get("state", {}).get("request_id", ""))


def session_of(headers: RequestHeaders) -> tuple[bytes | None, bool]:
    """Returns the session id of a request, if it has a valid one, and False if it has one that is not valid."""
    given = headers.first(SESSION)
    is_valid = given is None or _VISIBLE.fullmatch(given) is not None
    return (given if is_valid else None), is_valid


class Responses:
    """Gives each request its id, and completes the headers of its response."""

    def __init__(self, app: ASGIApp, page_headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        """`page_headers` are added to HTML pages, unless the application has set them itself."""
        self._app = app
        self._ids = RequestIds()
        self._page_headers = tuple(page_headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = headers_of(scope)
        number = self._ids.of(headers)
        session, _ = session_of(headers)
        scope.setdefault("state", {})["request_id"] = number.decode()

        def completed(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                message = {**message, "headers": self._completed(message.get("headers", ()), number, session)}
            return send(message)

        await self._app(scope, receive, completed)

    def _completed(self, given: Iterable[tuple[bytes, bytes]], number: bytes, session: bytes | None) -> Headers:
        """Returns the headers of a response with the request's id, and with that of the session that the client names."""
        completed: Headers = []
        is_page = False
        for each in given:
            name = each[0].lower()
            # Without CORS headers, pages of other origins cannot read a response.
            if name != REQUEST_ID and not name.startswith(_CORS):
                completed.append(each)
                is_page = is_page or (name == b"content-type" and each[1][:9].lower() == b"text/html")
        if is_page:
            names = {each[0].lower() for each in completed}
            completed += [each for each in self._page_headers if each[0] not in names]
        completed.append((REQUEST_ID, number))
        if session is not None:
            completed.append((SESSION, session))
        return completed


class RequestIds:
    """Takes the client's id if it is 1–64 letters, digits, dots, dashes or underscores; otherwise it makes one."""

    def __init__(self) -> None:
        self._numbers = count(1)
        # Ids are unique among processes. They are no secret, so a number is enough after that.
        self._prefix = secrets.token_hex(6).encode()

    def of(self, headers: RequestHeaders) -> bytes:
        """Returns the id of a request."""
        given = headers.all(REQUEST_ID)
        if len(given) == 1 and _GOOD_ID.fullmatch(given[0]):
            return given[0]
        return b"%s-%x" % (self._prefix, next(self._numbers))


def page_headers(settings: Settings) -> tuple[tuple[bytes, bytes], ...]:
    """Returns the headers of pages. Browsers may insist on https only if the public address has it."""
    return (*_PAGE_HEADERS, _HSTS) if settings.public_url.startswith("https://") else _PAGE_HEADERS
