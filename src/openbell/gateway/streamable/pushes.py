"""The streams of pushes: one reader of the inbox for each principal feeds all of its open streams.

The id of an event is the cursor of its notification in the inbox, so that a client can resume at any gateway process. A
stream that resumes nothing begins with the notifications that were not pushed to any client yet, at most an hour old. Other
notifications (signals) have no cursor: while a principal has no stream, they wait in this process.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from openbell.desk.events import Listener, NotificationAdded
from openbell.desk.trading.inbox import Inbox
from openbell.gateway.guard.limits import Claim, Slots
from openbell.gateway.guard.refusals import Refusal
from openbell.gateway.streamable import wire
from openbell.gateway.streamable.exchange import RESUMABLE_SINCE
from openbell.market.errors import OpenbellError
from openbell.protocol.session import Notify, Principal, Scope
from openbell.trading.inbox import METHOD, QUEUE_MOST, QUEUE_SECONDS

log = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS = 30.0
MOST_STREAMS = 5_000
MOST_STREAMS_EACH = 2_000
_BUSY = Refusal(503, "too_many_streams", "Too many streams are open: retry later.", 5.0)
_TOO_MANY = Refusal(
    429, "too_many_streams", f"This principal has {MOST_STREAMS_EACH:,} open streams: close one before another.", 5.0
)
_CLOSING = Refusal(503, "closing", "This process of the gateway stops: retry at another one, or later.", 1.0)
_BACKLOG = 1_000
"""Pushes that wait for a slow client; a stream that would have more ends after them, and its client resumes it."""
_RETRY_SECONDS = 1.0


@dataclass(frozen=True)
class Push:
    """A notification for all streams of a principal."""

    method: str
    params: Mapping[str, Any]
    cursor: int = 0
    """Of the inbox; 0 if it does not come from there."""

    @cached_property
    def event(self) -> bytes:
        """The bytes on a stream."""
        number = str(self.cursor) if self.cursor else None
        return wire.event(wire.notification(self.method, self.params), number)


class _Stream:
    """One open stream."""

    def __init__(self, after: int | None, *, alerts: bool) -> None:
        self.after = after
        self.alerts = alerts
        self.pushes: deque[Push] = deque()
        self.changed = asyncio.Event()
        self.ended = False
        self.full = False
        """The client is too slow: the stream ends after the pushes that it has."""

    def put(self, push: Push) -> None:
        """Add a push, unless too many wait."""
        self.full = self.full or len(self.pushes) >= _BACKLOG
        if not self.full:
            self.pushes.append(push)
            self.changed.set()

    def end(self) -> None:
        """Send nothing more."""
        self.ended = True
        self.changed.set()

    async def wait(self, seconds: float) -> bool:
        """Wait for a push or the end; returns False after so many seconds without."""
        self.changed.clear()
        if self.pushes or self.ended:
            return True
        try:
            async with asyncio.timeout(seconds):
                await self.changed.wait()
        except TimeoutError:
            return False
        return True


class _Recorder:
    """Records what was sent to clients. While one transaction is written, all further ones are collected into the next."""

    def __init__(self) -> None:
        self._waiting: dict[str, int] = {}
        self._next: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()

    async def record(self, inbox: Inbox, subject: str, cursor: int) -> None:
        """Record that a notification was sent to a client of a principal; returns when it is stored."""
        self._waiting[subject] = max(cursor, self._waiting.get(subject, 0))
        if self._next is None:
            self._next = asyncio.create_task(self._write(inbox), name="pushed")
        await asyncio.shield(self._next)  # others wait for it too

    async def _write(self, inbox: Inbox) -> None:
        async with self._writing:
            cursors, self._waiting, self._next = self._waiting, {}, None
            try:
                await inbox.record_pushed(cursors)
            except OpenbellError as error:
                log.warning("a push was not recorded, and may be repeated: %s", error)


class _Channel:
    """The streams of one principal."""

    def __init__(self, subject: str, inbox: Inbox | None, recorder: _Recorder) -> None:
        self._subject = subject
        self._inbox = inbox
        self._recorder = recorder
        self.streams: set[_Stream] = set()
        self.waiting: deque[tuple[float, Push]] = deque(maxlen=QUEUE_MOST)
        self.sent = 0
        """The cursor of the last notification that some stream has sent; recorded a little later."""
        self._recorded = 0
        self._feeding: asyncio.Task[None] | None = None
        self._added: Listener | None = None

    def add(self, stream: _Stream) -> None:
        """Begin to feed a stream."""
        self.streams.add(stream)
        oldest = time.monotonic() - QUEUE_SECONDS
        while self.waiting:
            at, push = self.waiting.popleft()
            if at >= oldest:
                stream.put(push)
        if stream.alerts and self._inbox is not None:
            if self._feeding is None:
                self._feeding = asyncio.create_task(self._feed(self._inbox), name="pushes")
            elif self._added is not None:
                self._added.put(NotificationAdded())

    def remove(self, stream: _Stream) -> None:
        self.streams.discard(stream)
        if not self.streams and self._feeding is not None:
            self._feeding.cancel()
            self._feeding = None

    def send(self, push: Push) -> None:
        """Send a push to all streams; without any it waits."""
        for stream in self.streams:
            stream.put(push)
        if not self.streams:
            self.waiting.append((time.monotonic(), push))

    async def _feed(self, inbox: Inbox) -> None:
        with inbox.hub.listen(NotificationAdded) as self._added:
            while True:
                failed = False
                try:
                    await self._read(inbox)
                except OpenbellError as error:
                    log.warning("pushes wait: %s", error)
                    failed = True
                await self._added.wait(_RETRY_SECONDS if failed else None)

    async def _read(self, inbox: Inbox) -> None:
        fed = [stream for stream in self.streams if stream.alerts]
        if any(stream.after is None for stream in fed):
            _, start = await inbox.queued(self._subject, None)
            for stream in fed:
                stream.after = start if stream.after is None else stream.after
        if not fed:
            return
        found, _ = await inbox.queued(self._subject, min(stream.after or 0 for stream in fed))
        for each in found:
            push = Push(METHOD, each.body, each.cursor)
            for stream in fed:
                if (stream.after or 0) < each.cursor:
                    stream.put(push)
                    stream.after = each.cursor

    async def record(self, cursor: int) -> None:
        """Record that a notification was sent to a client."""
        if cursor > self._recorded and self._inbox is not None:
            self._recorded = cursor
            await self._recorder.record(self._inbox, self._subject, cursor)


class PushStreams:
    """The streams of all principals in this process."""

    def __init__(
        self,
        inbox: Callable[[], Inbox | None],
        most: int = MOST_STREAMS,
        each: int = MOST_STREAMS_EACH,
        keep_alive: float = KEEP_ALIVE_SECONDS,
    ) -> None:
        """`inbox` returns the inbox; None if this desk cannot push from it. `each` is the limit of one principal."""
        self._inbox = inbox
        self._slots = Slots(most, each, busy=_BUSY, too_many=_TOO_MANY)
        self._keep_alive = keep_alive
        self._channels: dict[str, _Channel] = {}
        self._recorder = _Recorder()
        self._closing = False

    @property
    def open(self) -> int:
        """The number of open streams."""
        return self._slots.total

    def claim(self, principal: Principal) -> Claim | Refusal:
        """Returns a slot for a stream, which must be released, or why there is none."""
        return _CLOSING if self._closing else self._slots.claim(principal.subject)

    def sender(self, principal: Principal) -> Notify:
        """Returns a function that sends a notification to all streams of a principal."""

        async def notify(method: str, params: dict[str, Any]) -> None:
            self._channel(principal).send(Push(method, params))

        return notify

    def _channel(self, principal: Principal) -> _Channel:
        found = self._channels.get(principal.subject)
        if found is None:
            found = self._channels[principal.subject] = _Channel(principal.subject, self._inbox(), self._recorder)
        return found

    async def serve(
        self,
        principal: Principal,
        after: int | None,
        version: str | None,
        receive: wire.Receive,
        send: wire.Send,
        headers: wire.Headers,
    ) -> None:
        """Send pushes to one client until it disconnects. `after` is the cursor after which it resumes."""
        gone = asyncio.ensure_future(wire.disconnected(receive))
        try:
            async with self.opened(principal, after, gone) as pushes:
                await wire.begin_events(send, headers)
                can_resume = after is not None and (version or "") >= RESUMABLE_SINCE
                await wire.part(send, wire.priming_event(str(after)) if can_resume else wire.KEEP_ALIVE)
                async for push in pushes:
                    await wire.part(send, wire.KEEP_ALIVE if push is None else push.event)
                if not gone.done():
                    await wire.part(send, b"", last=True)
        finally:
            gone.cancel()

    @asynccontextmanager
    async def opened(
        self, principal: Principal, after: int | None, gone: asyncio.Future[None] | None = None
    ) -> AsyncIterator[AsyncGenerator[Push | None]]:
        """Opens a stream, which has every push from here on: a client may be told that it is open.

        It yields pushes until the client is gone or the gateway closes, and None after 30 s without any. A push counts as
        sent when the next one is asked for.
        """
        stream = _Stream(after, alerts=Scope.TRADE in principal.scopes)
        channel = self._channel(principal)
        if stream.alerts and after is None:
            recorded = await self._recorded(principal)
            # What another stream has sent may be recorded only after it was read here.
            stream.after = None if recorded is None else max(recorded, channel.sent)
            channel = self._channel(principal)  # the other stream may have been the last of its channel
        if self._closing:
            stream.end()
        if gone is not None:
            gone.add_done_callback(lambda _: stream.end())
        channel.add(stream)
        try:
            async with aclosing(self._pushes(channel, stream)) as pushes:
                yield pushes
        finally:
            channel.remove(stream)
            if not channel.streams and not channel.waiting:
                self._channels.pop(principal.subject, None)

    async def _recorded(self, principal: Principal) -> int | None:
        """Returns the cursor of the last notification that was pushed; None if it cannot be read now."""
        inbox = self._inbox()
        try:
            return None if inbox is None else (await inbox.queued(principal.subject, None))[1]
        except OpenbellError as error:
            log.warning("a stream begins later: %s", error)
            return None

    async def _pushes(self, channel: _Channel, stream: _Stream) -> AsyncGenerator[Push | None]:
        while not stream.ended:
            sent = 0
            while stream.pushes:
                push = stream.pushes.popleft()
                yield push
                if stream.ended:
                    return  # it may not have arrived: the next stream begins with it
                sent = max(sent, push.cursor)
                channel.sent = max(channel.sent, sent)
            if sent:
                await channel.record(sent)
            elif stream.full:
                return
            elif not await stream.wait(self._keep_alive):
                yield None

    async def close(self) -> None:
        """End all streams; new ones are refused."""
        self._closing = True
        for channel in list(self._channels.values()):
            for stream in list(channel.streams):
                stream.end()
