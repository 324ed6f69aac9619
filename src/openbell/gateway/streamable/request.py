"""One POST of an admitted client: what was sent, and how it is answered, with the header Mcp-Session-Id."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from openbell.gateway.guard.headers import RequestHeaders
from openbell.gateway.guard.limits import Claim
from openbell.gateway.guard.responses import SESSION, session_of
from openbell.gateway.streamable import wire
from openbell.protocol.session import Principal, Replies


class McpRequest:
    """A POST whose token was accepted."""

    __slots__ = ("claim", "echo", "headers", "principal", "receive", "replies", "scope", "send", "streams", "version")

    def __init__(
        self,
        scope: wire.Scope,
        headers: RequestHeaders,
        receive: wire.Receive,
        echo: SessionHeader,
        principal: Principal,
        claim: Claim,
    ) -> None:
        """`echo` sends the response, `claim` is the slot of the request."""
        self.scope = scope
        self.headers = headers
        self.receive = receive
        self.echo = echo
        self.send: wire.Send = echo
        self.principal = principal
        self.claim = claim
        self.version = headers.text(wire.VERSION)
        """The protocol revision of the header."""
        self.replies = Replies()
        """Work that runs after the responses have been sent."""
        self.streams = wire.accepts(headers, wire.EVENTS, missing=False)
        """True if the client accepts a stream of events."""

    @property
    def session(self) -> str | None:
        """The session id of the header, or of the session that begins with this request."""
        return self.echo.session

    @property
    def is_json(self) -> bool:
        """True if the body is declared as JSON that is not compressed."""
        kind, _, _ = (self.headers.first(b"content-type") or b"").partition(b";")
        coding = self.headers.first(b"content-encoding")
        return kind.strip().lower() == wire.JSON and (coding is None or coding.lower() == b"identity")

    async def answer(self, status: int, body: bytes = b"") -> None:
        """Send a whole response."""
        await wire.answer(self.send, status, body)

    async def refuse(self, status: int, code: int, message: str, request: Any = None, data: Any = None) -> None:
        """Send an error response."""
        await self.answer(status, wire.error(request, code, message, data))


class SessionHeader:
    """Sends the messages of one response, with the id of a session that begins in its headers.

    The guard repeats the client's own id in every response.
    """

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
