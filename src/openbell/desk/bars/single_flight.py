"""Single flight: concurrent callers with the same key share one task."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from contextvars import Context
from typing import Any, TypeVar

T = TypeVar("T")


class SingleFlight:
    """Runs one task per key at a time. The task is cancelled only if all of its callers are cancelled."""

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Task[Any]] = {}
        self._waiting: dict[Hashable, int] = {}

    async def run(self, key: Hashable, work: Callable[[], Awaitable[T]], context: Context | None = None) -> T:
        """Returns the result of `work`, which only the first caller of a key starts, in its context or a given one."""
        task: asyncio.Task[T] | None = self._tasks.get(key)
        if task is None:
            task = asyncio.create_task(_await(work), context=context)
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
                    # Not left to `_forget`: a caller that comes before the task has ended would be cancelled with it.
                    self._tasks.pop(key, None)
                    task.cancel()

    def _forget(self, key: Hashable, done: asyncio.Task[Any]) -> None:
        if self._tasks.get(key) is done:
            del self._tasks[key]
        if not done.cancelled():
            done.exception()  # retrieved, so that asyncio does not log it if all callers were cancelled


async def _await(work: Callable[[], Awaitable[T]]) -> T:
    return await work()
