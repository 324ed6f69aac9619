"""The venue of a broker: orders are sent once, and the broker's reports are recorded.

An order is recorded as `pending` before it is sent. If no answer arrives, it becomes `unknown` and the engine looks it up by
its id; it is never submitted again.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Awaitable, Callable
from decimal import Decimal
from math import inf

from openbell.brokers.registry import BrokerParts, all_brokers
from openbell.desk.events.supervision import FailingUnits
from openbell.desk.orders import reports
from openbell.desk.orders.engine import raise_if_general
from openbell.desk.orders.halts import Halts
from openbell.desk.orders.reports import end
from openbell.desk.settings import Settings
from openbell.stores.port import Lease
from openbell.stores.records import orders as queries
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import Records
from openbell.trading.broker import Broker, BrokerRefused, BrokerUnavailable, OrderReport, OutcomeUnknown
from openbell.trading.orders import Order, OrderState

_ORDER, _CANCELLING = "order", "cancelling order"
"""Kinds of units that may fail alone."""
SENDING_SECONDS = 60.0
"""The longest time in which a process sends an order; after that it has died, and the order is looked up."""
LOST_SECONDS = 300.0
"""How long an order that the broker does not have is looked up before its state becomes `lost`."""
_LOST_PAUSE = 60.0
"""Seconds between two lookups of a lost order."""
_IN_DOUBT = frozenset({OrderState.PENDING, OrderState.UNKNOWN, OrderState.CANCELLING})
_CANCEL_PAUSE = 5.0
"""Seconds after which a cancellation without effect is sent again; sending it twice is harmless."""


class Reconciling:
    """A step of the engine for the orders of one account."""

    def __init__(
        self,
        records: Records,
        account: str,
        broker: Broker,
        now: Callable[[], float] = time.monotonic,
        *,
        every: float = 0.0,
        most: int = 1_000_000,
        failing: FailingUnits | None = None,
    ) -> None:
        """A working order is looked up once in `every` seconds, and at most `most` orders per step.

        Brokers limit the number of requests. `failing` is where orders are noted that cannot be looked up.
        """
        self._failing = failing or FailingUnits()
        self._records = records
        self.account = account
        self._broker = broker
        self._now = now
        self._every = every
        self._most = most
        self._looked_up: dict[str, float] = {}
        self._first_seen: dict[str, float] = {}
        """When this engine first saw an order as pending or unknown."""
        self._cancel_sent: dict[str, float] = {}

    async def step(self, lease: Lease | None) -> int:
        """Look up orders that are not final; returns the number of orders that changed."""
        orders = await self._records.read(queries.working, self.account)
        in_doubt = {order.id for order in orders if order.state in {OrderState.PENDING, OrderState.UNKNOWN}}
        self._first_seen = {key: self._first_seen.get(key, self._now()) for key in in_doubt}
        self._failing.keep(_ORDER, {order.id for order in orders})
        await self._cancel_again([order for order in orders if order.state is OrderState.CANCELLING])
        changed = 0
        for order in self._due(orders):
            try:
                changed += await self._look_up(order, lease)
            except Exception as error:  # noqa: BLE001 - the other orders are looked up
                await raise_if_general(self._records, error, lease)
                self._failing.failed(_ORDER, order.id, error)
            else:
                self._failing.works(_ORDER, order.id)
        return changed

    def _due(self, orders: list[Order]) -> list[Order]:
        """Returns the orders to look up now: those with the oldest lookup first, and among equals those in doubt.

        Orders in doubt are always due. They are not always first, because the others would never be looked up then.
        """
        now, working = self._now(), {order.id for order in orders}
        self._looked_up = {key: at for key, at in self._looked_up.items() if key in working}
        due = [
            order
            for order in orders
            # The report of a working entry includes its exits.
            if order.parent not in working and now - self._looked_up.get(order.id, -inf) >= self._pause(order)
        ]
        due.sort(key=lambda order: (self._looked_up.get(order.id, -inf), order.state not in _IN_DOUBT))
        for order in due[: self._most]:
            self._looked_up[order.id] = now
        return due[: self._most]

    def _pause(self, order: Order) -> float:
        if order.state is OrderState.LOST:
            return _LOST_PAUSE
        return 0.0 if order.state in _IN_DOUBT else self._every

    async def _cancel_again(self, orders: list[Order]) -> None:
        """Send cancellations again: the process may have died before sending, or the request was lost."""
        now = self._now()
        sent = {order.id: self._cancel_sent.get(order.id, now - _CANCEL_PAUSE) for order in orders}
        for order in orders:
            if now - sent[order.id] >= _CANCEL_PAUSE:
                sent[order.id] = now
                try:
                    await self._broker.cancel(order)
                except Exception as error:  # noqa: BLE001 - the other cancellations are sent
                    self._failing.failed(_CANCELLING, order.id, error)
                else:
                    self._failing.works(_CANCELLING, order.id)
        self._cancel_sent = sent
        self._failing.keep(_CANCELLING, sent)

    async def _look_up(self, order: Order, lease: Lease | None) -> bool:
        waited = self._now() - self._first_seen.get(order.id, self._now())
        if order.state is OrderState.PENDING and waited < SENDING_SECONDS:
            return False  # the process that placed it is sending it
        report = await self._broker.find(order)
        return await self._records.write(self._settle, order.id, report, waited, lease=lease)

    def _settle(self, journal: Journal, order_id: str, report: OrderReport | None, waited: float) -> bool:
        order = queries.order(journal.view, order_id)
        if order is None or order.final:
            return False
        if report is not None:
            before = journal.seq
            reports.apply(journal, order, report)
            return journal.seq > before
        if order.state is OrderState.PENDING:
            journal.put("order", order.to(OrderState.UNKNOWN, journal.at, "the broker's answer was not recorded"))
            return True
        if order.state is OrderState.UNKNOWN and waited >= LOST_SECONDS:
            end(journal, order, OrderState.LOST, "the broker has no record of it")
            return True
        return False


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
