"""What a transaction sees of the records: everything, or what had been written by a moment.

Query functions take a `View` instead of a connection. Those that answer a caller's question honour `until`; those that only
an engine or a writer calls never meet a view with one, because such a view is never given to a writer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, CursorResult, Dialect, Executable


@dataclass(frozen=True, slots=True)
class View:
    """A connection inside a transaction, and the moment up to which ledger entries count."""

    connection: Connection
    until: float | None = None
    """Epoch seconds; None: every entry counts."""
    by_event: bool = False
    """Whether entries have the time of the event that they tell of, as in a scenario, and not that of their writing."""

    @property
    def dialect(self) -> Dialect:
        """The database's dialect."""
        return self.connection.dialect

    def execute(
        self, statement: Executable, parameters: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None
    ) -> CursorResult[Any]:
        """Run a statement."""
        return self.connection.execute(statement, parameters)
