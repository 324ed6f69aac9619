"""Leases of the InfluxDB store: those of the buffer and, for the collector, a claim on the database itself."""

from __future__ import annotations

from contextlib import suppress

from openbell.market.errors import StoreError
from openbell.stores.influx_claims import Claims
from openbell.stores.influx_sources import SourcedInflux
from openbell.stores.leases import held
from openbell.stores.port import Lease

COLLECTOR = "collector"
"""The lease of the process that stores what the feed streams."""


class ClaimedInflux(SourcedInflux):
    """The part of the InfluxDB store that lets one collector work for a database, whichever homes use it."""

    _claims: Claims | None
    """None if the database has no collector of ours: other programs write to it."""

    def acquire(self, name: str, holder: str, ttl: float) -> Lease:
        """See the port. Claims nothing while InfluxDB is unreachable: `renew` does it then."""
        if self._claims is None or name != COLLECTOR:
            return super().acquire(name, holder, ttl)
        if other := self._claimed_by(holder):  # read first: a process that stands by should not write to the buffer
            raise held(name, other)
        lease = super().acquire(name, holder, ttl)
        try:
            self._claims.acquire(name, holder)
        except BaseException:
            super().release(lease)
            raise
        return lease

    def renew(self, lease: Lease, ttl: float) -> None:
        """See the port."""
        super().renew(lease, ttl)
        if self._claims is not None and lease.name == COLLECTOR:
            self._claims.renew(lease.name, lease.holder)

    def release(self, lease: Lease) -> None:
        """See the port."""
        if self._claims is not None and lease.name == COLLECTOR:
            self._claims.release(lease.holder)
        super().release(lease)

    def lease_holder(self, name: str) -> str | None:
        """See the port: a process of this home, or the one of another home that collects into the database."""
        found = super().lease_holder(name)
        return self._claimed_by() if found is None and name == COLLECTOR else found

    def _claimed_by(self, holder: str = "") -> str | None:
        """The process other than `holder` that has claimed the database; None if there is none or it cannot be read."""
        with suppress(StoreError):
            return self._claims.other(holder) if self._claims is not None else None
        return None
