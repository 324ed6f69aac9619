"""Request ids: every request has one, in `scope["state"]["request_id"]`, and its response repeats it as X-Request-ID."""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable
from itertools import count

from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER = b"x-request-id"
_GOOD = re.compile(rb"[A-Za-z0-9._-]{1,64}")


class RequestIds:
    """Takes the client's id if it is 1–64 letters, digits, dots, dashes or underscores; otherwise it makes one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._numbers = count(1)
        # Ids are unique among processes. They are no secret, so a number is enough after that.
        self._prefix = secrets.token_hex(6)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = [value for name, value in scope["headers"] if name == HEADER]
        if len(given) == 1 and _GOOD.fullmatch(given[0]):
            value = given[0]
        else:
            value = b"%s-%x" % (self._prefix.encode(), next(self._numbers))
        scope.setdefault("state", {})["request_id"] = value.decode()

        def with_id(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                headers = [each for each in message.get("headers", ()) if each[0] != HEADER]
                message = {**message, "headers": [*headers, (HEADER, value)]}
            return send(message)

        await self._app(scope, receive, with_id)
