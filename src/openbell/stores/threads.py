"""Threads for blocking calls, such as reading bars. A desk waits for its threads before it closes the store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_MOST = 2
"""Enough to keep a disk and a feed busy; each thread uses memory of its own."""


class Threads:
    """A small thread pool; no thread is started before the first call."""

    def __init__(self, name: str = "desk") -> None:
        self._executor = ThreadPoolExecutor(_MOST, name)

    async def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function in a thread and return its result. If the caller is cancelled, the function still finishes."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, partial(work, *args, **kwargs))

    async def close(self) -> None:
        """Wait until all calls have finished."""
        await asyncio.get_running_loop().run_in_executor(None, self._executor.shutdown)
