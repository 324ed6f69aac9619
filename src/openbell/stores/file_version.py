"""Whether a SQLite file was written to since the last look, by any process."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Hashable
from contextlib import suppress
from pathlib import Path

from openbell.stores.sqlite_connections import connect

Stamp = tuple[tuple[int, int, int] | None, tuple[int, int, int] | None]


class FileVersion:
    """Reads a value that differs after every commit to a SQLite file; that takes a few microseconds.

    It has a connection of its own, because SQLite counts only the commits of other connections.
    """

    def __init__(self, path: Path, *, touch: bool = True) -> None:
        """Without `touch` the file is not opened, since that may create files beside it; changes then show within 1 s."""
        self._path = path
        self._touch = touch
        self._connection: sqlite3.Connection | None = None
        self._opened: int | None = None

    def read(self) -> Hashable:
        """Returns the current value; None if there is no file."""
        stamp = stamp_of(self._path)
        if stamp[0] is None:
            self.close()
            return None
        if not self._touch:
            return (stamp, int(time.monotonic()))
        inode = stamp[0][0]
        try:
            if self._connection is None or inode != self._opened:
                self._open(inode)
            assert self._connection is not None
            return (inode, self._connection.execute("PRAGMA data_version").fetchone()[0])
        except sqlite3.Error:
            self.close()
            return (inode, int(time.monotonic()))

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
        self._connection = self._opened = None

    def _open(self, inode: int) -> None:
        self.close()
        uri = f"{self._path.absolute().as_uri()}?mode=ro"
        self._connection = connect(uri, busy_seconds=0.1)
        self._opened = inode


def stamp_of(path: Path) -> Stamp:
    """Returns inode, size and time of a SQLite file and of its log; None for a file that does not exist."""
    return _stat(path), _stat(path.with_name(f"{path.name}-wal"))


def _stat(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
