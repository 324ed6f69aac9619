"""How every SQLite file is opened: autocommit, a bounded wait for locks, WAL mode, each commit synchronised to disk."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

BUSY_SECONDS = 30.0
"""How long a statement waits for a lock that another connection holds."""
_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


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
