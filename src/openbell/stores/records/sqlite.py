"""Records in one SQLite file, which any number of processes share."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL

from openbell.market.errors import StoreError
from openbell.stores.file_version import FileVersion

T = TypeVar("T")
_BUSY_SECONDS = 30.0
_THREADS = 4

log = logging.getLogger(__name__)


class SqliteDatabase:
    """WAL mode with full synchronisation: what is committed survives kill −9 and power loss.

    Blocking work has its own threads, so that a slow disk does not hold up the rest of the desk, nor writers the readers.
    The file holds orders: a damaged one is never set aside, and one that was taken away is never begun anew.
    """

    source = "sqlite"

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        """With `read_only` nothing is opened that could create a file."""
        self.path = path
        self._version = FileVersion(path, touch=not read_only)
        self.where = str(path)
        self._engine: Engine | None = None
        self._closed = False
        self._readers = ThreadPoolExecutor(_THREADS, "records-read")
        self._writers = ThreadPoolExecutor(_THREADS, "records-write")
        # Writers of one process wait here, which is fair and quick; SQLite's own lock is polled.
        self._writer = threading.Lock()
        self._opening = threading.Lock()

    async def run(
        self, work: Callable[[Connection], T], *, writing: bool, then: Callable[[T], None] | None = None
    ) -> T:
        """Run it in a thread."""
        if self._closed:
            raise StoreError(f"{self.path} was closed")
        threads = self._writers if writing else self._readers
        return await asyncio.get_running_loop().run_in_executor(threads, self.run_here, work, writing, then)

    def run_here(self, work: Callable[[Connection], T], writing: bool, then: Callable[[T], None] | None = None) -> T:
        """Run it in this thread."""
        if not writing:
            return self._transaction(work, writing=False)
        with self._writer:
            result = self._transaction(work, writing=True)
        if then is not None:
            then(result)
        return result

    def version(self) -> Hashable:
        """See the port."""
        return self._version.read()

    def announce(self, connection: Connection) -> None:
        """See the port: every commit changes the version by itself."""

    async def exists(self) -> bool:
        """Whether there is anything to read; makes nothing."""
        try:
            return self.path.stat().st_size > 0
        except FileNotFoundError:
            return False
        except OSError:
            return True  # reading says why it cannot be read

    async def close(self) -> None:
        """Close every connection, once the threads are done."""
        self._closed = True
        for threads in (self._readers, self._writers):
            await asyncio.to_thread(threads.shutdown)
        if self._engine is not None:
            self._engine.dispose()
        self._version.close()

    def _transaction(self, work: Callable[[Connection], T], *, writing: bool) -> T:
        with self._connect() as connection:
            connection.exec_driver_sql(f"PRAGMA query_only = {'OFF' if writing else 'ON'}")
            # The driver begins nothing by itself: this is where a transaction says whether it will write.
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")
            result = work(connection)
            connection.commit()
            if writing and not self._leads_here(connection):
                raise StoreError(
                    f"{self.path} was moved or removed while it was written to: what was written may be lost"
                )
            return result

    def _connect(self) -> Connection:
        """A connection to the file that stands there now."""
        engine = self._made()
        if not self.path.exists():
            engine.dispose()
            raise StoreError(
                f"{self.path} was removed while it was in use: nothing is read or written until it is back"
            )
        connection = engine.connect()
        if self._leads_here(connection):
            return connection
        connection.invalidate()
        connection.close()
        engine.dispose()
        log.warning("%s was replaced while it was in use; going on with what stands there now", self.path)
        return engine.connect()

    def _leads_here(self, connection: Connection) -> bool:
        found = _identity(self.path)
        return found is not None and connection.info["file"] == found

    def _made(self) -> Engine:
        with self._opening:
            if self._engine is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with suppress(FileExistsError):  # opening it would drop the locks that this process has on it
                    self.path.touch(0o600, exist_ok=False)
                self._engine = engine_for(str(self.path), creator=self._open, pool_size=2 * _THREADS)
                event.listen(self._engine, "connect", self._remember)
            return self._engine

    def _open(self) -> sqlite3.Connection:
        """A connection to a file that is there: it is made once, and never again."""
        opened: sqlite3.Connection = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=rw", uri=True, **_OPTIONS)
        return opened

    def _remember(self, _connection: sqlite3.Connection, record: Any) -> None:
        record.info["file"] = _identity(self.path)


_OPTIONS: dict[str, Any] = {"timeout": _BUSY_SECONDS, "isolation_level": None, "check_same_thread": False}


def engine_for(path: str, **options: Any) -> Engine:
    """An engine on a file, or on `:memory:`."""
    engine = create_engine(URL.create("sqlite", database=path), connect_args=_OPTIONS, hide_parameters=True, **options)

    @event.listens_for(engine, "connect")
    def _connected(connection: sqlite3.Connection, _record: object) -> None:
        try:
            _enter_wal(connection)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            connection.close()
            raise

    return engine


def _enter_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL; when several processes make the file at once the busy time-out does not apply to this step."""
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file stands at a path."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
