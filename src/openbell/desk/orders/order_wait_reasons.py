"""The reasons of orders: recorded ones, what working orders wait for, and which orders and alerts late bars may not reach.

Bars are processed in the order of time. A bar that is stored behind bars that were already processed fills no order and
fires no alert: a fill in the past would change what the account did since. `openbell import` prints a note instead.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from openbell.desk.bars.call_deadlines import BarDeadline, during
from openbell.desk.bars.service import BarService
from openbell.desk.orders.books import Books
from openbell.desk.orders.halts import Halted
from openbell.market.bars import MINUTE, Bars
from openbell.market.errors import OpenbellError, StoreTimeout
from openbell.market.instruments import Instrument, parse
from openbell.market.series import Series
from openbell.stores.records import alerts, orders, progress
from openbell.stores.records import orders as queries
from openbell.stores.records.progress import trouble_of
from openbell.stores.records.records import Records
from openbell.stores.records.snapshot import View
from openbell.trading.accounts import PAPER
from openbell.trading.costs import Costs
from openbell.trading.halt import Halt
from openbell.trading.orders import Order
from openbell.trading.waiting import traded, waiting

log = logging.getLogger(__name__)

_AS_RECORDED = "as last recorded; this desk is read-only and fills nothing, so it may have filled since"
_LOOK_BACK = 3600
"""Seconds of bars that are read to find out whether the symbol trades."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What the records say about accounts."""

    halted: Halt | None
    troubles: Mapping[str, str]
    """What keeps accounts from being filled, by its name."""
    held: Mapping[str, frozenset[str]]
    """By account, the symbols of its positions."""


class Reasons:
    """Finds the reasons of orders."""

    def __init__(
        self,
        records: Records,
        bars: BarService,
        books: Books,
        halted: Halted,
        costs: Costs | None,
        *,
        fills: bool = True,
    ) -> None:
        """`costs` of paper fills; None if a broker fills the orders. `fills`: whether this desk may write fills."""
        self._fills = fills
        self._records = records
        self._bars = bars
        self._books = books
        self._halted = halted
        self._costs = costs

    async def of(self, orders: Iterable[Order]) -> dict[str, str | None]:
        """Returns the reason of each order by id: the recorded one, or what it waits for."""
        orders = list(orders)
        reasons = {order.id: order.reason for order in orders}
        working = [order for order in orders if not order.final and not order.reason]
        if not working:
            return reasons
        accounts = {order.account for order in working}
        known = await self._records.read(self._known, accounts)
        minutes: dict[str, Bars | None] = {}
        unpriced: dict[str, str | None] = {}
        slow = None
        try:
            async with during(BarDeadline.REASONS):
                for symbol in sorted({order.symbol for order in working}):
                    minutes[symbol] = await self._minutes(symbol)
                for account in accounts:
                    unpriced[account] = await self._unpriced(account, known)
        except StoreTimeout as error:
            slow = error.message
        now = self._bars.clock.epoch()
        for order in working:
            if self._overdue(order):
                reasons[order.id] = _AS_RECORDED
                continue
            bars = minutes.get(order.symbol)
            reasons[order.id] = waiting(
                order,
                parse(order.symbol),
                now,
                halted=known.halted,
                unread=known.troubles.get(trouble_of(order.account, order.symbol)) or slow,
                unpriced=unpriced.get(order.account),
                traded=traded(order, bars, self._costs) if bars is not None and self._costs is not None else None,
                on_paper=self._costs is not None,
            )
        return reasons

    def _known(self, view: View, accounts: Iterable[str]) -> _Known:
        if self._costs is None or view.until is not None:  # troubles are about paper fills, and about now
            return _Known(self._halted(view), {}, {})
        found = [account for name in accounts if (account := queries.account(view, name)) is not None]
        return _Known(
            self._halted(view),
            {name: reason for name, (_, reason) in progress.all_troubles(view).items()},
            {account.name: frozenset(self._books.book(view, account).positions) for account in found},
        )

    def _overdue(self, order: Order) -> bool:
        """Returns True if closed bars are not matched with a paper order yet and this desk may not match them."""
        if self._fills or self._costs is None:
            return False
        return self._bars.closed_until() - MINUTE >= max(order.placed_at, order.updated_at)

    async def _unpriced(self, account: str, known: _Known) -> str | None:
        """Why nothing is opened on a paper account: what it holds has no price, and so its loss is not known."""
        for symbol in sorted(known.held.get(account, ())):
            if trouble := known.troubles.get(trouble_of(account, symbol)):
                return trouble
            try:
                newest = await self._bars.threads.run(
                    self._bars.store.tail, Series(parse(symbol)), 1, self._bars.closed_until()
                )
            except OpenbellError as error:
                return f"the bars of {symbol} cannot be read: {error}"
            if not len(newest):
                return f"there is none of {symbol}"
        return None

    async def _minutes(self, symbol: str) -> Bars | None:
        """Returns the stored bars of the last hour; None if they cannot be read."""
        end = self._bars.closed_until()
        try:
            return await self._bars.threads.run(self._bars.store.read, Series(parse(symbol)), end - _LOOK_BACK, end)
        except OpenbellError:
            return None
        except Exception:  # what cannot be explained is listed all the same
            log.exception("the bars of %s could not be read", symbol)
            return None


@dataclass(frozen=True, slots=True)
class Waiting:
    """How many paper orders and alerts of one symbol wait for its bars."""

    orders: int
    alerts: int

    def __str__(self) -> str:
        parts = ((self.orders, "paper order"), (self.alerts, "alert"))
        return " and ".join(f"{count} {word}{'s' if count > 1 else ''}" for count, word in parts if count)


async def waiting_for_bars(records: Records, before: Mapping[Instrument, float]) -> dict[Instrument, Waiting]:
    """Returns what was waiting for bars of each instrument before its time, read at once."""

    def work(view: View) -> dict[Instrument, Waiting]:
        accounts = [account.name for account in orders.all_accounts(view) if account.broker == PAPER]
        working = [(order.symbol, order.placed_at) for name in accounts for order in orders.working(view, name)]
        active = [(alert.symbol, alert.set_at) for _, alert in alerts.changed_after(view, 0)]

        def count(waiting: list[tuple[str, float]], instrument: Instrument) -> int:
            return sum(symbol == str(instrument) and since < before[instrument] for symbol, since in waiting)

        return {each: Waiting(count(working, each), count(active, each)) for each in before}

    return await records.read(work)
