"""The problems of the engine that `openbell doctor` shows: they are in the records, and written only when they change."""

from __future__ import annotations

import logging
from collections.abc import Callable

from openbell.market.clock import Clock
from openbell.market.errors import OpenbellError
from openbell.stores.port import Lease
from openbell.stores.records import progress
from openbell.stores.records.journal import in_view
from openbell.stores.records.records import Records

log = logging.getLogger(__name__)


class RecordedTroubles:
    """The accounts that cannot be advanced, and the symbols whose bars cannot be read, each with the reason."""

    def __init__(self, records: Records, clock: Clock) -> None:
        self._records = records
        self._clock = clock
        self._known: dict[str, str] | None = None
        """None if they were not read yet."""
        self._known_of = 0

    def __bool__(self) -> bool:
        return bool(self._known)

    async def clear(self, over: Callable[[str], bool], lease: Lease | None) -> None:
        """Remove the recorded problems that are over."""
        for name in [name for name in self._known or () if over(name)]:
            await self.set(name, None, lease)

    async def set(self, name: str, reason: str | None, lease: Lease | None) -> None:
        """Record a problem if it has changed; None: it is over."""
        if self._known is None or self._known_of != self._records.replaced:
            found = await self._records.read(progress.all_troubles)
            self._known, self._known_of = {n: why for n, (_, why) in found.items()}, self._records.replaced
        if self._known.get(name) == reason:
            return
        since = self._clock.epoch()
        try:
            await self._records.write(in_view(progress.set_trouble), name, since, reason, lease=lease)
        except OpenbellError as error:
            log.debug("%s", error)
            return
        if reason is None:
            self._known.pop(name, None)
        else:
            self._known[name] = reason
