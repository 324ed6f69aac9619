"""Leases in the buffer of a bar store. All holders are processes of one machine, so times are monotonic."""

from __future__ import annotations

import time

from openbell.stores import leases
from openbell.stores.lease_holders import Holders
from openbell.stores.leases import LeaseRow
from openbell.stores.port import Lease
from openbell.stores.sqlite_file import SqliteFile


class _Table:
    """Implements `stores.leases.LeaseTable`. `put` must be called inside a transaction of the buffer."""

    is_monotonic = True

    def __init__(self, buffer: SqliteFile) -> None:
        self._buffer = buffer
        self.holders = Holders(buffer.path.parent)

    def now(self) -> float:
        """See the port."""
        return time.monotonic()

    def get(self, name: str) -> LeaseRow | None:
        """See the port."""
        rows = self._buffer.query("SELECT token, holder, expires FROM leases WHERE name = ?", name)
        return LeaseRow(*rows[0]) if rows else None

    def put(self, name: str, row: LeaseRow) -> None:
        """See the port."""
        self._buffer.query(
            "INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?)", name, row.token, row.holder, row.expires
        )


class BufferLeases:
    """The leases of the processes that share a buffer. Implements `stores.port.Leases`."""

    def __init__(self, buffer: SqliteFile) -> None:
        self._buffer = buffer
        self._table = _Table(buffer)

    def acquire(self, name: str, holder: str, ttl: float) -> Lease:
        """See the port."""
        with self._buffer.transaction():
            return leases.acquire(self._table, name, holder, ttl)

    def renew(self, lease: Lease, ttl: float) -> None:
        """See the port."""
        with self._buffer.transaction():
            leases.renew(self._table, lease, ttl)

    def release(self, lease: Lease) -> None:
        """See the port."""
        with self._buffer.transaction():
            leases.release(self._table, lease)

    def holder(self, name: str) -> str | None:
        """See the port."""
        return leases.current_holder(self._table, name)

    def check(self, lease: Lease | None) -> None:
        """Raise `LeaseLost` if a write names a lease that is no longer current. Called inside the write's transaction."""
        if lease:
            leases.check(self._table, lease)
