"""Work that is needed only if a request takes long: most requests end before it begins."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Delayed:
    """Begins some work after a number of seconds, unless it is stopped before."""

    __slots__ = ("_loop", "_task", "_timer", "_work")

    def __init__(self, seconds: float, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        self._loop = asyncio.get_running_loop()
        self._work = work
        self._task: asyncio.Task[object] | None = None
        self._timer = self._loop.call_later(seconds, self._begin)

    def stop(self) -> None:
        """Stop the work, or keep it from beginning."""
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        self._task = self._loop.create_task(self._work())
