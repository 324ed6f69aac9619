"""The places where processes of a desk keep their leases: the records, or the bar store."""

from __future__ import annotations

from typing import Protocol

from openbell.stores import port
from openbell.stores.port import Lease
from openbell.stores.records import leases
from openbell.stores.records.journal import in_view
from openbell.stores.records.records import Records
from openbell.stores.threads import Threads


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
