"""The header Mcp-Session-Id: sent back with every response to a request that has it, and with those that begin a session."""

from __future__ import annotations

import re
from collections.abc import Awaitable

from openbell.gateway.guard.headers import RequestHeaders
from openbell.gateway.streamable import wire

LONGEST_ID = 1024
_VISIBLE = re.compile(rf"[\x21-\x7e]{{1,{LONGEST_ID}}}")


class SessionHeader:
    """Sends the messages of one response, with the session id in its headers."""

    __slots__ = ("_send", "is_valid", "session")

    def __init__(self, headers: RequestHeaders, send: wire.Send) -> None:
        given = headers.text(wire.SESSION)
        self.is_valid = given is None or _VISIBLE.fullmatch(given) is not None
        self.session = given if self.is_valid else None
        """The id that the response has: the client's, or that of a session which begins; None for no header."""
        self._send = send

    def __call__(self, message: wire.Message) -> Awaitable[None]:
        """See ASGI's `send`."""
        if self.session is not None and message["type"] == "http.response.start":
            headers = [*message["headers"], (wire.SESSION, self.session.encode("ascii"))]
            message = {**message, "headers": headers}
        return self._send(message)
