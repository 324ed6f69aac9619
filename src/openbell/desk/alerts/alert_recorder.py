"""Records the alerts that fire, with their notifications, and how far all alerts were checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from openbell.desk.alerts.inbox import Inbox
from openbell.desk.events.supervision import FailingUnits
from openbell.desk.orders.engine import raise_if_general
from openbell.market.clock import iso
from openbell.stores.port import Lease
from openbell.stores.records import alerts as queries
from openbell.stores.records import progress
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import Records
from openbell.trading.alerts import Alert, AlertState, Firing, notification

ALERT = "alert"
"""The kind of unit that may fail alone."""
PROGRESS, PROGRESS_SEQ = "alerts", "alerts through entry"
Found = tuple[Firing, str]
"""A firing, and the hash of its bar."""


@dataclass(slots=True)
class Fired:
    """What was recorded of some firings."""

    count: int = 0
    ended: list[Alert] = field(default_factory=list)
    """The alerts that have fired now, or had ended before."""
    failed: set[str] = field(default_factory=set)
    """The ids of alerts whose firing could not be recorded."""


class FiringRecorder:
    """Writes what the alert engine has found."""

    def __init__(self, records: Records, inbox: Inbox, failing: FailingUnits) -> None:
        self._records = records
        self._inbox = inbox
        self._failing = failing

    async def fire(self, found: Iterable[Found], lease: Lease | None) -> Fired:
        """Record firings in one transaction, or one by one if that fails."""
        firings = sorted(found, key=lambda pair: (pair[0].at, pair[0].alert.id))
        fired = Fired()
        if not firings:
            return fired
        try:
            fired.count += await self._fire(firings, lease)
        except Exception as error:  # noqa: BLE001 - raised again below if it is not of one alert alone
            await raise_if_general(self._records, error, lease)
        else:
            for firing, _ in firings:
                self._failing.works(ALERT, firing.alert.id)
            fired.ended = [replace(firing.alert, state=AlertState.FIRED) for firing, _ in firings]
            return fired
        for firing, evidence in firings:
            try:
                fired.count += await self._fire([(firing, evidence)], lease)
            except Exception as error:  # noqa: BLE001 - the other alerts fire
                await raise_if_general(self._records, error, lease)
                self._failing.failed(ALERT, firing.alert.id, error)
                fired.failed.add(firing.alert.id)
            else:
                self._failing.works(ALERT, firing.alert.id)
                fired.ended.append(replace(firing.alert, state=AlertState.FIRED))
        return fired

    async def note(self, until: int, seq: int, lease: Lease | None) -> None:
        """Record the time up to which all alerts were checked that the ledger has up to an entry.

        The next engine begins there.
        """

        def work(journal: Journal) -> None:
            progress.set_progress(journal.view, PROGRESS, until)
            progress.set_progress(journal.view, PROGRESS_SEQ, seq)

        await self._records.write(work, lease=lease)

    async def _fire(self, firings: list[Found], lease: Lease | None) -> int:
        """Record firings, their notifications and pushes in one transaction. Returns how many alerts were still active."""

        def work(journal: Journal) -> int:
            active = queries.still_active(journal.view, [firing.alert.id for firing, _ in firings])
            for firing, evidence in firings:
                if firing.alert.id not in active:
                    continue
                alert = replace(
                    firing.alert,
                    state=AlertState.FIRED,
                    fired_at=firing.at,
                    value=firing.value,
                    bar_hash=evidence,
                    updated_at=firing.at,
                )
                cursor = journal.put("alert", alert, happened=firing.at)
                self._inbox.deliver(journal, alert, cursor, notification(firing, iso(firing.at)), firing.at)
            return len(active)

        return await self._records.write(work, lease=lease)
