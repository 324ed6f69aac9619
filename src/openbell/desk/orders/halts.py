"""The kill switch: no position is opened until the operator resumes trading at the shell.

It is stored twice: as a file in the home, which every desk on this home reads whatever its settings and even if its database
is down, and in the records, so that it is in the ledger and desks on other machines see it. `HaltSync` brings them together.
A halt that could not be recorded, because the database was down, is recorded when it is back. A halt that was recorded, and
then ended by `openbell resume` on another machine, ends here too. Entries of the ledger decide, not times: clocks of two
machines may differ.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable

from openbell.desk.events.hub import Hub, OrderChanged
from openbell.desk.orders.halt_file import LONGEST_REASON, OPERATOR, HaltFile
from openbell.desk.orders.venue import Venue
from openbell.market.errors import OpenbellError
from openbell.stores.port import Lease
from openbell.stores.records import orders as queries
from openbell.stores.records import switches
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import Records
from openbell.stores.records.snapshot import View
from openbell.trading.broker import BrokerError
from openbell.trading.halt import Halt
from openbell.trading.orders import RESTING, Order, OrderState

log = logging.getLogger(__name__)

_HALTED = "trading was halted"
"""The reason of orders that a halt has cancelled."""


Halted = Callable[[View], Halt | None]
"""Why nothing may be opened, as a transaction sees it."""
_SYNC_SECONDS = 1.0


class Halts:
    """Halts and resumes trading. While it is halted, resting orders that could open a position are cancelled."""

    def __init__(self, records: Records, halted: Halted = switches.halted) -> None:
        self._records = records
        self._halted = halted

    async def current(self) -> Halt | None:
        """Returns why trading is halted; None if it is not."""
        return await self._records.read(self._halted)

    async def halt(self, reason: str) -> int:
        """Record that trading is halted; returns the number of the ledger entry. The reason of a first halt is kept."""

        def work(journal: Journal) -> int:
            last = switches.last_entry(journal.view)
            if last is not None and last.reason is not None:
                return last.seq
            return journal.put(
                "switch", {"name": switches.HALT, "reason": reason[:LONGEST_REASON] or OPERATOR, "at": journal.at}
            )

        return await self._records.write(work)

    async def since(self, known: float) -> float:
        """Returns the earlier of a time and of that of the recorded halt, if trading is halted in the records."""
        recorded = await self._records.read(switches.halted_since)
        return known if recorded is None else min(known, recorded)

    async def resume(self) -> bool:
        """Record that trading may go on; returns True if it was halted."""

        def work(journal: Journal) -> bool:
            was_halted = switches.halted(journal.view) is not None
            if was_halted:
                journal.put("switch", {"name": switches.HALT, "reason": None, "at": journal.at})
            return was_halted

        return await self._records.write(work)

    async def enforce(self, venue: Venue, lease: Lease | None = None) -> int:
        """While trading is halted, cancel the resting orders of a venue that could open a position; returns their number."""

        def accounts(view: View) -> list[str]:
            halt = self._halted(view)
            if halt is None or not halt.known:
                return []
            return [each.name for each in queries.all_accounts(view) if each.broker == venue.name]

        return await self._cancel_opening(venue, accounts, _HALTED, lease)

    async def cancelled_since(self, venue: Venue, moment: float) -> int:
        """Returns the number of a venue's orders that halts have cancelled since a moment, in this or another process."""
        return await self._records.read(queries.count_cancelled, venue.name, _HALTED, moment)

    async def cancel_again(self, venue: Venue) -> int:
        """Send unconfirmed cancellations of orders that could open a position again; returns their number."""

        def work(view: View) -> list[Order]:
            names = [each.name for each in queries.all_accounts(view) if each.broker == venue.name]
            return [order for order in _all_opening(view, names) if order.state is OrderState.CANCELLING]

        orders = await self._records.read(work)
        await _send_cancellations(venue, orders)
        return len(orders)

    async def resting_elsewhere(self, venues: Iterable[Venue]) -> dict[str, int]:
        """Returns, by broker, the number of resting orders at other brokers that could open a position."""
        names = {venue.name for venue in venues}

        def work(view: View) -> dict[str, int]:
            others = [each for each in queries.all_accounts(view) if each.broker not in names]
            return dict(Counter(each.broker for each in others for _ in _opening(view, [each.name])))

        return await self._records.read(work)

    async def stop(self, venue: Venue, account: str, reason: str, lease: Lease | None = None) -> int:
        """Cancel the resting orders of one account that could open a position; returns their number."""
        return await self._cancel_opening(venue, lambda _view: [account], reason, lease)

    async def _cancel_opening(
        self, venue: Venue, accounts: Callable[[View], list[str]], reason: str, lease: Lease | None
    ) -> int:
        if not await self._records.read(lambda view: _opening(view, accounts(view))):
            return 0

        def work(journal: Journal) -> list[Order]:
            opening = _opening(journal.view, accounts(journal.view))
            return [venue.cancel(journal, order, reason) for order in opening]

        cancelled = await self._records.write(work, lease=lease)
        await _send_cancellations(venue, cancelled)
        return len(cancelled)


async def _send_cancellations(venue: Venue, orders: Iterable[Order]) -> None:
    for order in orders:
        try:
            await venue.send_cancellation(order)
        except BrokerError as error:  # recorded as cancelling: the engine sends it again
            log.debug("cancelling %s: %s", order.id, error)
        except Exception:  # the others are cancelled
            log.exception("cancelling %s", order.id)


def _opening(view: View, accounts: list[str]) -> list[Order]:
    """Returns the resting orders of some accounts that could open a position and are not being cancelled."""
    return [order for order in _all_opening(view, accounts) if order.state is not OrderState.CANCELLING]


def _all_opening(view: View, accounts: list[str]) -> list[Order]:
    """Returns the resting orders of some accounts that could open a position."""
    return [
        order
        for name in accounts
        for order in queries.working(view, name)
        if order.state in RESTING and order.remaining_opening
    ]


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
                await changed.wait(_SYNC_SECONDS)

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
