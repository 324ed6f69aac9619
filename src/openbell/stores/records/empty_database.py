"""An empty database in memory, for reads from records that do not exist and that a desk must not create."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection
from sqlalchemy.pool import StaticPool

from openbell.stores.records.schema import FOLDER, NEWEST
from openbell.stores.records.sqlite import engine_for
from openbell.stores.records.table_script import run_script, script_of

T = TypeVar("T")


class EmptyDatabase:
    """All tables of the records, or those of other migrations, without rows."""

    def __init__(self, folder: Path = FOLDER, version: str = NEWEST) -> None:
        self._engine = engine_for(":memory:", poolclass=StaticPool)
        self._guard = threading.Lock()
        with self._engine.begin() as connection:
            run_script(connection, script_of(folder, version, "sqlite"))

    def read(self, work: Callable[[Connection], T]) -> T:
        """Call a function with a connection and return its result. It never waits for a disk or a lock of others."""
        with self._guard, self._engine.connect() as connection:
            return work(connection)

    def close(self) -> None:
        """Free the memory."""
        self._engine.dispose()
