"""Leases in the buffer of a bar store. All holders are processes of one machine, so times are monotonic."""

from __future__ import annotations

import time

from openbell.stores.holders import Holders
from openbell.stores.leases import LeaseRow
from openbell.stores.sqlite_file import SqliteFile


class BufferLeases:
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
