"""Results of coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def result_of(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine as `asyncio.run` does, and returns its result.

    When asyncio.run ends, Python formats its task twice, with the task's result and all of its arrays.
    """
    results: list[T] = []

    async def keep() -> None:
        results.append(await work)

    asyncio.run(keep())
    return results[0]
