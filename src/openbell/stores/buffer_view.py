"""A home's buffer, read without touching it.

SQLite cannot open a file in WAL mode without making files beside it, and a reader keeps a writer from removing its own. So
the file and its log are copied to a private folder and read there, and copied again when they have changed.
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
from openbell.stores.file_version import FileVersion, Stamp, stamp_of
from openbell.stores.private import PrivateFolder

_TRIES = 200
_PAUSE = 0.005
_SETTLED = 100_000_000
"""Nanoseconds after which two changes of a file cannot share one time."""
_HEADER = 32
"""Bytes of a log's header; they are others whenever the log is begun anew."""


class BufferView(Buffer):
    """What `Buffer` tells, of a file that is not ours to change; one that is not there has nothing in it."""

    def __init__(self, path: Path, origins: frozenset[Origin] | None = None, more: str = "") -> None:
        self.path = path
        self._changes = FileVersion(path, touch=False)
        self._origins = origins
        self._more = more
        self._folder = PrivateFolder()
        self._turn = threading.RLock()
        self._copies: list[Buffer] = []
        self._stamp: Stamp = (None, None)
        self._settled = False
        self._made = 0
        self._now()

    @property
    def db(self) -> sqlite3.Connection:
        """A connection to the newest copy."""
        return self._now().db

    def query(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a query, as the file is now."""
        with self._turn:
            return self._now().query(query, *values)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Raise `StoreError`: nothing is written here."""
        raise StoreError(f"{self.path} is opened to be read only")
        yield self.db

    def close(self) -> None:
        """Remove the copies."""
        with self._turn:
            for copy in self._copies:
                copy.close()
            self._copies.clear()
            self._folder.remove()

    def _now(self) -> Buffer:
        """A copy of the file as it is now."""
        with self._turn:
            stamp = stamp_of(self.path)
            if not self._copies or stamp != self._stamp or not self._settled:
                self._copy()
            return self._copies[-1]

    def _copy(self) -> None:
        self._made += 1
        target = self._folder.path / str(self._made) / self.path.name
        try:
            target.parent.mkdir()
            stamp = _copy_whole(self.path, target)
        except OSError as error:
            raise StoreError(f"cannot read {self.path}: {error}") from error
        newest = max((part[2] for part in stamp if part), default=0)
        self._stamp, self._settled = stamp, time.time_ns() - newest > _SETTLED
        copy = Buffer(target, self._origins, self._more)
        if stamp[0] is None:
            copy.query("PRAGMA application_id = 0")  # one file that is not there is like another
        self._copies.append(copy)
        # Another thread may still read the copy before this one.
        while len(self._copies) > 2:
            old = self._copies.pop(0)
            old.close()
            shutil.rmtree(old.path.parent, ignore_errors=True)


def _copy_whole(source: Path, target: Path) -> Stamp:
    """Copy a database that others may be writing; what it looked like then.

    The file first, its log second: whatever a checkpoint moved into the file meanwhile is still in the log, unless the
    log was begun anew in between, which its header tells.
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
    raise StoreError(f"{source} changes faster than it can be read: try again")


def _header(log: Path) -> bytes:
    try:
        with log.open("rb") as opened:
            return opened.read(_HEADER)
    except FileNotFoundError:
        return b""
