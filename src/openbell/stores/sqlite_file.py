"""A SQLite file that any number of processes and threads share, and that may be damaged, moved or removed while in use."""

from __future__ import annotations

import logging
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Hashable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from openbell.market.errors import StoreError
from openbell.stores.failure_causes import full_disk
from openbell.stores.sqlite_connections import FileVersion, connect, connect_durably, file_identity

log = logging.getLogger(__name__)

_READ_BUSY_SECONDS = 5.0
"""How long a statement waits for a lock on a disk that cannot be written."""


class SqliteFile:
    """One connection per thread, in WAL mode with full synchronisation: a commit survives kill −9 and power loss.

    A file that is not a database is set aside and recorded in the table `problems`. If the file was moved or removed,
    the next call opens the file that is now at its path, or creates one, so that all processes use the same file.
    """

    def __init__(self, path: Path, schema: str, version: int) -> None:
        self.path = path
        self._changes = FileVersion(path)
        self._schema = schema
        self._version = version
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._guard = threading.Lock()
        self._open()

    @property
    def db(self) -> sqlite3.Connection:
        """This thread's connection."""
        return self._current() or self._open()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A write transaction: committed durably when the block ends, rolled back if it raises."""
        try:
            db = self.db
            try:
                db.execute("BEGIN IMMEDIATE")
                yield db
                db.execute("COMMIT")
            except BaseException:
                self.clear_cache()
                with suppress(sqlite3.Error):
                    db.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def query(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        try:
            return self.db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def changes(self) -> Hashable:
        """Returns a value that differs after every commit to the file, by this or another process."""
        return self._changes.read()

    @staticmethod
    def add_problem(db: sqlite3.Connection, path: Path, reason: str) -> None:
        """Record a file that was set aside or is missing; every schema has the table `problems`."""
        db.execute("INSERT INTO problems VALUES (?, ?, ?)", (time.time(), str(path), reason))

    def clear_cache(self) -> None:
        """Drop cached content; called before a rollback and when another file is opened at the same path."""

    def rejection(self) -> str:
        """Why an undamaged file must not be used here; empty if it may be used."""
        return ""

    def close(self) -> None:
        """Close every thread's connection."""
        self._changes.close()
        with self._guard:
            for db in self._opened:
                db.close()
            self._opened.clear()
        self._local = threading.local()

    def _failed(self, error: sqlite3.Error) -> StoreError:
        damaged = type(error) is sqlite3.DatabaseError
        hint = "; stop every Openbell process and move this file away: the month files are kept" if damaged else ""
        return StoreError(f"{self.path}: {full_disk(error, self.path) or error}{hint}")

    # Opening

    def _current(self) -> sqlite3.Connection | None:
        """This thread's connection; None if it has none or if another file is now at the path."""
        db: sqlite3.Connection | None = getattr(self._local, "db", None)
        if db is None or db.in_transaction or self._local.file == (file_identity(self.path) or "missing"):
            return db
        log.warning("%s was moved or removed; opening the file that is there now", self.path)
        self.clear_cache()
        with self._guard:
            self._opened.remove(db)
        db.close()
        del self._local.db
        return None

    def _open(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot use {self.path.parent}: {error}") from error
        if self._prepare():
            self._repair()
        db: sqlite3.Connection = self._local.db
        return db

    def _connect(self) -> sqlite3.Connection:
        try:
            db = connect_durably(self.path)
        except sqlite3.OperationalError as error:
            if os.access(self.path.parent, os.W_OK):
                # Too many open files, or a lock timeout. Opening read-only would miss what others are writing.
                raise StoreError(f"cannot open {self.path}: {full_disk(error, self.path) or error}") from error
            db = self._connect_to_read(error)
        except sqlite3.Error as error:
            raise StoreError(f"cannot open {self.path}: {error}") from error
        self._local.db, self._local.file = db, file_identity(self.path)
        with self._guard:
            self._opened.append(db)
        return db

    def _connect_to_read(self, refused: sqlite3.Error) -> sqlite3.Connection:
        """A read-only connection, for a disk that cannot be written."""
        for mode in ("mode=ro", "immutable=1"):
            try:
                db = connect(f"{self.path.absolute().as_uri()}?{mode}", _READ_BUSY_SECONDS)
                if _version_of(db):
                    return db
                db.close()
            except sqlite3.OperationalError:
                continue
        raise StoreError(f"cannot open {self.path}: {refused}") from refused

    def _prepare(self) -> str:
        """Create or check the tables. Returns why the file must be set aside; empty if it can be used."""
        try:
            version = _version_of(self._connect())
            if version == 0:
                with self.transaction() as db:
                    if _version_of(db) == 0:
                        _execute(db, self._schema)
                        # A random number: readers notice that another file replaced an earlier one at this path.
                        db.execute(f"PRAGMA application_id = {2 * secrets.randbits(29)}")
                        db.execute(f"PRAGMA user_version = {self._version}")
                version = self._version
        except (StoreError, sqlite3.DatabaseError) as error:
            cause = error.__cause__ if isinstance(error, StoreError) else error
            if isinstance(cause, sqlite3.DatabaseError) and not isinstance(cause, sqlite3.OperationalError):
                return str(cause)
            raise
        if version != self._version:
            raise StoreError(f"{self.path} has version {version}, this Openbell reads version {self._version}")
        return self.rejection()

    def _repair(self) -> None:
        try:
            self._set_aside()
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"{self.path} cannot be used, nor set aside: {error}") from error

    def _set_aside(self) -> None:
        """Replace a damaged file by an empty one, one process at a time: a second would move the first one's new file."""
        with closing(connect(self.path.with_name("repair.sqlite"))) as guard:
            guard.execute("BEGIN EXCLUSIVE")
            self.close()
            damage = self._prepare()
            if not damage:
                return
            self.close()
            aside = self.path.with_name(f"{self.path.name}.corrupt-{time.time_ns()}")
            # The database last: while the damaged file is at the path, no process creates -wal and -shm for a new one.
            for suffix in ("-wal", "-shm", ""):
                with suppress(FileNotFoundError):
                    self.path.with_name(self.path.name + suffix).replace(aside.with_name(aside.name + suffix))
            log.error("set aside %s: %s", aside, damage)
            if again := self._prepare():
                raise StoreError(f"{self.path} cannot be used: {again}")
            with self.transaction() as db:
                self.add_problem(db, aside, damage)


def _execute(db: sqlite3.Connection, statements: str) -> None:
    """Run statements one by one: `executescript` would end the transaction."""
    for statement in statements.split(";\n"):
        db.execute(statement)


def _version_of(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])
