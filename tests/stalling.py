"""A TCP proxy on loopback that can stop forwarding without closing anything: a network or a server that hangs."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self

_CHUNK = 65_536


class StallingProxy:
    """Forwards connections to a port of this machine, until `stall`. Use as a context manager."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._flows = threading.Event()
        self._flows.set()
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0
        self._threads = [self._start(self._accept)]

    def stall(self) -> None:
        """Forward nothing from now on; connections are accepted and stay open."""
        self._flows.clear()

    def resume(self) -> None:
        """Forward again, also what came meanwhile."""
        self._flows.set()

    def cut(self) -> None:
        """Close every connection."""
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.resume()
        self.cut()
        for each in self._threads:
            each.join()

    def _start(self, work: Callable[..., None], *given: socket.socket) -> threading.Thread:
        thread = threading.Thread(target=work, args=given, daemon=True)
        thread.start()
        return thread

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self.connections += 1
                self._threads.append(self._start(self._carry, near))

    def _carry(self, near: socket.socket) -> None:
        """One connection to its end."""
        with near, suppress(OSError):
            self._open.append(near)
            self._flows.wait()
            with socket.create_connection(("127.0.0.1", self._to)) as far:
                self._open.append(far)
                back = self._start(self._forward, far, near)
                self._forward(near, far)
                back.join()

    def _forward(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                self._flows.wait()
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
