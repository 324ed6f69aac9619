"""Security headers of HTML pages: no scripts, no frames, no caches, no other sites."""

from __future__ import annotations

from collections.abc import Awaitable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from openbell.desk.settings import Settings

_CSP = (
    b"default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; "
    b"frame-ancestors 'none'"
)
_ALWAYS = (
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


def page_headers(settings: Settings) -> tuple[tuple[bytes, bytes], ...]:
    """Returns the headers of pages. Browsers may insist on https only if the public address has it."""
    return (*_ALWAYS, _HSTS) if settings.public_url.startswith("https://") else _ALWAYS


class Pages:
    """Adds the headers to every HTML response. A header that the application has set is kept as it is."""

    def __init__(self, app: ASGIApp, headers: tuple[tuple[bytes, bytes], ...]) -> None:
        self._app = app
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""

        def secured(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                given = list(message.get("headers", ()))
                for name, value in given:
                    if name.lower() == b"content-type" and value[:9].lower() == b"text/html":
                        names = {each.lower() for each, _ in given}
                        added = [each for each in self._headers if each[0] not in names]
                        return send({**message, "headers": [*given, *added]})
            return send(message)

        await self._app(scope, receive, secured)
