"""The open streams of one principal, and the reader of the queue that feeds all of them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from openbell.desk.alerts.inbox import Inbox, event_id
from openbell.desk.events.hub import Listener, NotificationAdded
from openbell.desk.events.supervision import Supervisor
from openbell.gateway.streamable import wire
from openbell.market.errors import OpenbellError
from openbell.signals.crossing_alerts import METHOD as SIGNALS
from openbell.trading.alerts import ALERT_TRIGGERED as ALERTS
from openbell.trading.alerts import QUEUE_MOST, QUEUE_SECONDS

log = logging.getLogger(__name__)

QUEUED = frozenset({ALERTS, SIGNALS})
"""The methods whose pushes are queued in the records."""
_BACKLOG = 1_000
"""Pushes that wait for a slow client; a stream that would have more ends after them, and its client resumes it."""


@dataclass(frozen=True)
class Push:
    """A notification for the streams of a principal."""

    method: str
    params: Mapping[str, Any]
    cursor: int = 0
    """Its position in the ledger; 0 if it does not come from the queue."""
    id: str | None = None
    """The id of its event, if it comes from the queue."""

    @cached_property
    def event(self) -> bytes:
        """The bytes on a stream."""
        return wire.event(wire.notification(self.method, self.params), self.id)


class PushStream:
    """One open stream."""

    def __init__(self, methods: Iterable[str], after: int | None, *, anonymous: bool = False) -> None:
        """`methods` are those that it receives. `after` is the cursor after which it resumes, if it does."""
        self.anonymous = anonymous
        """Its client has no token: what it receives does not count as sent to the principal."""
        self.methods = frozenset(methods)
        self.after: dict[str, int | None] = dict.fromkeys(self.methods & QUEUED, after)
        """For each queued method, the cursor of the last push that was put; None: the recorded one."""
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


class Recorder:
    """Records what was sent to clients. While one transaction is written, all further ones are collected into the next."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], int] = {}
        self._next: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()

    async def record(self, inbox: Inbox, subject: str, cursors: Mapping[str, int]) -> None:
        """Record the last pushes, by method, that were sent to a client of a principal; returns when they are stored."""
        for method, cursor in cursors.items():
            key = (subject, method)
            self._waiting[key] = max(cursor, self._waiting.get(key, 0))
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


class Channel:
    """The streams of one principal."""

    def __init__(self, subject: str, inbox: Inbox | None, recorder: Recorder, supervisor: Supervisor) -> None:
        self._subject = subject
        self._supervisor = supervisor
        self._inbox = inbox
        self._recorder = recorder
        self.streams: set[PushStream] = set()
        self.waiting: deque[tuple[float, Push]] = deque(maxlen=QUEUE_MOST)
        """Pushes that are not queued in the records, while no stream receives them."""
        self.sent: dict[str, int] = {}
        """For each method, the cursor of the last push that some stream has sent; recorded a little later."""
        self.recorded: dict[str, int] = {}
        self._feeding: asyncio.Task[None] | None = None
        self._added: Listener | None = None

    def add(self, stream: PushStream) -> None:
        """Begin to feed a stream."""
        self.streams.add(stream)
        oldest = time.monotonic() - QUEUE_SECONDS
        kept = [(at, push) for at, push in self.waiting if at >= oldest]
        self.waiting.clear()
        for at, push in kept:
            receives = push.method in stream.methods
            if receives:
                stream.put(push)
            if stream.anonymous or not receives:
                self.waiting.append((at, push))
        if stream.after and self._inbox is not None:
            if self._feeding is None:
                self._feeding = self._supervisor.background("pushes", partial(self._feed, self._inbox))
            elif self._added is not None:
                self._added.put(NotificationAdded())

    def remove(self, stream: PushStream) -> None:
        """Stop feeding a stream."""
        self.streams.discard(stream)
        if not self.streams and self._feeding is not None:
            self._feeding.cancel()
            self._feeding = None

    def send(self, push: Push) -> None:
        """Send a push to all streams that receive it; without any it waits."""
        receivers = [stream for stream in self.streams if push.method in stream.methods]
        for stream in receivers:
            stream.put(push)
        if all(stream.anonymous for stream in receivers):
            self.waiting.append((time.monotonic(), push))

    async def record(self, cursors: Mapping[str, int]) -> None:
        """Record the last pushes, by method, that were sent to a client."""
        new = {method: cursor for method, cursor in cursors.items() if cursor > self.recorded.get(method, 0)}
        if new and self._inbox is not None:
            self.recorded |= new
            await self._recorder.record(self._inbox, self._subject, new)

    async def _feed(self, inbox: Inbox) -> None:
        with inbox.hub.listen(NotificationAdded) as self._added:
            await inbox.read_queue(self._added, partial(self._read, inbox))

    async def _read(self, inbox: Inbox) -> None:
        """Put the queued pushes into the streams that do not have them."""
        fed = [stream for stream in self.streams if stream.after]
        if any(None in stream.after.values() for stream in fed):
            _, start = await inbox.queued(self._subject, dict.fromkeys(QUEUED))
            for stream in fed:
                stream.after = {method: start[method] if at is None else at for method, at in stream.after.items()}
        lowest: dict[str, int | None] = {}
        for stream in fed:
            for method, at in stream.after.items():
                lowest[method] = min(at or 0, lowest.get(method, at or 0) or 0)
        if not lowest:
            return
        found, _ = await inbox.queued(self._subject, lowest)
        if not found:
            return
        ledger = await inbox.ledger()
        for each in found:
            push = Push(each.method, inbox.pushed(each.body), each.cursor, event_id(each, ledger))
            for stream in fed:
                if each.method in stream.after and (stream.after[each.method] or 0) < each.cursor:
                    stream.put(push)
                    stream.after[each.method] = each.cursor
