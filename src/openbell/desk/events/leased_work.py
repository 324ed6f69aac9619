"""Work that runs in one process at a time: the one that holds a lease. Every write checks the lease.

The leases of a desk are in one of two places: the records, or the bar store.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count
from typing import Protocol

from openbell.desk.events.supervision import WorkState, WorkStatus
from openbell.market.errors import LeaseHeld, LeaseLost, Refused, SettingsError, StoreError
from openbell.stores import port
from openbell.stores.leases import this_process
from openbell.stores.port import Lease
from openbell.stores.records import leases
from openbell.stores.records.journal import LedgerBroken, in_view
from openbell.stores.records.records import Records
from openbell.stores.threads import Threads

log = logging.getLogger(__name__)

LEASE_SECONDS = 15.0
"""How long a lease lasts without a renewal; it is renewed three times as often."""
PAUSE = 5.0
"""Seconds to wait after a failure."""
STANDBY_SECONDS = 1.0
"""The time between two looks at a lease that another process holds."""
_parts = count(1)
"""Two desks of one process must not take each other's lease for their own."""
_LOOKS_BEFORE_REFUSAL = 5
"""After so many looks a process that stands by checks again whether it could take over."""
Work = Callable[[Lease, asyncio.Task[None]], Awaitable[None]]
"""Takes the lease and the task that renews it: the work ends as soon as it can when that task has ended.

It raises `StoreError` only if the place of the lease fails: failures of other stores are for the work itself to handle.
"""


class LeasePlace(Protocol):
    """A place of leases. Every call raises `StoreError` if the place fails."""

    place: str
    """Its name in messages."""

    async def acquire(self, name: str, holder: str, seconds: float) -> Lease:
        """Take a lease for so many seconds. Raises `LeaseHeld` while another process holds it."""

    async def renew(self, lease: Lease, seconds: float) -> None:
        """Let a lease expire so many seconds from now. Raises `LeaseLost`."""

    async def release(self, lease: Lease) -> None:
        """Free a lease, unless another process holds it by now."""

    async def holder(self, name: str) -> str | None:
        """Returns the process that holds a lease; None if there is none. It must not block writers."""

    async def write_refusal(self) -> str | None:
        """Returns why this process could not write although it held a lease; None if it could."""


class LeasesInRecords:
    """Leases in the records: of the engine, the sender of webhooks and the search for strategies."""

    place = "the records"

    def __init__(self, records: Records) -> None:
        self._records = records

    async def acquire(self, name: str, holder: str, seconds: float) -> Lease:
        """See the port."""
        return await self._records.write(in_view(leases.acquire), name, holder, seconds)

    async def renew(self, lease: Lease, seconds: float) -> None:
        """See the port."""
        await self._records.write(in_view(leases.renew), lease, seconds)

    async def release(self, lease: Lease) -> None:
        """See the port. A scenario that is ahead of this clock can be left too."""
        await self._records.write(in_view(leases.release), lease, ignore_clock=True)

    async def holder(self, name: str) -> str | None:
        """See the port."""
        return await self._records.read(leases.holder, name)

    async def write_refusal(self) -> str | None:
        """See the port: the ledger's head may belong to another machine."""
        reason = await self._records.write_refusal()
        return None if reason is None else f"{reason}; run {self._records.head.verify} --adopt"


class LeasesInBarStore:
    """Leases in the bar store: of the collector."""

    place = "the store"

    def __init__(self, leases: port.StoreLeases, threads: Threads) -> None:
        self._leases = leases
        self._threads = threads

    async def acquire(self, name: str, holder: str, seconds: float) -> Lease:
        """See the port."""
        return await self._threads.run(self._leases.acquire, name, holder, seconds)

    async def renew(self, lease: Lease, seconds: float) -> None:
        """See the port."""
        await self._threads.run(self._leases.renew, lease, seconds)

    async def release(self, lease: Lease) -> None:
        """See the port."""
        await self._threads.run(self._leases.release, lease)

    async def holder(self, name: str) -> str | None:
        """See the port."""
        return await self._threads.run(self._leases.holder, name)

    async def write_refusal(self) -> str | None:
        """See the port: every process may write."""
        return None


async def _ready_at_once() -> None:
    pass


