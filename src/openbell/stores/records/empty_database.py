"""An empty database in memory, for reads from records that do not exist and that a desk must not create."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection
from sqlalchemy.pool import StaticPool

from openbell.stores.records.schema import Tables, create_tables
from openbell.stores.records.sqlite import engine_for

T = TypeVar("T")


class EmptyDatabase:
    """All tables, without rows."""

    def __init__(self, tables: Tables) -> None:
        self._engine = engine_for(":memory:", poolclass=StaticPool)
        self._guard = threading.Lock()
        with self._engine.begin() as connection:
            create_tables(connection, tables)

    def read(self, work: Callable[[Connection], T]) -> T:
        """Call a function with a connection and return its result. It never waits for a disk or a lock of others."""
        with self._guard, self._engine.connect() as connection:
            return work(connection)

    def close(self) -> None:
        """Free the memory."""
        self._engine.dispose()
