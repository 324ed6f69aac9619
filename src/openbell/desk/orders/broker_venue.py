"""The venue of a broker: orders are sent once, and the broker's reports are recorded.

An order is recorded as `pending` before it is sent. If no answer arrives, it becomes `unknown` and the engine looks it up by
its id; it is never submitted again.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable
from decimal import Decimal

from openbell.brokers.registry import BrokerParts, all_brokers
from openbell.desk.orders import reports
from openbell.desk.orders.halts import Halts
from openbell.desk.orders.reconcile import Reconciling
from openbell.desk.orders.reports import end
from openbell.desk.settings import Settings
from openbell.stores.port import Lease
from openbell.stores.records import orders as queries
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import Records
from openbell.trading.broker import Broker, BrokerRefused, BrokerUnavailable, OrderReport, OutcomeUnknown
from openbell.trading.orders import Order, OrderState

log = logging.getLogger(__name__)


class BrokerVenue:
    """Sends the orders of one account to a broker. Only this class submits orders; `Reconciling` repeats cancellations."""

    remote = True

    def __init__(
        self,
        records: Records,
        broker: Broker,
        reconciling: Reconciling,
        halts: Halts,
        lost_too_much: Callable[[], Awaitable[str | None]],
        *,
        sends: bool = True,
    ) -> None:
        """`lost_too_much` returns why nothing may be opened today. Without `sends`, `step` sends and looks up nothing."""
        self.name = broker.name
        self.broker = broker
        self._records = records
        self._reconciling = reconciling
        self._halts = halts
        self._lost_too_much = lost_too_much
        self._sends = sends

    @property
    def costs(self) -> None:
        """See the port."""
        return None

    async def opening_cash(self) -> Decimal:
        """See the port: the cash in the broker's account."""
        return await self.broker.cash()

    def accept(self, order: Order) -> Order:
        """See the port: a new order is `pending` until the broker has answered."""
        return order

    async def send(self, order: Order) -> Order:
        """See the port."""
        refused: BrokerRefused | None = None
        try:
            report = await self.broker.submit(order)
        except BrokerRefused as error:
            refused, report = error, OrderReport("", OrderState.REJECTED, reason=error.message)
        except BrokerUnavailable as error:
            refused = BrokerRefused(f"nothing was sent: {error.message}", **error.details)
            report = OrderReport("", OrderState.REJECTED, reason=refused.message)
        except OutcomeUnknown as error:
            log.warning("order %s: %s; the engine will look it up", order.id, error)
            report = OrderReport("", OrderState.UNKNOWN, reason=error.message)
        order = await self._record(order.id, report)
        if refused is not None:
            raise refused
        return order

    def cancel(self, journal: Journal, order: Order, reason: str | None = None) -> Order:
        """See the port. An exit that is held here is held at the broker too, and ends when the broker reports so."""
        if order.state in {OrderState.CANCELLING, OrderState.HELD}:
            return order
        order = order.to(OrderState.CANCELLING, journal.at, reason)
        journal.put("order", order)
        return order

    async def send_cancellation(self, order: Order) -> None:
        """See the port."""
        await self.broker.cancel(order)

    async def refresh(self, order: Order) -> Order:
        """See the port."""
        report = await self.broker.find(order)
        return order if report is None else await self._record(order.id, report)

    async def settle(self, account: str) -> None:
        """See the port: bars change nothing here."""

    async def step(self, lease: Lease | None, until: int) -> int:  # noqa: ARG002
        """See the port: enforces a halt and the daily loss, then looks up orders whose state is not final.

        Each is tried also if the one before it fails.
        """
        if not self._sends:
            return 0
        changes = 0
        try:
            changes += await self._halts.enforce(self, lease)
        finally:
            try:
                if reason := await self._lost_too_much():
                    changes += await self._halts.stop(self, self._reconciling.account, reason, lease)
            finally:
                changes += await self._reconciling.step(lease)
        return changes

    async def close(self) -> None:
        """See the port."""
        await self.broker.close()

    async def _record(self, order_id: str, report: OrderReport) -> Order:
        return await self._records.write(_apply, order_id, report)


def _apply(journal: Journal, order_id: str, report: OrderReport) -> Order:
    """Record the answer to a request; the engine may have recorded newer facts since it was sent."""
    order = queries.order(journal.view, order_id)
    assert order is not None
    if report.state is not OrderState.UNKNOWN and report.broker_id:
        return reports.apply(journal, order, report)
    # The answer may have taken so long that the engine has looked the order up already; a refusal still ends it.
    in_doubt = report.state is OrderState.REJECTED and order.state in {OrderState.UNKNOWN, OrderState.LOST}
    if order.state is OrderState.PENDING or in_doubt:
        return end(journal, order, report.state, report.reason)
    return order


def make_broker(settings: Settings) -> Broker | None:
    """Returns the broker that the settings name; None for paper. Raises `SettingsError`."""
    make = all_brokers()[settings.broker].make
    return None if make is None else make(BrokerParts(settings=settings.by_name, environ=os.environ))
