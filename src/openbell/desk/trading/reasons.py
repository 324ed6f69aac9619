"""The reasons of orders: recorded ones, and what working orders wait for."""

from __future__ import annotations

from collections.abc import Iterable

from openbell.desk.bars import BarService
from openbell.desk.trading.halts import Halted
from openbell.market.bars import MINUTE, Bars
from openbell.market.errors import OpenbellError
from openbell.market.instruments import parse
from openbell.stores.records.records import Records
from openbell.trading.costs import Costs
from openbell.trading.orders import Order
from openbell.trading.waiting import traded, waiting

_AS_RECORDED = "as last recorded; this desk is read-only and fills nothing, so it may have filled since"
_LOOK_BACK = 3600
"""Seconds of bars that are read to find out whether the symbol trades."""


class Reasons:
    """Finds the reasons of orders."""

    def __init__(
        self, records: Records, bars: BarService, halted: Halted, costs: Costs | None, *, fills: bool = True
    ) -> None:
        """`costs` of paper fills; None if a broker fills the orders. `fills`: whether this desk may write fills."""
        self._fills = fills
        self._records = records
        self._bars = bars
        self._halted = halted
        self._costs = costs

    async def of(self, orders: Iterable[Order]) -> dict[str, str | None]:
        """Returns the reason of each order by id: the recorded one, or what it waits for."""
        orders = list(orders)
        working = [order for order in orders if not order.final and not order.reason]
        halted = await self._records.read(self._halted) if working else None
        minutes = {symbol: await self._minutes(symbol) for symbol in sorted({order.symbol for order in working})}
        reasons = {order.id: order.reason for order in orders}
        now = self._bars.clock.epoch()
        for order in working:
            if self._overdue(order):
                reasons[order.id] = _AS_RECORDED
                continue
            bars = minutes[order.symbol]
            seen = traded(order, bars, self._costs) if bars is not None and self._costs is not None else None
            reasons[order.id] = waiting(
                order, parse(order.symbol), now, halted=halted, traded=seen, on_paper=self._costs is not None
            )
        return reasons

    def _overdue(self, order: Order) -> bool:
        """Returns True if closed bars are not matched with a paper order yet and this desk may not match them."""
        if self._fills or self._costs is None:
            return False
        return self._bars.closed_until() - MINUTE >= max(order.placed_at, order.updated_at)

    async def _minutes(self, symbol: str) -> Bars | None:
        """Returns the stored bars of the last hour; None if they cannot be read."""
        end = self._bars.closed_until()
        try:
            return await self._bars.threads.run(self._bars.store.read, parse(symbol), end - _LOOK_BACK, end)
        except OpenbellError:
            return None
