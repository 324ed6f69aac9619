"""Work on the records that runs in one process at a time: the one that holds a lease there. Every write checks the lease."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count

from openbell.market.errors import LeaseHeld, LeaseLost, Refused, SettingsError, StoreError
from openbell.stores.holders import this_process
from openbell.stores.port import Lease
from openbell.stores.records import leases
from openbell.stores.records.journal import LedgerBroken
from openbell.stores.records.records import Records

log = logging.getLogger(__name__)

LEASE_SECONDS = 15.0
PAUSE = 5.0
"""Seconds to wait after a failure."""
STANDBY_SECONDS = 1.0
"""The time between two looks at a lease that another process holds."""
_LEDGER_LOOKS = 5
"""After so many looks a process that stands by checks again whether it could take over."""
_STANDING_BY = "standing by"
Work = Callable[[Lease, asyncio.Task[None]], Awaitable[None]]
"""Takes the lease and the task that renews it: the work ends as soon as it can when that task has ended."""


@dataclass(slots=True)
class WorkStatus:
    """The state of the work, for displays."""

    state: str = "starting"


async def _at_once() -> None:
    pass


class LeasedWork:
    """Takes the lease, renews it while the work runs, and releases it."""

    def __init__(
        self,
        records: Records,
        name: str,
        kind: str,
        status: WorkStatus,
        ready: Callable[[], Awaitable[None]] = _at_once,
    ) -> None:
        """`kind` is the kind of work, for messages. The lease is taken only after `ready` has returned."""
        self._records = records
        self._name = name
        self._kind = kind
        self._status = status
        self._ready = ready

    async def run(self, work: Work) -> None:
        """Wait for the lease, run while it is held, start over when it is lost. Ends only if cancelled."""
        while True:
            try:
                await self._ready()
                lease = await self._take()
                await self._hold(lease, work)
            except LeaseLost as lost:
                log.warning("%s", lost)
                self._status.state = "lost the lease"
            except StoreError as error:
                log.warning("%s; trying again in %.0f s", error, PAUSE)
                broken = isinstance(error, LedgerBroken)
                self._status.state = f"waiting: {error.message}" if broken else "waiting for the records"
                await asyncio.sleep(PAUSE)
            except SettingsError:
                raise
            except Refused as error:
                # The scenario is ahead of this clock; a moving clock may catch up.
                if self._status.state != str(error):
                    log.warning("%s", error)
                self._status.state = str(error)
                await asyncio.sleep(1.0)

    async def acquire(self) -> Lease:
        """Take the lease if it is free. Raises `LeaseHeld`."""
        holder = this_process(self._kind)
        return await self._records.write(
            lambda journal: leases.acquire(journal.view, self._name, holder, LEASE_SECONDS)
        )

    async def release(self, lease: Lease) -> None:
        """Free the lease; failures are ignored, because it expires."""
        with suppress(StoreError, LeaseLost, Refused):
            await self._records.write(lambda journal: leases.release(journal.view, lease), ignore_clock=True)

    async def _hold(self, lease: Lease, work: Work) -> None:
        self._status.state = "working"
        renewing = asyncio.create_task(self._keep(lease))
        try:
            await work(lease, renewing)
            if renewing.done():
                await renewing  # raises the error that ended it
        finally:
            renewing.cancel()
            await self.release(lease)

    async def _keep(self, lease: Lease) -> None:
        while True:
            await asyncio.sleep(LEASE_SECONDS / 3)
            await self._records.write(lambda journal: leases.renew(journal.view, lease, LEASE_SECONDS))

    async def _take(self) -> Lease:
        for look in count():
            if not await self._records.is_created():
                self._status.state = "waiting for the scenario's first order, alert or decision"
                await asyncio.sleep(1.0)
                continue
            # Read first: processes that stand by must not block writers.
            held = await self._records.read(lambda view: leases.holder(view, self._name))
            if held is None:
                with suppress(LeaseHeld):
                    return await self.acquire()
            if not self._status.state.startswith(_STANDING_BY):
                log.info("the %s is already running as %s; standing by", self._kind, held)
                self._status.state = _STANDING_BY
            if look % _LEDGER_LOOKS == 0:
                await self._check_ledger()
            await asyncio.sleep(STANDBY_SECONDS)
        raise AssertionError

    async def _check_ledger(self) -> None:
        """Show and log at once, not at the takeover, that this home would refuse to write to the ledger."""
        state = _STANDING_BY
        if reason := await self._records.write_refusal():
            state += f", but cannot take over: {reason}; run {self._records.head.verify} --adopt"
        if state not in {self._status.state, _STANDING_BY}:
            log.warning("the %s is %s", self._kind, state)
        self._status.state = state
