"""The kill switch: nothing is opened until the operator lifts it at the shell."""

from __future__ import annotations

from sqlalchemy import Connection

from openbell.stores.port import Lease
from openbell.stores.records import marks
from openbell.stores.records import orders as queries
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import Records
from openbell.trading.broker import Broker, BrokerError
from openbell.trading.orders import RESTING, Order, State
from openbell.trading.paper import end_exits

LONGEST_REASON = 200


class Halts:
    """Stops and lifts. While it stands, orders that could open something are cancelled; those that reduce stay."""

    def __init__(self, records: Records, broker: Broker) -> None:
        self._records = records
        self._broker = broker

    async def reason(self) -> str | None:
        """Why trading is halted; None if it is not."""
        return await self._records.read(marks.halted)

    async def halt(self, reason: str) -> int:
        """Stop all opening; how many resting orders that ended."""

        def work(journal: Journal) -> None:
            row = {"name": marks.HALT, "reason": reason[:LONGEST_REASON] or "by the operator", "at": journal.at}
            journal.put("switch", row)

        await self._records.write(work)
        return await self.enforce(None)

    async def resume(self) -> bool:
        """Lift it; whether it stood."""

        def work(journal: Journal) -> bool:
            stood = marks.halted(journal.connection) is not None
            if stood:
                journal.put("switch", {"name": marks.HALT, "reason": None, "at": journal.at})
            return stood

        return await self._records.write(work)

    async def enforce(self, lease: Lease | None) -> int:
        """Cancel what rests and could open something, on every account of this broker; how many that were."""
        found = await self._records.read(lambda connection: _opening(connection, self._broker.name))
        if not found:
            return 0

        def work(journal: Journal) -> list[Order]:
            asked = []
            for order in _opening(journal.connection, self._broker.name):
                state = State.CANCELLED if self._broker.inside else State.CANCELLING
                changed = order.to(state, journal.at, "trading was halted")
                journal.put("order", changed)
                asked.append(changed)
                for each in end_exits(changed, queries.bracket(journal.connection, order.id), journal.at):
                    if changed.final:
                        journal.put("order", each)
            return asked

        cancelled = await self._records.write(work, lease)
        if not self._broker.inside:
            for order in cancelled:
                try:
                    await self._broker.cancel(order)
                except BrokerError:
                    continue  # it is written down as cancelling: the engine asks on
        return len(cancelled)


def _opening(connection: Connection, broker: str) -> list[Order]:
    """The resting orders that could open something, while that is halted."""
    if marks.halted(connection) is None:
        return []
    accounts = [each.name for each in queries.all_accounts(connection) if each.broker == broker]
    return [
        order
        for name in accounts
        for order in queries.working(connection, name)
        if order.state in RESTING - {State.CANCELLING} and order.remaining_opening
    ]
