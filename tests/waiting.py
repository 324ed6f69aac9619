"""Wait for a condition, with a bound."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

PATIENCE = 30.0


async def until(condition: Callable[[], bool], what: str = "condition", patience: float = PATIENCE) -> None:
    """Let the event loop run until the condition holds."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"gave up waiting for {what}"
        await asyncio.sleep(0.002)


def wait_for(condition: Callable[[], bool], what: str = "condition", patience: float = PATIENCE) -> None:
    """Ask until the condition holds."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"gave up waiting for {what}"
        time.sleep(0.02)


class Pace:
    """Turns at an even rate, for work that has a limit per second."""

    def __init__(self, per_second: float) -> None:
        self._every = 1 / per_second
        self._next = 0.0

    def delay(self) -> float:
        """Seconds until the next turn, which is then taken."""
        now = time.monotonic()
        turn = max(now, self._next)
        self._next = turn + self._every
        return turn - now
