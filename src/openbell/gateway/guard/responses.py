"""The headers of every response: the request's id, the security headers of pages, and no CORS."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from openbell.gateway.guard.headers import headers_of
from openbell.gateway.guard.refusals import Headers
from openbell.gateway.guard.request_ids import HEADER, RequestIds

_CORS = b"access-control-"


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
        number = self._ids.of(headers_of(scope))
        scope.setdefault("state", {})["request_id"] = number.decode()

        def completed(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                message = {**message, "headers": self._completed(message.get("headers", ()), number)}
            return send(message)

        await self._app(scope, receive, completed)

    def _completed(self, given: Iterable[tuple[bytes, bytes]], number: bytes) -> Headers:
        """Returns the headers of a response with the request's id."""
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
        return completed
