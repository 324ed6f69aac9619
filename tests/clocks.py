"""A clock that a test moves by hand."""

from __future__ import annotations

import asyncio


class HandClock:
    """Stands until told to go on; whoever waits for a time that has come goes on too."""

    moving = True

    def __init__(self, at: float) -> None:
        self._at = at
        self._moved = asyncio.Event()

    def epoch(self) -> float:
        return self._at

    def advance(self, seconds: float) -> None:
        self._at += seconds
        self._moved.set()
        self._moved = asyncio.Event()

    async def sleep_until(self, epoch: float) -> None:
        while self._at < epoch:
            await self._moved.wait()
