"""Leases: at most one collector and one engine write, even if a stopped process wakes up late.

A lease is a row with a token that grows each time the lease is taken. A write checks its token inside its own transaction,
so a process that was stopped until its lease had passed to another process writes nothing. The rules are here; a
`LeaseTable` reads and writes the rows: `buffer_leases` those of the bar store, `records.leases` those of the records.

A lease is lost by time alone, unless the death of its holder is certain (`lease_holders`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Protocol

from openbell.market.errors import LeaseHeld, LeaseLost
from openbell.stores.lease_holders import Holders
from openbell.stores.port import Lease


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """A lease as it is stored."""

    token: int
    holder: str
    """Empty after the lease was released."""
    expires: float


class LeaseTable(Protocol):
    """The rows of all leases, read and written inside one transaction."""

    @property
    def is_monotonic(self) -> bool:
        """True if `now` is this machine's monotonic time, which starts again at a reboot."""

    @property
    def holders(self) -> Holders:
        """The processes of this home that hold leases."""

    def now(self) -> float:
        """The time that all holders compare expiries with, in seconds."""

    def get(self, name: str) -> LeaseRow | None:
        """The row of a lease; None if it was never taken."""

    def put(self, name: str, row: LeaseRow) -> None:
        """Insert or replace the row of a lease."""


def acquire(table: LeaseTable, name: str, holder: str, ttl: float) -> Lease:
    """Take a lease for `ttl` seconds if it is free, expired, or its holder has died. Raises `LeaseHeld`."""
    row, now = table.get(name), table.now()
    latest = now + 10 * ttl if table.is_monotonic else inf  # a later expiry was written before a reboot
    if row and row.holder not in {"", holder} and now < row.expires <= latest and not _is_over(table, row.holder):
        raise held(name, row.holder, expires_in_s=round(row.expires - now, 1))
    table.holders.enter(holder)
    lease = Lease(name, (row.token if row else 0) + 1, holder)
    table.put(name, LeaseRow(lease.token, holder, now + ttl))
    return lease


def renew(table: LeaseTable, lease: Lease, ttl: float) -> None:
    """Let a lease expire `ttl` seconds from now. Raises `LeaseLost`."""
    check(table, lease)
    table.put(lease.name, LeaseRow(lease.token, lease.holder, table.now() + ttl))


def release(table: LeaseTable, lease: Lease) -> None:
    """Free a lease if its token is the current one. The token stays stored, so that late writes are refused."""
    row = table.get(lease.name)
    if row is not None and row.token == lease.token:
        table.put(lease.name, LeaseRow(row.token, "", 0.0))


def current_holder(table: LeaseTable, name: str) -> str | None:
    """The process that holds a lease now; None if there is none."""
    row = table.get(name)
    if row is None or not row.holder or row.expires < table.now() or _is_over(table, row.holder):
        return None
    return row.holder


def check(table: LeaseTable, lease: Lease) -> None:
    """Raise `LeaseLost` unless `lease` is still the current one. To be called inside the transaction of the write."""
    row = table.get(lease.name)
    if row is None or row.token != lease.token or row.holder != lease.holder:
        holder = (row and row.holder) or "nobody"
        raise LeaseLost(f"the {lease.name} lease is now held by {holder}; nothing was written")


def held(name: str, holder: str, **details: object) -> LeaseHeld:
    """The error for a lease that another process holds."""
    message = f"the {name} is already running as {holder}: stop that process first, or let it do the work"
    return LeaseHeld(message, holder=holder, **details)


def _is_over(table: LeaseTable, holder: str) -> bool:
    """Returns True if a lease ends before its time: its holder has died, or took it before this machine was started."""
    return table.holders.has_died(holder) or (table.is_monotonic and table.holders.is_of_another_boot(holder))
