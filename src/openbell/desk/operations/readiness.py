"""The checks of a desk's stores and of its feed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from openbell.desk.events.checks import Check, in_own_thread

if TYPE_CHECKING:
    from openbell.desk.bars.service import BarService
    from openbell.stores.port import BarStore
    from openbell.stores.records.records import Records

_MARK = "readiness"
"""The name of the mark that a check writes."""


def record_check(records: Callable[[], Records], writes: Callable[[], bool]) -> Check:
    """Returns the check of the records: they can be read and, if this desk writes, written to."""
    from openbell.stores.records import progress  # here, because it may take longer than a check
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
