"""Leases of the InfluxDB store: those of the buffer and, for the collector, a claim on the database itself."""

from __future__ import annotations

from contextlib import suppress

from openbell.market.errors import StoreError
from openbell.stores.buffer_leases import BufferLeases
from openbell.stores.influx.claims import Claims
from openbell.stores.leases import held
from openbell.stores.port import Lease

COLLECTOR = "collector"
"""The lease of the process that stores what the feed streams."""


class ClaimedLeases:
    """Leases with which one collector works for a database, whichever homes use it. Implements `stores.port.Leases`."""

    def __init__(self, home: BufferLeases, claims: Claims) -> None:
        self._home = home
        self._claims = claims

    def acquire(self, name: str, holder: str, ttl: float) -> Lease:
        """See the port. Claims nothing while InfluxDB is unreachable: `renew` does it then."""
        if name != COLLECTOR:
            return self._home.acquire(name, holder, ttl)
        if other := self._claimed_by(holder):  # read first: a process that stands by should not write to the buffer
            raise held(name, other)
        lease = self._home.acquire(name, holder, ttl)
        try:
            self._claims.acquire(name, holder)
        except BaseException:
            self._home.release(lease)
            raise
        return lease

    def renew(self, lease: Lease, ttl: float) -> None:
        """See the port."""
        self._home.renew(lease, ttl)
        if lease.name == COLLECTOR:
            self._claims.renew(lease.name, lease.holder)

    def release(self, lease: Lease) -> None:
        """See the port."""
        if lease.name == COLLECTOR:
            self._claims.release(lease.holder)
        self._home.release(lease)

    def holder(self, name: str) -> str | None:
        """See the port: a process of this home, or the one of another home that collects into the database."""
        found = self._home.holder(name)
        return self._claimed_by() if found is None and name == COLLECTOR else found

    def _claimed_by(self, holder: str = "") -> str | None:
        """The process other than `holder` that has claimed the database; None if there is none or it cannot be read."""
        with suppress(StoreError):
            return self._claims.other(holder)
        return None
