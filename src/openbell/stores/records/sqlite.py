"""Records in one SQLite file, which any number of processes share."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL

T = TypeVar("T")
_BUSY_SECONDS = 30.0
_THREADS = 4


class SqliteDatabase:
    """WAL mode with full synchronisation: what is committed survives kill −9 and power loss.

    Blocking work has its own threads, so that a slow disk does not hold up the rest of the desk.
    """

    source = "sqlite"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.where = str(path)
        self._engine: Engine | None = None
        self._threads = ThreadPoolExecutor(_THREADS, "records")
        # Writers of one process wait here, which is fair and quick; SQLite's own lock is polled.
        self._writer = threading.Lock()
        self._opening = threading.Lock()

    async def run(
        self, work: Callable[[Connection], T], *, writing: bool, then: Callable[[T], None] | None = None
    ) -> T:
        """Run it in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.run_here, work, writing, then)

    def run_here(self, work: Callable[[Connection], T], writing: bool, then: Callable[[T], None] | None = None) -> T:
        """Run it in this thread."""
        if not writing:
            return self._transaction(work, "BEGIN")
        with self._writer:
            result = self._transaction(work, "BEGIN IMMEDIATE")
        if then is not None:
            then(result)
        return result

    async def close(self) -> None:
        """Close every connection, once the threads are done."""
        await asyncio.to_thread(self._threads.shutdown)
        if self._engine is not None:
            self._engine.dispose()

    def _transaction(self, work: Callable[[Connection], T], begin: str) -> T:
        with self._made().connect() as connection:
            # The driver begins nothing by itself: this is where a transaction says whether it will write.
            connection.exec_driver_sql(begin)
            result = work(connection)
            connection.commit()
            return result

    def _made(self) -> Engine:
        with self._opening:
            if self._engine is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._engine = engine_for(str(self.path))
            return self._engine


def engine_for(path: str, **options: Any) -> Engine:
    """An engine on a file, or on `:memory:`."""
    engine = create_engine(
        URL.create("sqlite", database=path),
        connect_args={"timeout": _BUSY_SECONDS, "isolation_level": None, "check_same_thread": False},
        **options,
    )

    @event.listens_for(engine, "connect")
    def _connected(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")

    return engine
