"""Leases: exactly one collector (later: one engine) writes, even when a stopped process wakes up late.

A lease is a row with a token that grows with every change of hands. A write names its token inside its own transaction,
so a process that was stopped past its lease and goes on writes nothing. Times are monotonic: they are comparable between
the processes of one machine, and a row left over from before a reboot shows an impossible expiry.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import time
from pathlib import Path

from openbell.market.errors import LeaseHeld, LeaseLost
from openbell.stores.buffer import Buffer
from openbell.stores.port import Lease


def this_process(label: str) -> str:
    """Who holds a lease, so that its death can be noticed: label, host, process and when it began."""
    pid = os.getpid()
    return f"{label}@{socket.gethostname()}:{pid}:{_state(pid)[1]}"


def acquire(buffer: Buffer, name: str, holder: str, ttl: float) -> Lease:
    """Take the lease if it is free, expired, or its holder has died."""
    with buffer.transaction() as db:
        row = db.execute("SELECT token, holder, expires FROM leases WHERE name = ?", (name,)).fetchone()
        now = time.monotonic()
        if row and row[1] and row[1] != holder and now < row[2] <= now + 10 * ttl and not is_dead(row[1]):
            raise LeaseHeld(
                f"the {name} is already running as {row[1]}; stop it first, or leave it the work",
                holder=row[1],
                expires_in_s=round(row[2] - now, 1),
            )
        token = (row[0] if row else 0) + 1
        db.execute("INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?)", (name, token, holder, now + ttl))
    return Lease(name, token, holder)


def renew(buffer: Buffer, lease: Lease, ttl: float) -> None:
    """Move the expiry on."""
    with buffer.transaction() as db:
        check(db, lease)
        db.execute("UPDATE leases SET expires = ? WHERE name = ?", (time.monotonic() + ttl, lease.name))


def release(buffer: Buffer, lease: Lease) -> None:
    """Give it back; the token stays, so that a late write is still refused."""
    with buffer.transaction() as db:
        db.execute("UPDATE leases SET holder = '', expires = 0 WHERE name = ? AND token = ?", (lease.name, lease.token))


def holder(buffer: Buffer, name: str) -> str | None:
    """Who holds a lease now."""
    rows = buffer.query("SELECT holder, expires FROM leases WHERE name = ?", name)
    if not rows or not rows[0][0] or rows[0][1] < time.monotonic() or is_dead(rows[0][0]):
        return None
    return str(rows[0][0])


def check(db: sqlite3.Connection, lease: Lease) -> None:
    """Refuse unless the lease is still ours; called inside the write's own transaction."""
    row = db.execute("SELECT token, holder FROM leases WHERE name = ?", (lease.name,)).fetchone()
    if row is None or row[0] != lease.token or row[1] != lease.holder:
        raise LeaseLost(
            f"the lease of the {lease.name} has passed to {(row and row[1]) or 'nobody'}; nothing was written"
        )


def _state(pid: int) -> tuple[str, str]:
    """A process's state, and when it began as the system counts it: tells a reused number from the old one."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return fields[0], fields[19]
    except (OSError, IndexError):
        return "", ""


def is_dead(holder: str) -> bool:
    """Whether the holder was a process of this machine that is gone."""
    try:
        place, pid, began = holder.rsplit(":", 2)
        number = int(pid)
    except ValueError:
        return False
    if place.rpartition("@")[2] != socket.gethostname():
        return False
    state, started = _state(number)
    if state in {"Z", "X"}:  # killed, and its parent has not looked yet
        return True
    if began and started:
        return started != began
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
