"""Soft state of clients that name a session: nothing here is needed to answer a request, and any of it may be dropped.

A session belongs to the principal that uses it: the same id of another principal is another session.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import OrderedDict
from typing import Any

import anyio

from openbell.protocol.replies import Replies
from openbell.protocol.session import Notify, Principal, Session

MOST = 10_000
MOST_PER_PRINCIPAL = 1_000
IDLE_SECONDS = 1800.0
LONGEST_ID = 128
_LOGS = 16
"""Streams of one session that can be resumed."""
_EVENTS = 256
"""Events of one stream that are kept."""


class StreamLog:
    """The events of one response that is a stream, so that a client can resume it."""

    def __init__(self) -> None:
        self.id = secrets.token_urlsafe(9)
        self._events: list[bytes] = []
        self._first = 1
        self.ended = False
        self._changed = asyncio.Event()

    def name(self, number: int) -> str:
        """Returns the id of an event."""
        return f"{self.id}.{number}"

    def latest(self) -> str:
        """Returns the id of the latest event."""
        return self.name(self._first + len(self._events) - 1)

    def add(self, message: bytes, *, last: bool) -> str:
        """Keep a message; returns the id of its event."""
        self._events.append(message)
        if len(self._events) > _EVENTS:
            del self._events[0]
            self._first += 1
        self.ended = self.ended or last
        self._changed.set()
        return self.latest()

    async def later(self, number: int) -> list[tuple[int, bytes]]:
        """Wait for events after a number. Returns their numbers and messages; nothing if the response has ended."""
        while not (found := self._events[max(0, number + 1 - self._first) :]) and not self.ended:
            self._changed.clear()
            await self._changed.wait()
        first = self._first + len(self._events) - len(found)
        return list(enumerate(found, first))


class SoftSession:
    """What one process remembers of a client."""

    def __init__(self, principal: Principal, notify: Notify) -> None:
        self.session = Session(principal, notify, Replies())
        self.client: dict[str, Any] | None = None
        """The parameters of `initialize`."""
        self.waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        """Requests to the client that it has not answered, by id."""
        self.running: dict[Any, anyio.CancelScope] = {}
        """Requests of the client that are not answered, by id."""
        self.used = time.monotonic()
        self._logs: OrderedDict[str, StreamLog] = OrderedDict()

    def new_log(self) -> StreamLog:
        """Returns a log for another stream; the oldest is dropped if there are too many."""
        log = StreamLog()
        self._logs[log.id] = log
        if len(self._logs) > _LOGS:
            self._logs.popitem(last=False)
        return log

    def log(self, event: str) -> tuple[StreamLog, int] | None:
        """Returns the log and the number of an event id; None if it is not known."""
        name, _, number = event.rpartition(".")
        found = self._logs.get(name)
        return (found, int(number)) if found is not None and number.isascii() and number.isdigit() else None


class SoftSessions:
    """The sessions of one server in this process; the ones that were not used longest are dropped."""

    def __init__(self, most: int = MOST, most_per_principal: int = MOST_PER_PRINCIPAL) -> None:
        self._most = most
        self._most_per_principal = most_per_principal
        self._known: OrderedDict[tuple[str, str], SoftSession] = OrderedDict()
        self._counts: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._known)

    def get(self, principal: Principal, name: str, notify: Notify) -> SoftSession:
        """Returns the session of an id; a new one if it is not known."""
        key = (principal.subject, name)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = SoftSession(principal, notify)
            self._counts[principal.subject] = self._counts.get(principal.subject, 0) + 1
            self._drop(principal.subject)
        self._known.move_to_end(key)
        found.used = time.monotonic()
        found.session.principal = principal  # its scopes may have changed
        return found

    def _drop(self, subject: str) -> None:
        """Drop idle sessions, and the oldest ones beyond the limits."""
        if self._counts[subject] > self._most_per_principal:
            self._remove(next(key for key in self._known if key[0] == subject))
        limit = time.monotonic() - IDLE_SECONDS
        while self._known:
            key, oldest = next(iter(self._known.items()))
            if len(self._known) <= self._most and oldest.used >= limit:
                break
            self._remove(key)

    def _remove(self, key: tuple[str, str]) -> None:
        del self._known[key]
        self._counts[key[0]] -= 1
        if not self._counts[key[0]]:
            del self._counts[key[0]]


def new_session_id() -> str:
    """Returns an id that cannot be guessed."""
    return secrets.token_urlsafe(24)
