"""Records that do not exist yet, for a desk that may not create them: empty tables in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection
from sqlalchemy.pool import StaticPool

from openbell.stores.records.sqlite import engine_for
from openbell.stores.records.tables import metadata

T = TypeVar("T")


class Nothing:
    """Stands in for a database that is not there."""

    def __init__(self) -> None:
        self._engine = engine_for(":memory:", poolclass=StaticPool)
        self._guard = threading.Lock()
        metadata.create_all(self._engine)

    def read(self, work: Callable[[Connection], T]) -> T:
        """What a read finds there; nothing can block it."""
        with self._guard, self._engine.connect() as connection:
            return work(connection)

    def close(self) -> None:
        """Free the memory."""
        self._engine.dispose()
