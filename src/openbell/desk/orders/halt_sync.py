"""Brings the kill switch in the home and the one in the records together, if one of them could not be turned.

A halt that could not be recorded, because the database was down, is recorded when it is back: desks on other machines then
see it. A halt that was recorded, and then ended by `openbell resume` on another machine, ends here too. Entries of the
ledger decide, not times: clocks of two machines may differ.
"""

from __future__ import annotations

import logging

from openbell.desk.events.hub import Hub, OrderChanged
from openbell.desk.orders.halt_file import HaltFile
from openbell.desk.orders.halts import Halts
from openbell.market.errors import OpenbellError
from openbell.stores.records import switches
from openbell.stores.records.records import Records

log = logging.getLogger(__name__)

_SECONDS = 1.0


class HaltSync:
    """Runs in every process that serves a desk of the present, whoever holds the engine's lease."""

    def __init__(self, file: HaltFile, records: Records, halts: Halts, hub: Hub) -> None:
        self._file = file
        self._records = records
        self._halts = halts
        self._hub = hub
        self._recorded: tuple[int, int] = (0, 0)
        """When the file was changed, and the entry with which this process has recorded that halt.

        It is used while the file cannot be written. A repeated halt changes the file, and is recorded again.
        """

    async def run(self) -> None:
        """Compare the two switches whenever the records change, and every second. Ends only if cancelled."""
        with self._hub.listen(OrderChanged) as changed:
            while True:
                try:
                    await self.step()
                except (OpenbellError, OSError) as error:
                    log.debug("the kill switch waits: %s", error)
                await changed.wait(_SECONDS)

    async def step(self) -> None:
        """Compare the two switches once."""
        halt = self._file.read()
        if halt is None or not halt.known:
            return
        ledger, changed_at = self._records.database.where, self._file.changed_at()
        recorded = self._file.entry(ledger) or (self._recorded[1] if self._recorded[0] == changed_at else None)
        if recorded is None:
            self._recorded = changed_at, await self._halts.halt(halt.reason)
            if self._file.changed_at() == changed_at:  # otherwise there is another halt by now
                self._file.note_entry(ledger, self._recorded[1])
            log.warning("the halt of this home was recorded: %s", halt.reason)
            return
        last = await self._records.read(switches.last_entry)
        if last is not None and last.seq > recorded and last.reason is None:
            self._file.lift()
            log.warning("trading was resumed on another machine: the halt of this home has ended")
