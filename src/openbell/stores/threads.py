"""Threads for work that blocks, such as reading bars: a desk has its own and waits for them before it closes the store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_MOST = 2
"""They keep a disk and a feed busy; each more would hold memory of its own."""


class Threads:
    """A few threads; none is started before the first piece of work."""

    def __init__(self, name: str = "desk") -> None:
        self._executor = ThreadPoolExecutor(_MOST, name)

    async def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """What the function returns. Whoever is cancelled leaves it at work."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, partial(work, *args, **kwargs))

    async def close(self) -> None:
        """Wait until everything that was begun has ended."""
        await asyncio.get_running_loop().run_in_executor(None, self._executor.shutdown)
