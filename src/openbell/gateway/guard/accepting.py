"""Accepts connections up to a limit below the process's limit of handles, and closes idle ones first.

Without it, a thousand idle connections take every handle: no other client gets an answer, and the engine and the stores
cannot open a file. asyncio and uvloop accept all connections that wait before anything else runs, so that a limit must be
checked before each is accepted.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Protocol

from starlette.types import ASGIApp, Receive, Scope, Send

from openbell.desk.operations.health.asking import PATH as HEALTH_REPORT
from openbell.desk.quotes.arche.requests import HEALTH
from openbell.gateway.guard.refusals import GuardRefusal

FOR_HEALTH = 16
"""Connections beyond the limit, on which only the health of the process is answered."""
_AT_ONCE = 32
"""Connections that are accepted before the event loop does other work."""
_PAUSE_SECONDS = 0.1
_FEWEST = 16
_MOST = 20_000
_HEALTH = frozenset({HEALTH, "/readyz", HEALTH_REPORT})
_FULL = GuardRefusal(
    503, "too_many_connections", "The gateway has as many connections as it can hold: retry later.", 1.0, close=True
)


class AcceptedConnection(Protocol):
    """A connection as the limit sees it."""

    transport: asyncio.Transport
    active_at: float
    """The loop's time at which its client last sent something."""

    @property
    def is_idle(self) -> bool:
        """True if no request of it is being answered."""


def most_connections() -> int:
    """Returns how many connections this process may hold: a quarter of its handles, at least 128, is kept free."""
    try:
        from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit
    except ImportError:  # Windows
        return _MOST
    handles = getrlimit(RLIMIT_NOFILE)[0]
    if handles == RLIM_INFINITY:
        return _MOST
    return min(_MOST, max(_FEWEST, handles - max(128, handles // 4) - FOR_HEALTH))


def only_health(app: ASGIApp) -> ASGIApp:
    """Returns the application for connections beyond the limit."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("path") in _HEALTH:
            await app(scope, receive, send)
        else:
            await _FULL.send(send)

    return answer


class Acceptor:
    """Accepts the connections of one listener. It has the methods of asyncio's servers that uvicorn calls."""

    def __init__(
        self,
        listener: socket.socket,
        make: Callable[[], asyncio.Protocol],
        open_now: set[AcceptedConnection],
        most: int,
    ) -> None:
        """`open_now` are the connections that are open, `make` returns the protocol of a new one."""
        self._listener = listener
        self._make = make
        self._open = open_now
        self._most = most
        self._loop = asyncio.get_running_loop()
        self._beginning: dict[asyncio.Task[object], asyncio.Protocol] = {}
        self._timer: asyncio.TimerHandle | None = None
        listener.setblocking(False)
        self._resume()

    def close(self) -> None:
        """Accept no more."""
        self._loop.remove_reader(self._listener.fileno())
        if self._timer is not None:
            self._timer.cancel()

    async def wait_closed(self) -> None:
        """Wait for the connections that were just accepted."""
        await asyncio.gather(*self._beginning, return_exceptions=True)

    def _resume(self) -> None:
        self._timer = None
        self._loop.add_reader(self._listener.fileno(), self._accept)

    def _pause(self) -> None:
        """Leave further connections to the kernel for a moment."""
        self._loop.remove_reader(self._listener.fileno())
        self._timer = self._loop.call_later(_PAUSE_SECONDS, self._resume)

    def _accept(self) -> None:
        accepted = self._accept_waiting()
        over = self._count() - self._most
        if over > 0:
            self._close_idle(min(over, accepted))

    def _accept_waiting(self) -> int:
        """Accept the connections that wait; returns how many were accepted."""
        for accepted in range(_AT_ONCE):
            if self._count() >= self._most + FOR_HEALTH:
                self._pause()
                return accepted
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return accepted
            except OSError:  # no handle is left: other parts of the process have taken the reserve
                self._pause()
                return accepted
            connection.setblocking(False)
            protocol = self._make()
            task: asyncio.Task[object] = self._loop.create_task(self._begin(connection, protocol))
            self._beginning[task] = protocol
            task.add_done_callback(self._beginning.pop)
        return _AT_ONCE

    def _count(self) -> int:
        """Returns the number of connections. One that has just begun is open before its task has ended."""
        known: set[object] = {*self._beginning.values()}
        return len(self._open) + len(known.difference(self._open))

    async def _begin(self, connection: socket.socket, protocol: asyncio.Protocol) -> None:
        try:
            await self._loop.connect_accepted_socket(lambda: protocol, connection)
        except OSError:  # the client has gone
            connection.close()

    def _close_idle(self, count: int) -> None:
        """Close the connections that have been idle for longest. They are closed before the accepted ones begin."""
        idle = sorted((each for each in self._open if each.is_idle), key=lambda each: each.active_at)
        for each in idle[:count]:
            each.transport.abort()
