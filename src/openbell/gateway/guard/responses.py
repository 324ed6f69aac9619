"""The headers of every response: the ids of the request and of its session, the security headers of pages, and no CORS."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from openbell.gateway.guard.headers import RequestHeaders, headers_of
from openbell.gateway.guard.refusals import Headers
from openbell.gateway.guard.request_ids import HEADER, RequestIds

SESSION = b"mcp-session-id"
LONGEST_SESSION = 1024
_CORS = b"access-control-"
_VISIBLE = re.compile(rb"[\x21-\x7e]{1,%d}" % LONGEST_SESSION)


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
            if name != HEADER and not name.startswith(_CORS):
                completed.append(each)
                is_page = is_page or (name == b"content-type" and each[1][:9].lower() == b"text/html")
        if is_page:
            names = {each[0].lower() for each in completed}
            completed += [each for each in self._page_headers if each[0] not in names]
        completed.append((HEADER, number))
        if session is not None:
            completed.append((SESSION, session))
        return completed
