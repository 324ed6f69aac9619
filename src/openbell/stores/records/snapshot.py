"""What a transaction sees of the records: everything, or what had been written by a time.

Query functions take a `View` instead of a connection. Functions that only engines and writers call may ignore `until`:
their views have none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, CursorResult, Dialect, Executable


@dataclass(frozen=True, slots=True)
class View:
    """A connection inside a transaction, and the time up to which ledger entries are seen."""

    connection: Connection
    until: float | None = None
    """Epoch seconds; None if every entry is seen."""
    by_event: bool = False
    """True if entries have the time of their event, as in scenarios; False if they have the time of their writing."""

    @property
    def dialect(self) -> Dialect:
        """The database's dialect."""
        return self.connection.dialect

    def execute(
        self, statement: Executable, parameters: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None
    ) -> CursorResult[Any]:
        """Run a statement."""
        return self.connection.execute(statement, parameters)
