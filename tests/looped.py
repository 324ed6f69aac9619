"""A local server that stands in for somebody else's, with an event loop of its own in a thread."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from typing import Self

PATIENCE = 10.0


class LoopServer(ABC):
    """Start it with `with`. A subclass listens in `_listen`, sets `_ready`, and returns when `_stop` is set."""

    _loop: asyncio.AbstractEventLoop
    _stop: asyncio.Event

    def __init__(self) -> None:
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name=type(self).__name__, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(PATIENCE), "the server did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        await self._listen()

    @abstractmethod
    async def _listen(self) -> None:
        """Listens on a port of loopback until `_stop` is set."""
