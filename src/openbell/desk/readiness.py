"""Whether the parts of a desk can be used: its stores and its feed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from openbell.desk.desk import Desk

log = logging.getLogger(__name__)

Check = Callable[[], Awaitable[None]]
"""Raises if a part cannot be used."""
_CACHED_SECONDS = 1.0
_MARK = "readiness"
"""The name of the mark that a check writes."""
_TIMEOUT = 3.0
"""Seconds after which a check has failed."""


def desk_checks(desk: Desk, *, writing: bool = True) -> dict[str, Check]:
    """Returns the checks of a desk: the records can be read and, if this desk writes, written to; bars can be read.

    Without `writing`, reading the records is enough.
    """
    from openbell.stores.records import progress

    async def records() -> None:
        if writing and desk.trading.writes:
            # On a full disk, a transaction that writes nothing succeeds.
            await desk.trading.records.write(lambda journal: progress.set_progress(journal.view, _MARK, time.time()))
        else:
            await desk.trading.records.read(lambda _view: None)

    def read_bars() -> None:
        desk.store.where()
        desk.store.lease_holder("collector")

    async def bars() -> None:
        await desk.threads.run(read_bars)

    return {"records": records, "bars": bars}


def feed_check(desk: Desk) -> Check:
    """Returns the check of the feed: its answers to the last questions. It asks nothing itself."""

    async def feed() -> None:
        for failure in desk.bars.history.unreachable.values():
            raise failure

    return feed


class Checks:
    """Runs checks. All callers within a second get the result of the same run."""

    def __init__(self, checks: Mapping[str, Check], *, timeout: float = _TIMEOUT) -> None:
        self._checks = dict(checks)
        self._timeout = timeout
        self._running: asyncio.Task[list[str]] | None = None
        self._checked_at = 0.0
        self._failing: list[str] = []

    async def failing(self) -> list[str]:
        """Returns the names of the parts that cannot be used, at most a second old."""
        if self._running is None:
            if time.monotonic() - self._checked_at < _CACHED_SECONDS and self._checked_at:
                return self._failing
            self._running = asyncio.create_task(self._check())
        # A client that disconnects must not cancel the checks for the others.
        return await asyncio.shield(self._running)

    async def _check(self) -> list[str]:
        try:
            names = await asyncio.gather(*(self._failure(name, check) for name, check in self._checks.items()))
            self._failing = [name for name in names if name]
            self._checked_at = time.monotonic()
            return self._failing
        finally:
            self._running = None

    async def _failure(self, name: str, check: Check) -> str:
        """Returns the name of a part that cannot be used, and an empty text for one that can."""
        try:
            async with asyncio.timeout(self._timeout):
                await check()
        except Exception as error:  # noqa: BLE001 - any failure means that the part cannot be used
            if name not in self._failing:
                log.warning("%s cannot be used: %s", name, str(error) or type(error).__name__)
            return name
        return ""
