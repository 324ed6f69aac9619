"""What a broker outside this machine says of our orders, asked for until every one of them is known."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from math import inf

from openbell.desk.trading import reports
from openbell.desk.trading.endings import end
from openbell.stores.port import Lease
from openbell.stores.records import orders as queries
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import Records
from openbell.trading.broker import Broker, BrokerError, Report
from openbell.trading.orders import ImpossibleMove, Order, State

log = logging.getLogger(__name__)

SENDING_SECONDS = 60.0
"""How long whoever sends an order may take; after that it has died, and the broker is asked."""
LOST_SECONDS = 300.0
"""For how long an order that the broker does not know is asked for before it is called lost."""
_LOST_PAUSE = 60.0
"""Seconds between two questions about a lost order."""
_IN_DOUBT = frozenset({State.PENDING, State.UNKNOWN, State.CANCELLING})
_CANCEL_PAUSE = 5.0
"""Seconds after which a cancellation that has not ended its order is sent again: twice does no harm."""


class Reconciling:
    """One step of the engine, for orders of one account."""

    def __init__(
        self,
        records: Records,
        account: str,
        broker: Broker,
        now: Callable[[], float] = time.monotonic,
        *,
        every: float = 0.0,
        most: int = 1_000_000,
    ) -> None:
        """An order that just works is asked for once in `every` seconds, and at most `most` orders a step.

        A broker lets nobody ask without end.
        """
        self._records = records
        self.account = account
        self._broker = broker
        self._now = now
        self._every = every
        self._most = most
        self._asked: dict[str, float] = {}
        self._first_seen: dict[str, float] = {}
        """When this engine first saw an order in doubt."""
        self._cancel_sent: dict[str, float] = {}

    async def step(self, lease: Lease | None) -> int:
        """Ask for everything that is not final; how many orders changed."""
        orders = await self._records.read(lambda view: queries.working(view, self.account))
        in_doubt = {order.id for order in orders if order.state in {State.PENDING, State.UNKNOWN}}
        self._first_seen = {key: self._first_seen.get(key, self._now()) for key in in_doubt}
        await self._cancel_again([order for order in orders if order.state is State.CANCELLING])
        changed = 0
        for order in self._due(orders):
            changed += await self._ask(order, lease)
        return changed

    def _due(self, orders: list[Order]) -> list[Order]:
        """Whom to ask for now: those first that were not asked for the longest, of equals those in doubt.

        Those in doubt are always due, and may stay so for long: were they always first, the others would never be.
        """
        now, working = self._now(), {order.id for order in orders}
        self._asked = {key: at for key, at in self._asked.items() if key in working}
        due = [
            order
            for order in orders
            # Exits are told with their entry as long as that works.
            if order.parent not in working and now - self._asked.get(order.id, -inf) >= self._pause(order)
        ]
        due.sort(key=lambda order: (self._asked.get(order.id, -inf), order.state not in _IN_DOUBT))
        for order in due[: self._most]:
            self._asked[order.id] = now
        return due[: self._most]

    def _pause(self, order: Order) -> float:
        if order.state is State.LOST:
            return _LOST_PAUSE
        return 0.0 if order.state in _IN_DOUBT else self._every

    async def _cancel_again(self, orders: list[Order]) -> None:
        """Whoever asked for an end may have died before it was sent, or the line may have swallowed it."""
        now = self._now()
        sent = {order.id: self._cancel_sent.get(order.id, now - _CANCEL_PAUSE) for order in orders}
        for order in orders:
            if now - sent[order.id] >= _CANCEL_PAUSE:
                sent[order.id] = now
                try:
                    await self._broker.cancel(order)
                except BrokerError as error:
                    log.warning("cancelling %s: %s", order.id, error)
        self._cancel_sent = sent

    async def _ask(self, order: Order, lease: Lease | None) -> bool:
        waited = self._now() - self._first_seen.get(order.id, self._now())
        if order.state is State.PENDING and waited < SENDING_SECONDS:
            return False  # whoever placed it is sending it
        try:
            report = await self._broker.find(order)
            return await self._records.write(lambda journal: self._settle(journal, order.id, report, waited), lease)
        except BrokerError as error:
            log.warning("order %s: %s", order.id, error)
        except ImpossibleMove:
            # A broker that contradicts itself about one order must not keep the others from being asked for.
            log.exception("order %s", order.id)
        return False

    def _settle(self, journal: Journal, order_id: str, report: Report | None, waited: float) -> bool:
        order = queries.order(journal.view, order_id)
        if order is None or order.final:
            return False
        if report is not None:
            before = journal.seq
            reports.apply(journal, order, report)
            return journal.seq > before
        if order.state is State.PENDING:
            journal.put("order", order.to(State.UNKNOWN, journal.at, "whoever sent it did not say what came of it"))
            return True
        if order.state is State.UNKNOWN and waited >= LOST_SECONDS:
            end(journal, order, State.LOST, "the broker has no record of it")
            return True
        return False
