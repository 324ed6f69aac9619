"""Copies of SQLite databases that other processes may be writing."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from openbell.market.errors import StoreError
from openbell.stores.failure_causes import full_disk
from openbell.stores.sqlite_connections import connect, is_locked


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
