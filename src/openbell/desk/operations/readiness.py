"""Whether a desk is ready: the checks of its stores and of its feed, and connections to PostgreSQL before the first call."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from openbell.desk.events.checks import Check, in_own_thread

if TYPE_CHECKING:
    from openbell.desk.bars.service import BarService
    from openbell.stores.port import BarStore
    from openbell.stores.records.records import Records

_MARK = "readiness"
"""The name of the mark that a check writes."""
log = logging.getLogger(__name__)


def record_check(records: Callable[[], Records], writes: Callable[[], bool]) -> Check:
    """Returns the check of the records: they can be read and, if this desk writes, written to."""
    # Here, because it may take longer than a check, and commands without records need none of it.
    from openbell.stores.records import progress
    from openbell.stores.records.journal import in_view

    async def check() -> None:
        if writes():
            # On a full disk, a transaction that writes nothing succeeds.
            await records().write(in_view(progress.set_progress), _MARK, time.time())
        else:
            await records().read(lambda _view: None)

    return check


def bar_check(store: Callable[[], BarStore]) -> Check:
    """Returns the check of the store of bars: it can be read."""

    def read() -> None:
        store().where()
        store().leases.holder("collector")

    async def check() -> None:
        await in_own_thread(read)

    return check


def feed_check(bars: Callable[[], BarService]) -> Check:
    """Returns the check of the feed: its answers to the last questions. It asks nothing itself."""

    async def check() -> None:
        for failure in bars().history.unreachable.values():
            raise failure

    return check


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
