"""Refusals: an HTTP status, a reason for programs, and a sentence for people that names the next step."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

from starlette.types import Scope, Send

Headers = list[tuple[bytes, bytes]]
Count = Callable[[str], None]
"""Called with the reason of each refusal."""


def uncounted(_reason: str) -> None:
    """Counts nothing."""


@dataclass(frozen=True, slots=True)
class GuardRefusal:
    """A response that refuses a request."""

    status: int
    reason: str
    """A word that does not change between versions, such as `rate_limited`."""
    message: str
    retry_after: float | None = None
    """Seconds after which the same request may succeed; sent as whole seconds, rounded up."""
    close: bool = False
    """Close the connection, because the rest of the request cannot be read safely."""
    headers: tuple[tuple[bytes, bytes], ...] = ()

    @property
    def seconds(self) -> int | None:
        """`retry_after` in whole seconds, at least 1."""
        return None if self.retry_after is None else max(1, ceil(self.retry_after))

    def body(self) -> bytes:
        """Returns the body for a request that is not JSON-RPC."""
        return json.dumps({"error": self.reason, "message": self.message, **self._wait()}).encode()

    def rpc_body(self, request_id: Any) -> bytes:
        """Returns the body for a JSON-RPC request. The error's code is the HTTP status: MCP reserves no positive codes."""
        data = {"reason": self.reason, **self._wait()}
        error = {"code": self.status, "message": self.message, "data": data}
        return json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}).encode()

    def start(self, length: int) -> dict[str, Any]:
        """Returns the ASGI message that starts the response."""
        headers: Headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % length),
            (b"cache-control", b"no-store"),
            *self.headers,
        ]
        if self.seconds is not None:
            headers.append((b"retry-after", b"%d" % self.seconds))
        if self.close:
            headers.append((b"connection", b"close"))
        return {"type": "http.response.start", "status": self.status, "headers": headers}

    async def send(self, send: Send, body: bytes | None = None) -> None:
        """Send the whole response, with `body` instead of its own if given."""
        body = self.body() if body is None else body
        await send(self.start(len(body)))
        await send({"type": "http.response.body", "body": body})

    def _wait(self) -> dict[str, int]:
        return {} if self.seconds is None else {"retry_after": self.seconds}


Form = Callable[[Scope, GuardRefusal], bytes]
"""Returns the body of a refusal in the form of the API that was asked."""


def plain_form(_scope: Scope, refusal: GuardRefusal) -> bytes:
    """Returns the refusal's own body."""
    return refusal.body()
