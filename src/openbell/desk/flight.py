"""Single flight: callers that want the same thing at the same time share one piece of work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")


class SingleFlight:
    """Runs one task per key; it goes on when one of its callers gives up, and ends when all have."""

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Task[Any]] = {}
        self._waiting: dict[Hashable, int] = {}

    async def run(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """The result of `work`, begun by whoever asks first."""
        task: asyncio.Task[T] | None = self._tasks.get(key)
        if task is None:
            task = asyncio.ensure_future(_await(work))
            self._tasks[key] = task
            task.add_done_callback(lambda done: self._forget(key, done))
        self._waiting[key] = self._waiting.get(key, 0) + 1
        try:
            return await asyncio.shield(task)
        finally:
            left = self._waiting.get(key, 1) - 1
            self._waiting[key] = left
            if left == 0:
                self._waiting.pop(key, None)
                if not task.done():
                    task.cancel()

    def _forget(self, key: Hashable, done: asyncio.Task[Any]) -> None:
        self._tasks.pop(key, None)
        if not done.cancelled():
            done.exception()  # looked at, so that a failure whose callers have all left is not reported as lost


async def _await(work: Callable[[], Awaitable[T]]) -> T:
    return await work()
