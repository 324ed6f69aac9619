"""Opens the connections to PostgreSQL when a server has started, so that the first call does not wait for them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from openbell.stores.records.records import Records

log = logging.getLogger(__name__)


class RecordConnections:
    """The connections of a desk to its records, which are opened in the background."""

    def __init__(self, database_url: str, records: Callable[[], Awaitable[Records]]) -> None:
        """`database_url` is empty if the records are in SQLite."""
        self._database_url = database_url
        self._records = records
        self._opening: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Open the least number of connections. Does nothing if the records are in SQLite."""
        if self._database_url and self._opening is None:
            self._opening = asyncio.create_task(self._open(), name="connections")
            self._opening.add_done_callback(_log_failure)

    async def close(self) -> None:
        """Stop to open them."""
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])

    async def _open(self) -> None:
        (await self._records()).database.open_connections()


def _log_failure(opening: asyncio.Task[None]) -> None:
    if not opening.cancelled() and (error := opening.exception()):
        log.warning("no connection to the records was opened yet, the first call opens one: %s", error)
