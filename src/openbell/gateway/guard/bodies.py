"""Bodies: a bound on their size, whether it is declared or not, and on the time that they take.

The body is not read ahead: parts that the application does not read cost nothing. A request whose body breaks a limit is
answered here, and the application receives a disconnect.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from openbell.gateway.cancel_scope import Interruption
from openbell.gateway.guard.headers import headers_of
from openbell.gateway.guard.refusals import Count, Form, GuardRefusal, plain_form, uncounted

_GRACE = 3.0
"""Seconds before a body must have made progress."""
_SLOWEST = 1024
"""Bytes per second that a body must arrive with after that."""
_DRAIN_BYTES = 16 * 2**20
_DRAIN_SECONDS = 2.0
_DISCONNECTED: Message = {"type": "http.disconnect"}

_TWO_LENGTHS = GuardRefusal(
    400, "bad_length", "A request has either Content-Length, a whole number, or Transfer-Encoding.", close=True
)
_TOO_SLOW = GuardRefusal(408, "body_too_slow", "The body of the request did not arrive in time.", close=True)


class Bodies:
    """Refuses bodies that are too large (413), too slow (408) or of two lengths (400)."""

    def __init__(
        self, app: ASGIApp, *, limit: int, seconds: float, count: Count = uncounted, form: Form = plain_form
    ) -> None:
        """`limit` in bytes; `seconds` for the whole body. A body also needs 1 kB for each second after the third."""
        self._app = app
        self.count = count
        self.form = form
        self.limit = limit
        self.seconds = seconds
        self.too_large = GuardRefusal(
            413,
            "body_too_large",
            f"The body of a request may have {limit:,} bytes: send less, or raise OPENBELL_BODY_LIMIT.",
            close=True,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        length, refusal = self._declared(scope) if scope["type"] == "http" else (0, None)
        if refusal is not None:
            self.count(refusal.reason)
            await refusal.send(send, self.form(scope, refusal))
        elif length == 0:
            await self._app(scope, receive, send)
        else:
            await _Body(self, scope, receive, send).run(self._app, length)

    @staticmethod
    def _declared(scope: Scope) -> tuple[int | None, GuardRefusal | None]:
        """Returns the length of the body, None if it is not known yet; or why the request is refused."""
        headers = headers_of(scope)
        lengths, is_chunked = headers.all(b"content-length"), b"transfer-encoding" in headers
        # Two programs could end such a request at two places: the second would read the rest as another request.
        if len(lengths) > 1 or (lengths and (is_chunked or not lengths[0].isdigit())):
            return None, _TWO_LENGTHS
        return (None if is_chunked else int(lengths[0]) if lengths else 0), None


class _Body:
    """One body that is being read."""

    def __init__(self, limits: Bodies, scope: Scope, receive: Receive, send: Send) -> None:
        self._limits = limits
        self._scope = scope
        self._receive = receive
        self._send = send
        self._started: float | None = None
        self._size = 0
        self._complete = False
        self._responding = False
        self._refused = False

    async def run(self, app: ASGIApp, length: int | None) -> None:
        """Call the application with the body, or refuse a body that is declared too large."""
        if length is not None and length > self._limits.limit:
            await self._refuse(self._limits.too_large)
            return
        try:
            await app(self._scope, self.receive, self.send)
        except Exception:
            # An application that waits for a body may raise when its client disconnects.
            if not self._refused:
                raise

    async def receive(self) -> Message:
        """See ASGI."""
        if self._complete:
            return await self._receive()
        if self._refused:
            return _DISCONNECTED
        late = Interruption()
        timer = asyncio.get_running_loop().call_at(self._deadline(), late)
        try:
            with late:
                message = await self._receive()
        finally:
            timer.cancel()
        if late.happened:
            return await self._refuse(_TOO_SLOW)
        if message["type"] == "http.request":
            self._size += len(message.get("body", b""))
            if self._size > self._limits.limit:
                return await self._refuse(self._limits.too_large)
            self._complete = not message.get("more_body", False)
        return message

    def send(self, message: Message) -> Awaitable[None]:
        """See ASGI. After a refusal nothing is sent."""
        if self._refused:
            return asyncio.sleep(0)
        self._responding = True
        return self._send(message)

    def _deadline(self) -> float:
        """Returns the time of the loop at which the next part must have arrived."""
        if self._started is None:
            self._started = asyncio.get_running_loop().time()
        return self._started + min(self._limits.seconds, _GRACE + self._size / _SLOWEST)

    async def _refuse(self, refusal: GuardRefusal) -> Message:
        self._refused = True
        self._limits.count(refusal.reason)
        if not self._responding:
            body = self._limits.form(self._scope, refusal)
            await self._send(refusal.start(len(body)))
            if refusal is self._limits.too_large:
                # Many clients read the response after they have sent everything: a closed connection would hide it.
                await self._send({"type": "http.response.body", "body": body, "more_body": True})
                await self._drain()
                body = b""
            await self._send({"type": "http.response.body", "body": body})
        return _DISCONNECTED

    async def _drain(self) -> None:
        """Read and drop the rest of the body, up to a limit of bytes and seconds."""
        left = _DRAIN_BYTES
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                while left > 0:
                    message = await self._receive()
                    left -= len(message.get("body", b""))
                    if not message.get("more_body", False):
                        return
