"""The kill switch: nothing is opened until the operator lifts it at the shell.

It stands twice: as a file in the home, which every desk on this home sees whatever its settings and even if its database is
down, and in the records, where the ledger tells of it and desks on other machines see it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from openbell.stores.port import Lease
from openbell.stores.records import marks
from openbell.stores.records import orders as queries
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import Records
from openbell.stores.records.view import View
from openbell.trading.brackets import end_exits
from openbell.trading.broker import Broker, BrokerError
from openbell.trading.orders import RESTING, Order, State

LONGEST_REASON = 200
_OPERATOR = "by the operator"


Halted = Callable[[View], str | None]
"""Why nothing may be opened, as a transaction sees it."""


class HaltFile:
    """The switch in the home."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def halted(self, view: View) -> str | None:
        """Why nothing may be opened, here or in the records."""
        return self.read() or marks.halted(view)

    def read(self) -> str | None:
        """Why it stands; a file that cannot be read stands too."""
        try:
            return self.path.read_text(encoding="utf-8").strip()[:LONGEST_REASON] or _OPERATOR
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError):
            return _OPERATOR

    def set(self, reason: str) -> None:
        """Make it stand."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(f"{reason}\n", encoding="utf-8")

    def lift(self) -> bool:
        """Take it away; whether it stood."""
        stood = self.path.exists()
        self.path.unlink(missing_ok=True)
        return stood


class Halts:
    """Stops and lifts. While it stands, orders that could open something are cancelled; those that reduce stay."""

    def __init__(self, records: Records, halted: Halted = marks.halted) -> None:
        self._records = records
        self._halted = halted

    async def reason(self) -> str | None:
        """Why trading is halted; None if it is not."""
        return await self._records.read(self._halted)

    async def halt(self, reason: str) -> None:
        """Stop all opening."""

        def work(journal: Journal) -> None:
            journal.put(
                "switch", {"name": marks.HALT, "reason": reason[:LONGEST_REASON] or _OPERATOR, "at": journal.at}
            )

        await self._records.write(work)

    async def resume(self) -> bool:
        """Lift it; whether it stood."""

        def work(journal: Journal) -> bool:
            stood = marks.halted(journal.view) is not None
            if stood:
                journal.put("switch", {"name": marks.HALT, "reason": None, "at": journal.at})
            return stood

        return await self._records.write(work)

    async def enforce(self, broker: Broker, lease: Lease | None = None) -> int:
        """While it stands, cancel what rests and could open something, on every account of a broker; how many that were."""

        def accounts(view: View) -> list[str]:
            if self._halted(view) is None:
                return []
            return [each.name for each in queries.all_accounts(view) if each.broker == broker.name]

        return await self._end_opening(broker, accounts, "trading was halted", lease)

    async def resting_elsewhere(self, broker: Broker) -> dict[str, int]:
        """By broker, how many orders that could open something rest on accounts of other brokers than this one."""

        def work(view: View) -> dict[str, int]:
            others = [each for each in queries.all_accounts(view) if each.broker != broker.name]
            return dict(Counter(each.broker for each in others for _ in _opening(view, [each.name])))

        return await self._records.read(work)

    async def stop(self, broker: Broker, account: str, reason: str, lease: Lease | None = None) -> int:
        """Cancel what rests and could open something on one account; how many that were."""
        return await self._end_opening(broker, lambda _view: [account], reason, lease)

    async def _end_opening(
        self, broker: Broker, accounts: Callable[[View], list[str]], reason: str, lease: Lease | None
    ) -> int:
        if not await self._records.read(lambda view: _opening(view, accounts(view))):
            return 0

        def work(journal: Journal) -> list[Order]:
            asked = []
            for order in _opening(journal.view, accounts(journal.view)):
                state = State.CANCELLED if broker.fills_locally else State.CANCELLING
                changed = order.to(state, journal.at, reason)
                journal.put("order", changed)
                asked.append(changed)
                for each in end_exits(changed, queries.bracket(journal.view, order.id), journal.at):
                    if changed.final:
                        journal.put("order", each)
            return asked

        cancelled = await self._records.write(work, lease)
        if not broker.fills_locally:
            for order in cancelled:
                try:
                    await broker.cancel(order)
                except BrokerError:
                    continue  # it is written down as cancelling: the engine asks on
        return len(cancelled)


def _opening(view: View, accounts: list[str]) -> list[Order]:
    """The resting orders of some accounts that could open something."""
    return [
        order
        for name in accounts
        for order in queries.working(view, name)
        if order.state in RESTING - {State.CANCELLING} and order.remaining_opening
    ]
