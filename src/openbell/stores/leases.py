"""Leases: at most one collector and one engine write, even if a stopped process wakes up late.

A lease is a row with a token that grows each time the lease is taken. A write checks its token inside its own transaction,
so a process that was stopped until its lease had passed to another process writes nothing. The rules come first; a
`LeaseTable` reads and writes the rows: `BufferLeases` has those of a bar store, `records.leases` those of the records.

A lease is lost by time alone, unless the death of its holder is certain. A process has a random id, made once. Before it
takes a lease it locks a file of that name in the folder `holders` beside the lease's database, or in the home if that is a
server. The kernel frees the lock when the process ends, however it ends. A process that finds the file and can lock it knows
that the holder has died. Host names and process ids prove nothing: two containers may share both.

The file holds the boot id of its machine and its own device and number. Where these differ the file is a copy, or locks of
another machine are not visible: nothing is proved, and the lease is lost by time alone.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import secrets
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from math import inf
from pathlib import Path
from typing import Protocol

from openbell.market.errors import LeaseHeld, LeaseLost
from openbell.stores.port import Lease
from openbell.stores.sqlite_file import SqliteFile

_FOLDER = "holders"
_KEPT_SECONDS = 3600.0
"""How long the file of a killed process is kept: its leases have expired by then."""
_guard = threading.Lock()
_locked: dict[Path, int] = {}
"""The descriptors of this process's files, by path. Closing one would free its lock."""
_id = secrets.token_hex(8)


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


class _BufferTable:
    """The rows in a buffer: all holders are processes of one machine, so times are monotonic. `put` needs a transaction."""

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
    """The leases of the processes that share a buffer. Implements `stores.port.StoreLeases`."""

    def __init__(self, buffer: SqliteFile) -> None:
        self._buffer = buffer
        self._table = _BufferTable(buffer)

    def acquire(self, name: str, holder: str, ttl: float) -> Lease:
        """See the port."""
        with self._buffer.transaction():
            return acquire(self._table, name, holder, ttl)

    def renew(self, lease: Lease, ttl: float) -> None:
        """See the port."""
        with self._buffer.transaction():
            renew(self._table, lease, ttl)

    def release(self, lease: Lease) -> None:
        """See the port."""
        with self._buffer.transaction():
            release(self._table, lease)

    def holder(self, name: str) -> str | None:
        """See the port."""
        return current_holder(self._table, name)

    def check(self, lease: Lease | None) -> None:
        """Raise `LeaseLost` if a write names a lease that is no longer current. Called inside the write's transaction."""
        if lease:
            check(self._table, lease)


def this_process(label: str, part: int = 0) -> str:
    """The name of one part of this process as a holder: label, host, process id and part for people, then its random id."""
    return f"{label}@{socket.gethostname()}:{os.getpid()}:{part}:{_id}"


class Holders:
    """The files of the processes that hold leases of the databases in one folder."""

    def __init__(self, folder: Path | None) -> None:
        """Without a folder nothing is locked and nothing proved."""
        self._folder = None if folder is None else folder / _FOLDER

    def enter(self, holder: str) -> None:
        """Lock this process's file, once, before it takes a lease. Without the file its leases are lost by time alone."""
        if self._folder is None or _id_of(holder) != _id:
            return
        path = self._folder / _id
        with _guard, suppress(OSError):
            if path in _locked and _is_at(path, _locked[path]):
                return
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _tidy(self._folder)
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.pwrite(fd, _proof(fd), 0)
            finally:
                os.close(fd)
            # Kept open for reading only: a file that is open for writing keeps its disk from being made read-only.
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(fd)
                raise
            _locked[path] = fd

    def has_died(self, holder: str) -> bool:
        """Returns True if the holder was a process of this machine and this home that no longer runs."""
        name = _id_of(holder)
        return self._folder is not None and bool(name) and name != _id and _is_free(self._folder / name)

    def is_of_another_boot(self, holder: str) -> bool:
        """Returns True if the holder took its lease before this machine was started, or on another machine."""
        name = _id_of(holder)
        if self._folder is None or not name:
            return False
        try:
            written = (self._folder / name).read_bytes().split()
        except OSError:
            return False
        return bool(_boot_id()) and bool(written) and written[0] != _boot_id()


def _tidy(folder: Path) -> None:
    """Remove the files of processes that were killed long ago."""
    for path in folder.iterdir():
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _KEPT_SECONDS and _is_free(path):
                path.unlink()


def _is_free(path: Path) -> bool:
    """Returns True if a file was locked on this machine and no longer is."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if not _boot_id() or os.read(fd, 200) != _proof(fd):
            return False
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(fd)


def _id_of(holder: str) -> str:
    """The random id in a holder's name; empty if there is none."""
    name = holder.rpartition(":")[2]
    return name if len(name) == len(_id) and name.isalnum() and "@" in holder else ""


def _proof(fd: int) -> bytes:
    """What the holder's own file holds: a copy of the file has another number."""
    found = os.fstat(fd)
    return b"%s %d %d\n" % (_boot_id(), found.st_dev, found.st_ino)


@cache
def _boot_id() -> bytes:
    """The id that the kernel made when this machine was started; empty if it makes none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    except OSError:
        return b""


def _is_at(path: Path, fd: int) -> bool:
    """Returns True if the open file is still the one at the path."""
    try:
        return os.path.samestat(path.stat(), os.fstat(fd))
    except OSError:
        return False


def _leave() -> None:
    """Remove this process's files: it has released its leases, or they expire."""
    for path, fd in _locked.items():
        with suppress(OSError):
            if _is_at(path, fd):
                path.unlink()


def _begin_anew() -> None:
    """Give a forked child an id of its own; its copies of the descriptors would keep its parent's locks."""
    global _id, _guard
    _id, _guard = secrets.token_hex(8), threading.Lock()
    for fd in _locked.values():
        with suppress(OSError):
            os.close(fd)
    _locked.clear()


atexit.register(_leave)
os.register_at_fork(after_in_child=_begin_anew)
