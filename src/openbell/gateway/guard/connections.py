"""Connections: accepted up to a limit, and closed if a client sends nothing, sends too slowly, or reads nothing.

The limit is below the process's limit of handles: a thousand idle connections would take every handle, so that no other
client gets an answer, and the engine and the stores cannot open a file. asyncio and uvloop accept all connections that wait
before anything else runs, so that the limit is checked before each is accepted. uvicorn alone never gives up a late client.

uvicorn's own limits are set here too (`server_options`): h11's bound on a header block that is not complete, and how long an
idle connection is kept.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit
from typing import Any, Protocol, cast

import h11
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from openbell.desk.operations.health.asking import PATH as HEALTH_REPORT
from openbell.desk.quotes.arche.requests import HEALTH
from openbell.desk.settings import Settings
from openbell.gateway.guard.hosts import MOST_HEADER_BYTES
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


_LATE = (
    b"HTTP/1.1 408 Request Timeout\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
    b"connection: close\r\n\r\n%s"
)
_BODY = b'{"error": "headers_too_slow", "message": "The headers of the request did not arrive in time."}'
_KEEP_ALIVE = 15
_STALLED_SECONDS = 1.0


class TimedProtocol(H11Protocol):
    """HTTP/1.1 with time limits on the headers of a request, a body after its response, and a client that reads nothing."""

    seconds = 10.0
    """From the first byte of a request, or from the connection, until its headers are complete."""
    read_seconds = 30.0
    """How long a client may read nothing of a response that does not fit into the buffers."""
    stopping_seconds = 2.0
    """The same while the gateway stops, which waits for all connections."""
    _timer: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None
    _stopping = False
    most = 0
    """Connections of the server; on those beyond, only health is answered. 0: any number."""
    active_at = 0.0
    """The loop's time at which the client last sent something."""

    @property
    def is_idle(self) -> bool:
        """True if the connection waits for a request, for the rest of one that was refused before its body arrived, or for
        a body of which nothing has come for a second.
        """
        cycle = cast("RequestResponseCycle | None", self.cycle)  # None before the first request
        if self.transport.is_closing() or self.conn.their_state not in {h11.IDLE, h11.SEND_BODY}:
            return False
        if cycle is None or cycle.response_complete:
            return True
        # A body may also stop because the application reads it slowly.
        stalled = not self.flow.read_paused and self.loop.time() - self.active_at > _STALLED_SECONDS
        return self.conn.their_state is h11.SEND_BODY and stalled

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See asyncio."""
        super().connection_made(transport)
        self.active_at = self.loop.time()
        if 0 < self.most < len(self.connections):
            self.app = only_health(self.app)
        # asyncio sets it only for sockets that it has bound itself; without it each response takes 40 ms.
        connection = transport.get_extra_info("socket")
        if connection is not None and connection.family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._start()

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        self.active_at = self.loop.time()
        super().data_received(data)
        if self._is_waiting():
            self._start()
        else:
            self._stop()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self._stop()
        self._end_checks()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """See asyncio: the client reads more slowly than the response is written."""
        super().pause_writing()
        self._begin_checks()

    def resume_writing(self) -> None:
        """See asyncio: the client has read most of what was written."""
        self._end_checks()
        if self._stopping:
            self._begin_checks()
        super().resume_writing()

    def shutdown(self) -> None:
        """See uvicorn: the connection is closed after its response. From here on it is checked whether the client reads."""
        super().shutdown()
        self._stopping = True
        self._begin_checks()

    def _begin_checks(self) -> None:
        self._end_checks()
        self._check_progress()

    def _check_progress(self, before: int = 0) -> None:
        """Close the connection if there was something to read at the last check, and the client has read nothing since."""
        left = self.transport.get_write_buffer_size()
        if before and left >= before:
            self.transport.abort()
        else:
            seconds = self.stopping_seconds if self._stopping else self.read_seconds
            self._stalled = self.loop.call_later(seconds, self._check_progress, left)

    def _end_checks(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _is_waiting(self) -> bool:
        """Returns True if the next bytes are headers, or belong to a body that nobody reads."""
        state = self.conn.their_state
        return state is h11.IDLE or (state is h11.SEND_BODY and self.cycle.response_complete)

    def _start(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self.seconds, self._close)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close(self) -> None:
        self._timer = None
        if self.transport.is_closing() or not self._is_waiting():
            return
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self.transport.write(_LATE % (len(_BODY), _BODY))
        self.transport.close()


def server_options(settings: Settings) -> dict[str, Any]:
    """Returns the arguments of `uvicorn.Config` that the guard needs."""
    proxies = settings.trusted_proxies if settings.public_url else ""
    return {
        "http": TimedProtocol,
        "ws": "none",
        "h11_max_incomplete_event_size": MOST_HEADER_BYTES,
        "timeout_keep_alive": _KEEP_ALIVE,
        # Without a proxy, a client could choose the address that limits and the audit log use.
        "proxy_headers": bool(proxies),
        "forwarded_allow_ips": proxies,
        "server_header": False,
        "access_log": False,
        # A warning for each malformed request would let clients fill the log.
        "log_level": "error",
        "log_config": None,
    }
