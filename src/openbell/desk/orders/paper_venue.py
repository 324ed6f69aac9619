"""The paper venue: orders are recorded here and filled from closed bars."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from openbell.desk.orders.halts import Halts
from openbell.desk.orders.matching import PaperMatching
from openbell.desk.orders.reports import end
from openbell.stores.port import Lease
from openbell.stores.records.journal import Journal
from openbell.trading.accounts import PAPER
from openbell.trading.costs import Costs
from openbell.trading.orders import Order, OrderState

_BY_OWNER = "cancelled by its owner"


class PaperVenue:
    """Fills orders from this desk's own bars. Orders are recorded and not sent anywhere."""

    name = PAPER
    remote = False

    def __init__(self, matching: PaperMatching, halts: Halts, closed_until: Callable[[], int], cash: Decimal) -> None:
        """`cash` is the starting cash of a new account."""
        self._matching = matching
        self._halts = halts
        self._closed_until = closed_until
        self._cash = cash

    @property
    def costs(self) -> Costs:
        """Fees, slippage and the share of a bar's volume that orders can get."""
        return self._matching.rules.costs

    async def opening_cash(self) -> Decimal:
        """See the port."""
        return self._cash

    def accept(self, order: Order) -> Order:
        """See the port: the order is open at once."""
        return replace(order, state=OrderState.OPEN, broker_id=order.id)

    async def send(self, order: Order) -> Order:
        """See the port."""
        return order

    def cancel(self, journal: Journal, order: Order, reason: str | None = None) -> Order:
        """See the port: the order is cancelled at once, with exits that have nothing to close without it."""
        return end(journal, order, OrderState.CANCELLED, reason or _BY_OWNER)

    async def send_cancellation(self, order: Order) -> None:
        """See the port: nothing is sent."""

    async def refresh(self, order: Order) -> Order:
        """See the port: the recorded order is current."""
        return order

    async def settle(self, account: str) -> None:
        """See the port."""
        await self._matching.advance(account, self._closed_until())

    async def step(self, lease: Lease | None, until: int) -> int:
        """See the port: enforces a halt, then fills orders, also if the halt could not be enforced."""
        changes = 0
        try:
            changes += await self._halts.enforce(self, lease)
        finally:
            changes += await self._matching.step(lease, until)
        return changes

    async def close(self) -> None:
        """See the port."""
