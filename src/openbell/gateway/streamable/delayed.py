"""Work that is needed only if a request takes long: most requests end before it begins."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


def delayed(seconds: float, work: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Begin some work after a number of seconds. Returns a function that stops it, or keeps it from beginning."""
    loop = asyncio.get_running_loop()
    tasks: list[asyncio.Task[None]] = []
    timer = loop.call_later(seconds, lambda: tasks.append(loop.create_task(work())))

    def stop() -> None:
        timer.cancel()
        for task in tasks:
            task.cancel()

    return stop


def nothing() -> None:
    """Stops nothing."""
