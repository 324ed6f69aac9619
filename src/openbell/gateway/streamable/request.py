"""One POST of an admitted client: what was sent, and how it is answered."""

from __future__ import annotations

from typing import Any

from openbell.gateway.guard.headers import RequestHeaders
from openbell.gateway.guard.limits import Claim
from openbell.gateway.streamable import wire
from openbell.gateway.streamable.session_header import SessionHeader
from openbell.protocol.replies import Replies
from openbell.protocol.session import Principal


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
