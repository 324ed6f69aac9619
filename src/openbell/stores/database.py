"""A SQLite file that any number of processes and threads share, and that may be damaged or taken away under them."""

from __future__ import annotations

import logging
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Hashable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from openbell.market.errors import StoreError
from openbell.stores.file_version import FileVersion

log = logging.getLogger(__name__)


class Database:
    """One connection per thread, in WAL mode with full synchronisation: what is committed survives kill −9 and power loss.

    A file that is no database is set aside and noted in the table `problems`. One that was moved or removed is followed by
    a new one under its name, so that processes which run on and those which start now meet in the same file.
    """

    def __init__(
        self,
        path: Path,
        schema: str,
        version: int,
        upgrades: Mapping[int, str] | None = None,
        busy_seconds: float = 30.0,
    ) -> None:
        """`upgrades` are the statements that lead from each older version to the next."""
        self.path = path
        self._changes = FileVersion(path)
        self._upgrades = upgrades or {}
        self._schema = schema
        self._version = version
        self._busy = busy_seconds
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
        """A write that happens wholly or not at all, durable when the block ends."""
        try:
            db = self.db
            try:
                db.execute("BEGIN IMMEDIATE")
                yield db
                db.execute("COMMIT")
            except BaseException:
                self.forget()
                with suppress(sqlite3.Error):
                    db.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def ask(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        try:
            return self.db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def changes(self) -> Hashable:
        """Returns a value that differs after every commit to the file, by this or another process."""
        return self._changes.read()

    def forget(self) -> None:
        """Called before a transaction is undone and when the file is another one: drop what was remembered of it."""

    def unfit(self) -> str:
        """Why a sound file must not be used here all the same."""
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
        hint = "; stop every Openbell and move this file away: the month files stay" if damaged else ""
        return StoreError(f"{self.path}: {error}{hint}")

    # Opening

    def _current(self) -> sqlite3.Connection | None:
        """This thread's connection, if it has one that leads to the file which stands there now."""
        db: sqlite3.Connection | None = getattr(self._local, "db", None)
        if db is None or db.in_transaction or self._local.file == (_identity(self.path) or "missing"):
            return db
        log.warning("%s was moved or removed; going on with what stands there now", self.path)
        self.forget()
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
            db = sqlite3.connect(self.path, timeout=self._busy, isolation_level=None, check_same_thread=False)
            try:
                db.execute(f"PRAGMA busy_timeout = {int(self._busy * 1000)}")
                _enter_wal(db, self._busy)
                db.execute("PRAGMA synchronous = FULL")
            except BaseException:
                db.close()
                raise
        except sqlite3.OperationalError as error:
            if os.access(self.path.parent, os.W_OK):
                # Too many open files, or locked for too long: reading past what others write now would be wrong.
                raise StoreError(f"cannot open {self.path}: {error}") from error
            db = self._connect_to_read(error)
        except sqlite3.Error as error:
            raise StoreError(f"cannot open {self.path}: {error}") from error
        self._local.db, self._local.file = db, _identity(self.path)
        with self._guard:
            self._opened.append(db)
        return db

    def _connect_to_read(self, refused: sqlite3.Error) -> sqlite3.Connection:
        """On a disk that cannot be written, what is there can still be read."""
        for how in ("mode=ro", "immutable=1"):
            try:
                db = sqlite3.connect(
                    f"{self.path.absolute().as_uri()}?{how}", uri=True, isolation_level=None, check_same_thread=False
                )
                if _version_of(db):
                    return db
                db.close()
            except sqlite3.OperationalError:
                continue
        raise StoreError(f"cannot open {self.path}: {refused}") from refused

    def _prepare(self) -> str:
        """Make or check the tables; what is wrong with the file if it is no database at all."""
        try:
            version = _version_of(self._connect())
            if version == 0:
                with self.transaction() as db:
                    if _version_of(db) == 0:
                        _execute(db, self._schema)
                        # Tells this file from one that stood here before.
                        db.execute(f"PRAGMA application_id = {2 * secrets.randbits(29)}")
                        db.execute(f"PRAGMA user_version = {self._version}")
                version = self._version
            elif version in self._upgrades:
                version = self._upgrade()
        except (StoreError, sqlite3.DatabaseError) as error:
            cause = error.__cause__ if isinstance(error, StoreError) else error
            if isinstance(cause, sqlite3.DatabaseError) and not isinstance(cause, sqlite3.OperationalError):
                return str(cause)
            raise
        if version != self._version:
            raise StoreError(f"{self.path} is of version {version}, this Openbell reads version {self._version}")
        return self.unfit()

    def _upgrade(self) -> int:
        """Bring an older file's tables up to date, in one transaction; the version that it then has."""
        with self.transaction() as db:
            version = _version_of(db)
            while version in self._upgrades:
                _execute(db, self._upgrades[version])
                version += 1
            db.execute(f"PRAGMA user_version = {version}")
        return version

    def _repair(self) -> None:
        try:
            self._set_aside()
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"{self.path} cannot be used, nor set aside: {error}") from error

    def _set_aside(self) -> None:
        """Put an empty file in the damaged one's place. One at a time: the second would move what the first has made."""
        with closing(sqlite3.connect(self.path.with_name("repair.sqlite"), self._busy, isolation_level=None)) as guard:
            guard.execute("BEGIN EXCLUSIVE")
            self.close()
            damage = self._prepare()
            if not damage:
                return
            self.close()
            aside = self.path.with_name(f"{self.path.name}.corrupt-{time.time_ns()}")
            # The database last: as long as it stands there damaged, nobody makes new companions for a new one.
            for rest in ("-wal", "-shm", ""):
                with suppress(FileNotFoundError):
                    self.path.with_name(self.path.name + rest).replace(aside.with_name(aside.name + rest))
            log.error("set aside %s: %s", aside, damage)
            if again := self._prepare():
                raise StoreError(f"{self.path} cannot be used: {again}")
            with self.transaction() as db:
                db.execute("INSERT INTO problems VALUES (?, ?, ?)", (time.time(), str(aside), damage))


def _execute(db: sqlite3.Connection, statements: str) -> None:
    """Run statements one by one: `executescript` would end the transaction."""
    for statement in statements.split(";\n"):
        db.execute(statement)


def _version_of(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file stands at a path."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _enter_wal(db: sqlite3.Connection, busy_seconds: float) -> None:
    """Switch to WAL; when several processes make the file at once the busy time-out does not apply to this step."""
    deadline = time.monotonic() + busy_seconds
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return
