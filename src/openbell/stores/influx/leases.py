"""Leases of the InfluxDB store: those of the buffer and, for the collector, a claim on the database itself.

InfluxDB has no transactions and no conditional writes, so a lease cannot be kept there as it is in a table. A collector
writes a claim, a point with the server's time, and repeats it. A claim counts for 15 s of the server's time, unless the
death of its process is certain (`stores.leases`). So one collector works for a database, whichever homes use it.

| state | written |
|---|---|
| `wants` | before it looks for claims of others: of two that want it at the same time at least one sees the other |
| `holds` | after it has seen its own claim and no other, then every 5 s |
| `released` | when it stops, or has seen another claim |

Two never begin together. What this cannot do: a process that was stopped for more than 15 s may write the bars that it was
writing when it was stopped. They are bars of the same feed, and InfluxDB replaces equal points. While InfluxDB is
unreachable nobody can claim: each home collects into its own buffer, and all but one stop once it answers.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress

from openbell.market.errors import LeaseLost, StoreError
from openbell.stores.influx.http import InfluxHttp, escaped
from openbell.stores.leases import BufferLeases, Holders, held
from openbell.stores.port import Lease

log = logging.getLogger(__name__)

MEASUREMENT = "openbell_collector"
SECONDS = 15.0
"""How long a claim counts."""
_VISIBLE_SECONDS = 5.0
"""How long to wait until an own claim can be read: a cluster may take a moment."""
_KEPT = "1d"
_WANTS, _HOLDS, _RELEASED = "wants", "holds", "released"
COLLECTOR = "collector"
"""The lease of the process that stores what the feed streams."""


class Claims:
    """The claims on one database, as the processes of one home make them."""

    def __init__(self, http: InfluxHttp, holders: Holders, seconds: float = SECONDS) -> None:
        self._http = http
        self._holders = holders
        self._seconds = seconds
        self._confirmed: dict[str, float] = {}
        """By holder, the monotonic time before its last claim that InfluxDB has accepted."""

    def other(self, holder: str = "") -> str | None:
        """The process other than `holder` that collects or is about to; None if there is none. Raises `StoreError`."""
        return next((each for each in self._alive() if each != holder), None)

    def acquire(self, name: str, holder: str) -> None:
        """Claim the database. Raises `LeaseHeld` if another process does; claims nothing while InfluxDB is unreachable."""
        self._confirmed.pop(holder, None)
        try:
            began = time.monotonic()
            other = self.other(holder)
            if other is None:
                self._write(holder, _WANTS)
                other = self._other_after_own(holder)
                self._write(holder, _HOLDS if other is None else _RELEASED)
            if other is None:
                self._confirmed[holder] = began
                self._http.delete_older(MEASUREMENT, _KEPT)
        except StoreError as error:
            log.warning("%s; whether another home collects into its database is checked when it answers", error)
            return
        if other is not None:
            raise held(name, other)

    def renew(self, name: str, holder: str) -> None:
        """Repeat a claim. Raises `LeaseLost` if another process has claimed the database meanwhile."""
        lapsed = time.monotonic() - self._confirmed.get(holder, -self._seconds) > 0.8 * self._seconds
        try:
            other = self.other(holder)
            if other is None and lapsed:  # another process may be claiming it at this moment
                self._write(holder, _WANTS)
                other = self._other_after_own(holder)
            began = time.monotonic()
            self._write(holder, _HOLDS if other is None else _RELEASED)
        except StoreError as error:
            log.debug("the claim on InfluxDB's database was not renewed: %s", error)
            return
        if other is not None:
            self._confirmed.pop(holder, None)
            raise LeaseLost(f"the {name} of InfluxDB's database {self._http.database} is now {other}")
        self._confirmed[holder] = began

    def release(self, holder: str) -> None:
        """End a claim. While InfluxDB is unreachable it ends by itself."""
        if self._confirmed.pop(holder, None) is not None:
            try:
                self._write(holder, _RELEASED)
            except StoreError as error:
                log.debug("the claim on InfluxDB's database ends by itself: %s", error)

    def _other_after_own(self, holder: str) -> str | None:
        """Read until the own claim is visible. Returns another one, if there is any."""
        deadline = time.monotonic() + _VISIBLE_SECONDS
        while holder not in (found := self._alive()):
            if time.monotonic() > deadline:
                raise StoreError(f"InfluxDB at {self._http.url} does not return what was written to it")
            time.sleep(0.05)
        return next((each for each in found if each != holder), None)

    def _alive(self) -> list[str]:
        query = (
            f'SELECT last("state") FROM "{MEASUREMENT}" WHERE time > now() - {round(self._seconds * 1000)}ms '
            'GROUP BY "holder"'
        )
        found = {str(each["tags"]["holder"]): each["values"][0][1] for each in self._http.series(query)}
        return [holder for holder, state in found.items() if state != _RELEASED and not self._holders.has_died(holder)]

    def _write(self, holder: str, state: str) -> None:
        self._http.write_now(f'{MEASUREMENT},holder={escaped(holder)} state="{state}"')


class ClaimedLeases:
    """Leases with which one collector works for a database, whichever homes use it. Implements `stores.port.StoreLeases`."""

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
