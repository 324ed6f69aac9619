"""Records in one SQLite file, which any number of processes share."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL

from openbell.market.errors import StoreError
from openbell.stores.file_version import FileVersion
from openbell.stores.sqlite_connections import connect_durably, file_identity

T = TypeVar("T")
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
        found = file_identity(self.path)
        return found is not None and connection.info["file"] == found

    def _made(self) -> Engine:
        with self._opening:
            if self._engine is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with suppress(FileExistsError):  # opening it would drop the locks that this process has on it
                    self.path.touch(0o600, exist_ok=False)
                # mode=rw: a file that was removed later is not created again.
                self._engine = engine_for(f"{self.path.absolute().as_uri()}?mode=rw", pool_size=2 * _THREADS)
                event.listen(self._engine, "connect", self._remember)
            return self._engine

    def _remember(self, _connection: sqlite3.Connection, record: Any) -> None:
        record.info["file"] = file_identity(self.path)


def engine_for(path: str, **options: Any) -> Engine:
    """An engine on a file, or on `:memory:`."""
    creator = partial(connect_durably, path, "foreign_keys = ON")
    return create_engine(URL.create("sqlite", database=path), creator=creator, hide_parameters=True, **options)
