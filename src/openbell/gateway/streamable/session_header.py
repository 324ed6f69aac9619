"""The header Mcp-Session-Id of one request. The guard repeats it in every response; here a session can begin."""

from __future__ import annotations

from collections.abc import Awaitable

from openbell.gateway.guard.headers import RequestHeaders
from openbell.gateway.guard.responses import SESSION, session_of
from openbell.gateway.streamable import wire


class SessionHeader:
    """Sends the messages of one response, with the id of a session that begins in its headers."""

    __slots__ = ("_begun", "_send", "is_valid", "session")

    def __init__(self, headers: RequestHeaders, send: wire.Send) -> None:
        given, self.is_valid = session_of(headers)
        self.session = None if given is None else given.decode("ascii")
        """The client's id, or that of a session which begins; None for no session."""
        self._begun = False
        self._send = send

    def begin(self, session: str) -> None:
        """Name a new session in the response."""
        self.session, self._begun = session, True

    def __call__(self, message: wire.Message) -> Awaitable[None]:
        """See ASGI's `send`."""
        if self._begun and self.session is not None and message["type"] == "http.response.start":
            headers = [*message["headers"], (SESSION, self.session.encode("ascii"))]
            message = {**message, "headers": headers}
        return self._send(message)
