"""One POST of an admitted client: what was sent, and how it is answered."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from openbell.gateway.guard.limits import Claim
from openbell.gateway.streamable import wire
from openbell.protocol.session import Principal


@dataclass(frozen=True)
class Post:
    """A POST whose token was accepted."""

    scope: wire.Scope
    receive: wire.Receive
    send: wire.Send
    principal: Principal
    claim: Claim
    """The slot of the request."""

    @cached_property
    def version(self) -> str | None:
        """The protocol revision of the header."""
        return wire.text(wire.header(self.scope, wire.VERSION))

    @cached_property
    def session(self) -> str | None:
        """The session id of the header."""
        return wire.text(wire.header(self.scope, wire.SESSION))

    @cached_property
    def echo(self) -> wire.Headers:
        """The headers of the response."""
        return () if self.session is None else ((wire.SESSION, self.session.encode("latin-1")),)

    @cached_property
    def streams(self) -> bool:
        """True if the client accepts a stream of events."""
        return wire.accepts(self.scope, wire.EVENTS, missing=False)

    @property
    def is_json(self) -> bool:
        """True if the body is declared as JSON that is not compressed."""
        kind, _, _ = (wire.header(self.scope, b"content-type") or b"").partition(b";")
        coding = wire.header(self.scope, b"content-encoding")
        return kind.strip().lower() == wire.JSON and (coding is None or coding.lower() == b"identity")

    def with_session(self, session: str) -> Post:
        """Returns the same POST with a session that begins with it."""
        made = replace(self)
        vars(made)["session"] = session
        return made

    async def answer(self, status: int, body: bytes = b"") -> None:
        """Send a whole response."""
        await wire.answer(self.send, status, body, self.echo)

    async def refuse(self, status: int, code: int, message: str, request: Any = None, data: Any = None) -> None:
        """Send an error response."""
        await self.answer(status, wire.error(request, code, message, data))
