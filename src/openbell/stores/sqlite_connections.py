"""How every SQLite file is opened, copied, and watched for commits of any process.

Connections are in autocommit mode and wait a bounded time for locks. Files are in WAL mode, and each commit is synchronised
to disk.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Hashable, Iterable
from contextlib import closing, suppress
from pathlib import Path

from openbell.market.errors import StoreError
from openbell.stores.failure_causes import full_disk

BUSY_SECONDS = 30.0
"""How long a statement waits for a lock that another connection holds."""
_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
Stamp = tuple[tuple[int, int, int] | None, tuple[int, int, int] | None]


def connect(target: str | Path, busy_seconds: float | None = None) -> sqlite3.Connection:
    """Open a path, a `file:` URI or `:memory:`; any thread may use the connection. Changes nothing in the file."""
    timeout = BUSY_SECONDS if busy_seconds is None else busy_seconds
    is_uri = isinstance(target, str) and target.startswith("file:")
    return sqlite3.connect(target, timeout=timeout, isolation_level=None, check_same_thread=False, uri=is_uri)


def connect_durably(target: str | Path, *pragmas: str) -> sqlite3.Connection:
    """Open a file to write it: a commit that returned survives kill −9 and power loss. `pragmas` are applied last."""
    connection = connect(target)
    try:
        _enter_wal(connection)
        for pragma in ("synchronous = FULL", *pragmas):
            connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return connection


def is_locked(error: object) -> bool:
    """Returns True if an SQLite error means that another connection holds a lock."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _LOCKED


def file_identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of the file at a path; None if there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _enter_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL. SQLite's own wait does not cover this step when several processes create the file at once."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not is_locked(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def copy_database(source: Path, target: Path, *, without: Iterable[str] = ()) -> None:
    """Copy a database as it is at one moment, durably; `without` names tables whose rows are left out.

    Writers go on meanwhile. Raises `StoreError`.
    """
    try:
        with closing(open_reader(source)) as opened, closing(connect(target)) as copied:
            opened.backup(copied)
            copied.execute("PRAGMA secure_delete = ON")
            for table in without:
                if copied.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (table,)).fetchone():
                    copied.execute(f'DELETE FROM "{table}"')
            damage = copied.execute("PRAGMA quick_check(1)").fetchone()[0]
        if damage != "ok":
            raise StoreError(f"{source} is damaged: {damage}")
        sync_file(target)
    except sqlite3.Error as error:
        cause = full_disk(error, target) or full_disk(error, source) or error
        raise StoreError(f"cannot copy {source}: {cause}") from error
    except OSError as error:
        raise StoreError(f"cannot write {target}: {error.strerror}") from error


def is_in_use(path: Path) -> bool:
    """Returns True if another process has a database open. The database must be one that is about to be replaced."""
    try:
        with closing(connect(f"{path.absolute().as_uri()}?mode=rw", 0.2)) as db:
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
            db.execute("BEGIN IMMEDIATE")
            db.execute("ROLLBACK")
    except sqlite3.Error as error:
        return is_locked(error)
    return False


def sync_file(path: Path) -> None:
    """Make the content of a file durable. Raises `OSError`."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def open_reader(path: Path) -> sqlite3.Connection:
    """A connection to read with. It leaves the log of a killed writer in place, and none where there was none."""
    has_log = path.with_name(f"{path.name}-wal").exists()
    return connect(f"{path.absolute().as_uri()}?mode={'ro' if has_log else 'rw'}")


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
