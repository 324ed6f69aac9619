"""Threads for blocking calls, such as reading bars. A desk waits for its threads before it closes the store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar

from openbell.stores.fair_queue import CALLER, FairQueue

P = ParamSpec("P")
T = TypeVar("T")

_MOST = 3
_EACH = 2
"""Enough to keep a disk and a feed busy; each thread uses memory of its own. One more is left for other principals."""


class Threads:
    """A small thread pool that serves principals in turn; no thread is started before the first call."""

    def __init__(self, name: str = "desk", most: int = _MOST, each: int = _EACH) -> None:
        """`each` is how many threads may work for one principal at once."""
        self._executor = ThreadPoolExecutor(most, name)
        self._queue = FairQueue(most, each)

    async def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function in a thread, in the caller's context, and return its result.

        If the caller is cancelled, the function still finishes.
        """
        loop, context = asyncio.get_running_loop(), copy_context()
        call = partial(context.run, partial(work, *args, **kwargs))
        return await self._queue.run(CALLER.get(), lambda: loop.run_in_executor(self._executor, call))

    def abandon(self) -> None:
        """Begin no further calls, and do not wait for those that run: for calls that change nothing."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def close(self) -> None:
        """Wait until all calls have finished."""
        await self._queue.drained()
        await asyncio.get_running_loop().run_in_executor(None, self._executor.shutdown)
