"""The engine: fills orders, enforces limits and fires alerts without a caller.

One engine runs per database of records: the one that holds the lease. Every write checks the lease.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from openbell.desk.events import AlertChanged, BarsClosed, Hub, Listener, OrderChanged, StrategyChanged
from openbell.desk.trading.record_locations import ENGINE as LEASE
from openbell.market.clock import Clock
from openbell.market.errors import LeaseHeld, LeaseLost, OpenbellError, Refused, SettingsError, StoreError
from openbell.stores.leases import this_process
from openbell.stores.port import Lease
from openbell.stores.records import leases
from openbell.stores.records.records import Records

log = logging.getLogger(__name__)

LEASE_SECONDS = 15.0
_PAUSE = 5.0
"""Seconds to wait after a failure."""
Step = Callable[[Lease | None, int], Awaitable[int]]
"""Takes the lease and the time up to which bars have closed; returns the number of changes."""


@dataclass(slots=True)
class Status:
    """The state of the engine and its counters, for displays."""

    state: str = "starting"
    changes: int = 0
    through: int = 0


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
        self._name = LEASE if clock.moving else f"{LEASE} at {clock.epoch():.3f}"
        self._records = records
        self._clock = clock
        self._closed_until = closed_until
        self._steps = steps
        self._hub = hub
        self._every = every
        self.status = Status()

    async def run(self) -> None:
        """Wait for the lease, run while it is held, start over when it is lost. Ends only if cancelled."""
        while True:
            try:
                lease = await self._take_lease()
                await self._work(lease)
            except LeaseLost as lost:
                log.warning("%s", lost)
                self.status.state = "lost the lease"
            except StoreError as error:
                log.warning("%s; trying again in %.0f s", error, _PAUSE)
                self.status.state = "waiting for the records"
                await asyncio.sleep(_PAUSE)
            except SettingsError:
                raise
            except Refused as error:
                # The scenario is ahead of this clock; a moving clock may catch up.
                if self.status.state != str(error):
                    log.warning("%s", error)
                self.status.state = str(error)
                await asyncio.sleep(1.0)

    async def once(self) -> int:
        """Run all steps once if no other process holds the lease; returns the number of changes."""
        if not await self._records.is_created():
            return 0
        try:
            lease = await self._acquire()
        except LeaseHeld:
            return 0
        try:
            return await self.step(lease)
        finally:
            await self._release(lease)

    async def step(self, lease: Lease | None) -> int:
        """Run all steps once; returns the number of changes."""
        until = self._closed_until()
        changes = 0
        for step in self._steps:
            changes += await step(lease, until)
        self.status.changes += changes
        self.status.through = until
        return changes

    async def _work(self, lease: Lease) -> None:
        self.status.state = "working"
        renewing = asyncio.create_task(self._keep_lease(lease))
        try:
            with self._hub.listen(BarsClosed, OrderChanged, AlertChanged, StrategyChanged) as changed:
                while not renewing.done():
                    await self._safely(lease)
                    await self._wait(changed, renewing)
            await renewing  # raises the error that ended it
        finally:
            renewing.cancel()
            await self._release(lease)

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
            await asyncio.sleep(_PAUSE)

    async def _keep_lease(self, lease: Lease) -> None:
        while True:
            await asyncio.sleep(LEASE_SECONDS / 3)
            await self._records.write(lambda journal: leases.renew(journal.view, lease, LEASE_SECONDS))

    async def _take_lease(self) -> Lease:
        while True:
            if not await self._records.is_created():
                self.status.state = "waiting for the scenario's first order, alert or decision"
                await asyncio.sleep(1.0)
                continue
            # Read first: processes that stand by must not block writers.
            held = await self._records.read(lambda view: leases.holder(view, self._name))
            if held is None:
                with suppress(LeaseHeld):
                    return await self._acquire()
            if self.status.state != "standing by":
                log.info("the engine is already running as %s; standing by", held)
            self.status.state = "standing by"
            await asyncio.sleep(1.0)

    async def _acquire(self) -> Lease:
        holder = this_process(LEASE)
        return await self._records.write(
            lambda journal: leases.acquire(journal.view, self._name, holder, LEASE_SECONDS)
        )

    async def _release(self, lease: Lease) -> None:
        with suppress(StoreError, LeaseLost, Refused):
            await self._records.write(lambda journal: leases.release(journal.view, lease), ignore_clock=True)