class LeasedWork:
    """Takes the lease, renews it while the work runs, and releases it."""

    def __init__(
        self,
        leases: LeasePlace,
        name: str,
        kind: str,
        status: WorkStatus,
        *,
        ready: Callable[[], Awaitable[None]] = _ready_at_once,
        seconds: float | None = None,
        standby_level: int = logging.INFO,
        raises_first_failure: bool = False,
    ) -> None:
        """`kind` is the kind of work, for messages. The lease is taken only after `ready` has returned.

        That this process stands by is logged at `standby_level`.
        With `raises_first_failure`, a place of leases that cannot be used at the start is the caller's to report.
        """
        self._leases = leases
        self._name = name
        self._kind = kind
        self._part = next(_parts)
        self._status = status
        self._ready = ready
        self._given_seconds = seconds
        self._standby_level = standby_level
        self._raises = raises_first_failure

    @property
    def _holder(self) -> str:
        return this_process(self._kind, self._part)

    @property
    def _seconds(self) -> float:
        return LEASE_SECONDS if self._given_seconds is None else self._given_seconds

    async def run(self, work: Work) -> None:
        """Wait for the lease, run while it is held, start over when it is lost. Ends only if cancelled."""
        while True:
            try:
                lease = await self._take()
                self._raises = False
                await self._hold(lease, work)
            except LeaseLost as lost:
                log.warning("%s", lost)
                self._status.become(WorkState.WAITING, "lost the lease")
            except StoreError as error:
                if self._raises:
                    raise
                log.warning("%s; trying again in %.0f s", error, PAUSE)
                why = error.message if isinstance(error, LedgerBroken) else None
                self._status.become(
                    WorkState.WAITING, f"waiting: {why}" if why else f"waiting for {self._leases.place}"
                )
                await asyncio.sleep(PAUSE)
            except SettingsError:
                raise
            except Refused as error:
                # The scenario is ahead of this clock; a moving clock may catch up.
                if self._status.detail != str(error):
                    log.warning("%s", error)
                self._status.become(WorkState.WAITING, str(error))
                await asyncio.sleep(1.0)

    async def acquire(self) -> Lease:
        """Take the lease if it is free. Raises `LeaseHeld`."""
        return await self._leases.acquire(self._name, self._holder, self._seconds)

    async def renew(self, lease: Lease) -> None:
        """Renew the lease. Raises `LeaseLost`; `StoreError` or `Refused` if nothing can be written where it is kept."""
        await self._leases.renew(lease, self._seconds)

    async def release(self, lease: Lease) -> None:
        """Free the lease; failures are ignored, because it expires."""
        with suppress(StoreError, LeaseLost, Refused):
            await asyncio.shield(self._leases.release(lease))

    async def _hold(self, lease: Lease, work: Work) -> None:
        self._status.become(WorkState.WORKING)
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
            await asyncio.sleep(self._seconds / 3)
            await self.renew(lease)

    async def _take(self) -> Lease:
        stands_by = False
        for look in count():
            await self._ready()
            # Read first: processes that stand by must not block writers.
            held = await self._leases.holder(self._name)
            # A database that was restored from an older copy may have a claim of this work that has ended.
            if held in {None, self._holder}:
                with suppress(LeaseHeld):
                    return await self.acquire()
            if not stands_by:
                log.log(self._standby_level, "the %s is already running as %s; standing by", self._kind, held)
            if not stands_by or look % _LOOKS_BEFORE_REFUSAL == 0:
                await self._stand_by()
                stands_by = True
            # Two processes that begin at once must not always collide.
            await asyncio.sleep(STANDBY_SECONDS * random.uniform(0.5, 1.5))  # noqa: S311
        raise AssertionError

    async def _stand_by(self) -> None:
        """Show and log at once, not at the takeover, that this process could not write if it were its turn."""
        refusal = await self._leases.write_refusal()
        if refusal is None:
            self._status.become(WorkState.STANDING_BY)
            return
        detail = f"{WorkState.STANDING_BY}, but cannot take over: {refusal}"
        if self._status.detail != detail:
            log.warning("the %s is %s", self._kind, detail)
        self._status.become(WorkState.WAITING, detail)


async def while_renewed(renewing: asyncio.Task[None], work: Awaitable[None]) -> None:
    """Run work that may be cancelled at any point; cancel it when the lease is no longer renewed. Raises its error."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task, renewing}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        task.cancel()
        (ended,) = await asyncio.gather(task, return_exceptions=True)
    if isinstance(ended, Exception):
        raise ended
