"""The engine: fills orders, enforces limits and fires alerts without a caller.

One engine runs per database of records: the one that holds the lease. Every write checks the lease.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from openbell.desk.events.hub import AlertChanged, BarsClosed, Hub, Listener, OrderChanged, StrategyChanged
from openbell.desk.events.leased_work import PAUSE, LeasedWork, LeasesInRecords
from openbell.desk.events.supervision import FailingUnits, WorkState, WorkStatus
from openbell.desk.settings.open_records import ENGINE as LEASE
from openbell.market.clock import Clock
from openbell.market.errors import LeaseHeld, LeaseLost, Refused, StoreError
from openbell.stores.port import Lease
from openbell.stores.records import checkpoints
from openbell.stores.records.journal import Journal, in_view
from openbell.stores.records.records import Records

_STEP = "the engine's step for"

Step = Callable[[Lease | None, int], Awaitable[int]]
"""Takes the lease and the time up to which bars have closed; returns the number of changes."""


@dataclass(slots=True)
class EngineStatus(WorkStatus):
    """The state of the engine and its counters, for displays."""

    changes: int = 0
    through: int = 0
    failing: FailingUnits = field(default_factory=FailingUnits)
    """The steps, and the units in them, that fail while the others go on."""


async def raise_if_general(records: Records, error: Exception, lease: Lease | None) -> None:
    """Raise an error that keeps every unit of the engine from its work; returns if it is of one unit alone.

    A failure of a store may be one of the bars, or of the records, without which nothing can be done: a write that changes
    nothing tells which. It also raises `LeaseLost`, and `Refused` if the scenario is ahead of this clock.
    """
    if isinstance(error, LeaseLost):
        raise error
    if isinstance(error, (StoreError, Refused)):
        await records.write(_nothing, lease=lease)


def _nothing(_journal: Journal) -> None:
    """A transaction that shows whether the records can be written."""


def checkpoint_step(records: Records) -> Step:
    """Returns the step that writes the checkpoints which are due."""

    async def step(lease: Lease | None, _until: int) -> int:
        if await records.read(checkpoints.due):
            await records.write(in_view(checkpoints.write_due), lease=lease)
        return 0

    return step


class Engine:
    """Runs its steps in order whenever bars close or records change, while it holds the lease."""

    def __init__(
        self,
        records: Records,
        clock: Clock,
        closed_until: Callable[[], int],
        steps: Mapping[str, Step],
        hub: Hub,
        every: float | None = None,
        failing: FailingUnits | None = None,
    ) -> None:
        """With `every`, the steps also run after so many seconds without a change.

        `steps` have names for messages. `failing` is where the steps note the units that fail.
        """
        # Desks with fixed clocks have a lease each: each engine writes only what its own clock allows.
        name = LEASE if clock.moving else f"{LEASE} at {clock.epoch():.3f}"
        self.status = EngineStatus(failing=failing or FailingUnits())
        self.lease = LeasedWork(LeasesInRecords(records), name, LEASE, self.status, ready=self._until_created)
        self._records = records
        self._closed_until = closed_until
        self._steps = steps
        self._hub = hub
        self._every = every
        self._complete = True
        """False if a step failed when the steps ran last."""

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
        """Run all steps once; returns the number of changes.

        A step that fails is noted, and the others run. Raises only what keeps all of them from their work.
        """
        until = self._closed_until()
        changes, complete = 0, True
        for name, step in self._steps.items():
            try:
                changes += await step(lease, until)
            except Exception as error:  # noqa: BLE001 - the other steps run
                await raise_if_general(self._records, error, lease)
                self.status.failing.failed(_STEP, name, error)
                complete = False
            else:
                self.status.failing.works(_STEP, name)
        self.status.changes += changes
        if complete:
            self.status.through = until
        self._complete = complete
        return changes

    async def _until_created(self) -> None:
        while not await self._records.is_created():
            self.status.become(WorkState.IDLE, "waiting for the scenario's first order, alert or decision")
            await asyncio.sleep(1.0)

    async def _work(self, lease: Lease, renewing: asyncio.Task[None]) -> None:
        with self._hub.listen(BarsClosed, OrderChanged, AlertChanged, StrategyChanged) as changed:
            while not renewing.done():
                await self.step(lease)
                await self._wait(changed, renewing)

    async def _wait(self, changed: Listener, renewing: asyncio.Task[None]) -> None:
        """Wait for a change, or until the lease is no longer renewed. A step that failed is tried again after a pause."""
        most = self._every if self._complete else min(PAUSE, self._every or PAUSE)
        waiting = asyncio.ensure_future(changed.wait(most))
        try:
            await asyncio.wait({waiting, renewing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
