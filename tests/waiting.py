"""Wait for a condition, with a bound."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

PATIENCE = 30.0


async def until(condition: Callable[[], bool], what: str = "condition") -> None:
    """Let the event loop run until the condition holds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"gave up waiting for {what}"
        await asyncio.sleep(0.002)
