"""Soft state of clients that name a session: nothing here is needed to answer a request, and any of it may be dropped.

A session belongs to the principal that uses it: the same id of another principal is another session.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION
from pydantic_core import to_json

from openbell.protocol.session import Notify, Principal, Replies, Session

MOST = 10_000
MOST_PER_PRINCIPAL = 1_000
IDLE_SECONDS = 1800.0
LONGEST_CLIENT = 16_384
"""Bytes of what a session keeps about its client."""
_LOGS = 16
"""Streams of one session that can be resumed."""
_MOST_DIGITS = 18
_EVENTS = 256
"""Events of one stream that are kept."""


class StreamLog:
    """The events of one response that is a stream, so that a client can resume it."""

    def __init__(self) -> None:
        self.id = secrets.token_urlsafe(9)
        self._events: list[bytes] = []
        self._first = 1
        self.ended = False
        self.changed = asyncio.Event()
        """Set at the next event, which makes another one."""

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
        self.changed.set()
        self.changed = asyncio.Event()
        return self.latest()

    def after(self, number: int) -> list[tuple[int, str, bytes]]:
        """Returns the numbers, ids and messages of later events."""
        first = max(number + 1, self._first)
        kept = range(first, self._first + len(self._events))
        return [(at, self.name(at), self._events[at - self._first]) for at in kept]


class ClientState:
    """What one process remembers of a client."""

    def __init__(self, principal: Principal, notify: Notify) -> None:
        self.session = Session(principal, notify, Replies())
        self.client_info: Any = None
        self.capabilities: Any = None
        self.revision: str | None = None
        """The revision that the client has negotiated; None if it has not, or with another process."""
        self.waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        """Requests to the client that it has not answered, by id."""
        self._running: dict[Any, list[Callable[[], None]]] = {}
        """Interrupts requests of the client that are not answered, by id. A client may use an id twice at the same time."""
        self.used = time.monotonic()
        self._logs: OrderedDict[str, StreamLog] = OrderedDict()

    def initialize(self, params: Mapping[str, Any]) -> None:
        """Keep what a client says about itself, unless it is too long, and the revision that its answer names."""
        self.revision = negotiated(params.get("protocolVersion"))
        if len(to_json(params)) <= LONGEST_CLIENT:
            self.client_info, self.capabilities = params.get("clientInfo"), params.get("capabilities")

    def begin(self, key: Any, interrupt: Callable[[], None]) -> None:
        """Let `cancel` interrupt a request, until `end` is called with the same."""
        self._running.setdefault(key, []).append(interrupt)

    def end(self, key: Any, interrupt: Callable[[], None]) -> None:
        """Forget a request that has ended."""
        running = self._running[key]
        running.remove(interrupt)
        if not running:
            del self._running[key]

    def cancel(self, key: Any) -> None:
        """Cancel the requests of an id that are not answered."""
        for interrupt in self._running.get(key, ()):
            interrupt()

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
        is_number = number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS
        return (found, int(number)) if found is not None and is_number else None


class ClientStates:
    """The sessions of one server in this process; the ones that were not used longest are dropped."""

    def __init__(self, most: int = MOST, most_per_principal: int = MOST_PER_PRINCIPAL) -> None:
        self._most = most
        self._most_per_principal = most_per_principal
        self._known: OrderedDict[tuple[str, str], ClientState] = OrderedDict()
        self._counts: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._known)

    def get(self, principal: Principal, name: str, notify: Notify) -> ClientState:
        """Returns the session of an id; a new one if it is not known."""
        key = (principal.subject, name)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = ClientState(principal, notify)
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


def negotiated(asked: Any) -> str:
    """Returns the revision that a client gets for the one that it has asked for: the same, or the newest with handshake."""
    return asked if asked in HANDSHAKE_PROTOCOL_VERSIONS else LATEST_HANDSHAKE_VERSION


def new_session_id() -> str:
    """Returns an id that cannot be guessed."""
    return secrets.token_urlsafe(24)
