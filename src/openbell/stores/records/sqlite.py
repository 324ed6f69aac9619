"""Records in one SQLite file that any number of processes share."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, inspect
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import StaticPool
from sqlalchemy.util import LRUCache

from openbell.market.errors import StoreError
from openbell.stores.records import failures, schema
from openbell.stores.sqlite_connections import FileVersion, connect, connect_durably, file_identity
from openbell.stores.threads import Threads

T = TypeVar("T")
_THREADS = 4
_WRITING = 2
"""Threads that write for one principal at once: one is in its transaction while the other notes the head of its own."""
_FOREIGN_KEYS = "foreign_keys = ON"

log = logging.getLogger(__name__)


class SqliteDatabase:
    """WAL mode with full synchronisation: a commit survives kill −9 and power loss.

    Readers and writers have threads of their own, so that neither a slow disk blocks the event loop nor writers block
    readers; both serve principals in turn. The file holds orders: a damaged file is never set aside, and a removed one is
    never created again.
    """

    source = "sqlite"

    def __init__(self, path: Path, *, read_only: bool = False, table: str = "ledger") -> None:
        """With `read_only` nothing is opened that could create a file or move the log of a killed writer into it.

        `table` is one that exists once the file was migrated.
        """
        self.path = path
        self._table = table
        self._read_only = read_only
        self._version = FileVersion(path, touch=not read_only)
        self.where = str(path)
        self._engine: Engine | None = None
        self._closed = False
        self._has_tables = False
        self._readers = Threads("records-read", _THREADS, _THREADS - 1)
        self._writers = Threads("records-write", _THREADS, _WRITING)
        # Writers of one process wait for this lock, which is fair and fast; SQLite's own lock is polled.
        self._writer = threading.Lock()
        self._opening = threading.Lock()

    async def run(
        self, work: Callable[[Connection], T], *, writing: bool, then: Callable[[T], None] | None = None
    ) -> T:
        """See `Database`. Runs in a thread."""
        if self._closed:
            raise StoreError(f"{self.path} was closed")
        threads = self._writers if writing else self._readers
        return await threads.run(self.run_here, work, writing, then)

    def run_here(self, work: Callable[[Connection], T], writing: bool, then: Callable[[T], None] | None = None) -> T:
        """The same in the calling thread."""
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

    def open_connections(self) -> None:
        """See the port: a connection to a file is not worth keeping open."""

    async def exists(self) -> bool:
        """See `Database`. A file that another process has created and not yet migrated has no tables."""
        try:
            if not self.path.stat().st_size:
                return False
            self._has_tables = self._has_tables or await self.run(self._is_migrated, writing=False)
        except FileNotFoundError:
            return False
        except (OSError, SQLAlchemyError, StoreError):
            return True  # the next read raises the error
        return self._has_tables

    async def close(self) -> None:
        """Wait for the threads, then close all connections."""
        self._closed = True
        for threads in (self._readers, self._writers):
            await threads.close()
        if self._engine is not None:
            self._engine.dispose()
        self._version.close()

    def _is_migrated(self, connection: Connection) -> bool:
        return inspect(connection).has_table(self._table)

    def _transaction(self, work: Callable[[Connection], T], *, writing: bool) -> T:
        with self._connect() as connection:
            connection.exec_driver_sql(f"PRAGMA query_only = {'OFF' if writing else 'ON'}")
            # In autocommit mode the driver begins no transaction by itself.
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")
            result = work(connection)
            connection.commit()
            if writing and not self._is_current(connection):
                raise StoreError(
                    f"{self.path} was moved or removed while it was written to: the last write may be lost"
                )
            failures.recovered(self.where)
            return result

    def _connect(self) -> Connection:
        """A connection to the file that is at the path now. Raises `StoreError` if it was removed."""
        engine = self._ensure_engine()
        if not self.path.exists():
            engine.dispose()
            raise StoreError(
                f"{self.path} was removed while it was in use: restore it; until then nothing is read or written"
            )
        connection = engine.connect()
        if self._is_current(connection):
            return connection
        connection.invalidate()
        connection.close()
        engine.dispose()
        log.warning("%s was replaced while it was in use; opening the file that is there now", self.path)
        return engine.connect()

    def _is_current(self, connection: Connection) -> bool:
        """Returns True if the file of a connection is still the one at the path."""
        found = file_identity(self.path)
        return found is not None and connection.info["file"] == found

    def _ensure_engine(self) -> Engine:
        with self._opening:
            if self._engine is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with suppress(FileExistsError):  # opening an existing file would drop this process's locks on it
                    self.path.touch(0o600, exist_ok=False)
                options = {schema.HOME: self.path.parent}
                self._engine = _engine(self._open, str(self.path), pool_size=2 * _THREADS, execution_options=options)
                event.listen(self._engine, "connect", self._remember_file)
            return self._engine

    def _open(self) -> sqlite3.Connection:
        """Open the file; it is not created again if it was removed.

        The last connection that may write moves the log into the file when it is closed, and removes the log. A read-only
        one leaves both as they are, but would leave an empty log behind where there was none.
        """
        uri = self.path.absolute().as_uri()
        if self._read_only and self.path.with_name(f"{self.path.name}-wal").exists():
            return connect(f"{uri}?mode=ro")
        return connect_durably(f"{uri}?mode=rw", _FOREIGN_KEYS)

    def _remember_file(self, _connection: sqlite3.Connection, record: Any) -> None:
        record.info["file"] = file_identity(self.path)


def engine_for(path: str, **options: Any) -> Engine:
    """An engine on a file, or on `:memory:`."""
    return _engine(partial(connect_durably, path, _FOREIGN_KEYS), path, **options)


class SharedDialect(SQLiteDialect_pysqlite):
    """All engines of a process have equal dialects, so that a statement is compiled once for all of them."""

    supports_statement_cache = True

    def __eq__(self, other: object) -> bool:
        return type(other) is SharedDialect

    def __hash__(self) -> int:
        return hash(SharedDialect)


registry.register("sqlite.openbell", __name__, SharedDialect.__name__)
_COMPILED: LRUCache[Any, Any] = LRUCache(500)
"""Statements of all engines. A small desk that trades takes 45 ms with them and 63 ms without."""


def _engine(creator: Callable[[], sqlite3.Connection], path: str, **options: Any) -> Engine:
    url = URL.create("sqlite+openbell", database=path)
    engine = create_engine(url, creator=creator, hide_parameters=True, **options)
    engine.update_execution_options(compiled_cache=_COMPILED)
    return engine


class EmptyDatabase:
    """All tables, without rows, in memory: for reads from records that do not exist and that a desk must not create."""

    def __init__(self, tables: schema.Tables) -> None:
        self._engine = engine_for(":memory:", poolclass=StaticPool)
        self._guard = threading.Lock()
        with self._engine.begin() as connection:
            schema.create_tables(connection, tables)

    def read(self, work: Callable[[Connection], T]) -> T:
        """Call a function with a connection and return its result. It never waits for a disk or a lock of others."""
        with self._guard, self._engine.connect() as connection:
            return work(connection)

    def close(self) -> None:
        """Free the memory."""
        self._engine.dispose()
