"""Connections of clients that send nothing, send their headers a byte at a time, or read nothing are closed; uvicorn alone
waits for ever.

uvicorn's own limits are set here too (`server_options`): h11's bound on a header block that is not complete, and how long an
idle connection is kept.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from openbell.desk.settings import Settings
from openbell.gateway.guard.accepting import only_health
from openbell.gateway.guard.hosts import MOST_HEADER_BYTES

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
