"""A home's buffer, read without changing anything in the home.

SQLite cannot open a file in WAL mode without creating files beside it, and a reader keeps a writer from removing its own
files. So the file and its write-ahead log are copied to a private folder and read there, and copied again when they change.

A process must not open one file both here and as a `Buffer`: closing a file drops all locks that the process has on it, also
those of its SQLite connections.
"""

from __future__ import annotations

import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from openbell.market.errors import StoreError
from openbell.market.provenance import Origin
from openbell.stores.buffer import Buffer
from openbell.stores.folders import PrivateFolder
from openbell.stores.sqlite_connections import FileVersion, Stamp, stamp_of

_TRIES = 200
_PAUSE = 0.005
_SETTLED = 100_000_000
"""Nanoseconds after which two changes of a file cannot have the same timestamp."""
_HEADER = 32
"""Bytes of a write-ahead log's header; they change whenever the log is restarted."""


class BufferView(Buffer):
    """A `Buffer` that only reads. A file that does not exist is read as an empty buffer."""

    def __init__(self, path: Path, origins: frozenset[Origin] | None = None, extra_tables: str = "") -> None:
        self.path = path
        self._changes = FileVersion(path, touch=False)
        self._origins = origins
        self._extra_tables = extra_tables
        self._folder = PrivateFolder()
        self._lock = threading.RLock()
        self._copies: list[Buffer] = []
        self._fingerprint: Stamp = (None, None)
        self._settled = False
        self._count = 0
        self._latest()

    @property
    def db(self) -> sqlite3.Connection:
        """A connection to the latest copy."""
        return self._latest().db

    def query(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a query, from the current content of the file."""
        with self._lock:
            return self._latest().query(query, *values)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Raises `StoreError`."""
        raise StoreError(f"{self.path} is opened read-only")
        yield self.db

    def close(self) -> None:
        """Remove the copies."""
        with self._lock:
            for copy in self._copies:
                copy.close()
            self._copies.clear()
            self._folder.remove()

    def _latest(self) -> Buffer:
        """A copy of the file's current content."""
        with self._lock:
            if not self._copies or stamp_of(self.path) != self._fingerprint or not self._settled:
                self._copy()
            return self._copies[-1]

    def _copy(self) -> None:
        self._count += 1
        target = self._folder.path / str(self._count) / self.path.name
        try:
            target.parent.mkdir()
            found = _copy_consistently(self.path, target)
        except OSError as error:
            raise StoreError(f"cannot read {self.path}: {error}") from error
        newest = max((part[2] for part in found if part), default=0)
        self._fingerprint, self._settled = found, time.time_ns() - newest > _SETTLED
        copy = Buffer(target, self._origins, self._extra_tables)
        if found[0] is None:
            copy.query("PRAGMA application_id = 0")  # the same number for every file that does not exist
        self._copies.append(copy)
        # Another thread may still read the previous copy.
        while len(self._copies) > 2:
            old = self._copies.pop(0)
            old.close()
            shutil.rmtree(old.path.parent, ignore_errors=True)


def _copy_consistently(source: Path, target: Path) -> Stamp:
    """Copy a database that other processes may be writing. Returns its fingerprint. Raises `StoreError`.

    The file is copied first, its log second: pages that a checkpoint moved into the file meanwhile are still in the log,
    unless the log was restarted in between, which changes its header.
    """
    log, copied_log = source.with_name(f"{source.name}-wal"), target.with_name(f"{target.name}-wal")
    for _ in range(_TRIES):
        before, header = stamp_of(source), _header(log)
        for old, new in ((source, target), (log, copied_log)):
            new.unlink(missing_ok=True)
            with suppress(FileNotFoundError):
                shutil.copyfile(old, new)
        unchanged = stamp_of(source) == before
        if unchanged or (header and _header(copied_log) == header == _header(log)):
            return before
        time.sleep(_PAUSE)
    raise StoreError(f"{source} changes faster than it can be copied; try again")


def _header(log: Path) -> bytes:
    try:
        with log.open("rb") as opened:
            return opened.read(_HEADER)
    except FileNotFoundError:
        return b""
