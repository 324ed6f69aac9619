"""Batches: several messages in one POST, which only clients of revision 2025-03-26 may send.

The messages are handled one after the other, each as if it had been sent alone: with its own check of token, scopes and rate
limit, and its own line in the audit log. The responses are sent together as one JSON array, after the last of them is known.
A client that disconnects before is sent nothing: what has not begun then does not run, and what its responses would have
delivered stays undelivered. A request that is cancelled before its turn does not run either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from copy import copy
from functools import partial
from typing import Any

from openbell.gateway.admission import TokenCheck
from openbell.gateway.streamable import wire
from openbell.gateway.streamable.messages import McpRequest, id_of, key
from openbell.gateway.streamable.sessions import ClientState
from openbell.protocol.session import Replies

Handle = Callable[[McpRequest, Any], Awaitable[None]]
"""Answers one message of a POST."""
_CANCELLED, _UNAUTHORIZED = -32800, 401


async def answer(
    post: McpRequest, messages: list[Any], handle: Handle, permit: TokenCheck, soft: ClientState | None
) -> None:
    """Handle the messages of a batch and send their responses. `permit` is the right of the token that was admitted."""
    responses, replies = _Responses(), _HeldReplies()
    gone = asyncio.ensure_future(wire.disconnected(post.receive))
    waiting = _Waiting(messages, soft)
    try:
        for number, message in enumerate(messages):
            # Messages that wait for nothing would be one step of the event loop together.
            await asyncio.sleep(0)
            if gone.done():
                return
            if number and not await permit.holds():
                responses.refuse(message, _UNAUTHORIZED, "the token is no longer valid, or has other scopes")
            elif waiting.take(message):
                responses.refuse(message, _CANCELLED, "Request cancelled")
            else:
                part = copy(post)
                part.receive, part.send, part.replies, part.streams = _never, responses, replies, False
                await handle(part, message)
        if gone.done():
            return
        if responses.bodies:
            await post.answer(200, b"[%s]" % b",".join(responses.bodies))
        else:
            await post.answer(202)
        await replies.release()
    finally:
        gone.cancel()
        waiting.close()


async def _never() -> wire.Message:
    """The body has been read, and the batch itself watches for a client that disconnects."""
    await asyncio.Event().wait()
    raise AssertionError


class _Waiting:
    """The requests of a batch whose turn has not come: until then `notifications/cancelled` is noted here."""

    def __init__(self, messages: list[Any], soft: ClientState | None) -> None:
        self._soft = soft
        self._cancelled: set[Any] = set()
        self._noted: dict[Any, Callable[[], None]] = {}
        for number in (key(id_of(each)) for each in messages):
            if soft is not None and number is not None:
                self._noted[number] = partial(self._cancelled.add, number)
                soft.begin(number, self._noted[number])

    def take(self, message: Any) -> bool:
        """Begin with a request; returns True if it was cancelled before."""
        number = key(id_of(message))
        self._end(number)
        return number in self._cancelled

    def close(self) -> None:
        """Forget the requests that were not begun."""
        for number in list(self._noted):
            self._end(number)

    def _end(self, number: Any) -> None:
        if number in self._noted and self._soft is not None:
            self._soft.end(number, self._noted.pop(number))


class _Responses:
    """Collects the bodies of responses instead of sending them; a notification has none."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    def refuse(self, message: Any, code: int, text: str) -> None:
        """Add the error of a request that does not run; a notification gets none."""
        if (number := id_of(message)) is not None and "method" in message:
            self.bodies.append(wire.error(number, code, text))

    async def __call__(self, message: wire.Message) -> None:
        """See ASGI's `send`."""
        if body := message.get("body"):
            self.bodies.append(body)


class _HeldReplies(Replies):
    """Holds the work after each response until the whole batch has been sent."""

    def __init__(self) -> None:
        super().__init__()
        self._answered: list[Any] = []

    async def sent(self, request: Any) -> None:
        """Note a request whose response is part of the batch."""
        self._answered.append(request)

    async def release(self) -> None:
        """Run the work of all requests."""
        for request in self._answered:
            await super().sent(request)
