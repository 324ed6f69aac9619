"""The engine: fills orders, enforces limits and fires alerts without a caller.

One engine runs per database of records: the one that holds the lease. Every write checks the lease.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from openbell.desk.events import AlertChanged, BarsClosed, Hub, Listener, OrderChanged, StrategyChanged
from openbell.desk.leased_work import PAUSE, LeasedWork, WorkStatus
from openbell.desk.trading.record_locations import ENGINE as LEASE
from openbell.market.clock import Clock
from openbell.market.errors import LeaseHeld, LeaseLost, OpenbellError, Refused, StoreError
from openbell.stores.port import Lease
from openbell.stores.records import checkpoints
from openbell.stores.records.records import Records

log = logging.getLogger(__name__)

Step = Callable[[Lease | None, int], Awaitable[int]]
"""Takes the lease and the time up to which bars have closed; returns the number of changes."""


@dataclass(slots=True)
class Status(WorkStatus):
    """The state of the engine and its counters, for displays."""

    changes: int = 0
    through: int = 0


def checkpoint_step(records: Records) -> Step:
    """Returns the step that writes the checkpoints which are due."""

    async def step(lease: Lease | None, _until: int) -> int:
        if await records.read(checkpoints.due):
            await records.write(lambda journal: checkpoints.write_due(journal.view), lease)
        return 0

    return step


class Engine:
    """Runs its steps in order whenever bars close or records change, while it holds the lease."""

    def __init__(
        self,
        records: Records,
        clock: Clock,
        closed_until: Callable[[], int],
        steps: tuple[Step, ...],
        hub: Hub,
        every: float | None = None,
    ) -> None:
        """With `every`, the steps also run after so many seconds without a change."""
        # Desks with fixed clocks have a lease each: each engine writes only what its own clock allows.
        name = LEASE if clock.moving else f"{LEASE} at {clock.epoch():.3f}"
        self.status = Status()
        self.lease = LeasedWork(records, name, LEASE, self.status)
        self._records = records
        self._closed_until = closed_until
        self._steps = steps
        self._hub = hub
        self._every = every

    async def run(self) -> None:
        """Wait for the lease, run while it is held, start over when it is lost. Ends only if cancelled."""
        await self.lease.run(self._work)

    async def once(self) -> int:
        """Run all steps once if no other process holds the lease; returns the number of changes."""
        if not await self._records.is_created():
            return 0
        try:
            lease = await self.lease.acquire()
        except LeaseHeld:
            return 0
        try:
            return await self.step(lease)
        finally:
            await self.lease.release(lease)

    async def step(self, lease: Lease | None) -> int:
        """Run all steps once; returns the number of changes."""
        until = self._closed_until()
        changes = 0
        for step in self._steps:
            changes += await step(lease, until)
        self.status.changes += changes
        self.status.through = until
        return changes

    async def _work(self, lease: Lease, renewing: asyncio.Task[None]) -> None:
        with self._hub.listen(BarsClosed, OrderChanged, AlertChanged, StrategyChanged) as changed:
            while not renewing.done():
                await self._safely(lease)
                await self._wait(changed, renewing)

    async def _wait(self, changed: Listener, renewing: asyncio.Task[None]) -> None:
        """Wait for a change, or until the lease is no longer renewed."""
        waiting = asyncio.ensure_future(changed.wait(self._every))
        try:
            await asyncio.wait({waiting, renewing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()

    async def _safely(self, lease: Lease) -> None:
        """Run all steps once; unexpected errors are logged, so that the engine keeps running."""
        try:
            await self.step(lease)
        except (LeaseLost, StoreError, Refused):
            raise
        except OpenbellError as error:
            log.warning("%s", error)
        except Exception:
            log.exception("a step of the engine failed")
            await asyncio.sleep(PAUSE)
