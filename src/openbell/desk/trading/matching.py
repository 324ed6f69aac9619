"""Paper fills: each account's resting orders of each symbol meet the bars that have closed since they last did."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import Connection

from openbell.desk.bars import BarService
from openbell.desk.trading.books import Books
from openbell.desk.trading.halts import Halted
from openbell.market.bars import MINUTE, Bars
from openbell.market.errors import DataError, StoreError, UnknownSymbol
from openbell.market.instruments import parse
from openbell.stores.port import Lease, Span
from openbell.stores.records import marks
from openbell.stores.records import orders as queries
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import Records
from openbell.trading.broker import PaperBroker
from openbell.trading.fills import Fill
from openbell.trading.orders import Order
from openbell.trading.paper import Change, Costs, match

log = logging.getLogger(__name__)
_REMEMBERED = 50_000


@dataclass(frozen=True, slots=True)
class _Scene:
    """What the bars of one symbol meet on one account."""

    orders: list[Order]
    seen: dict[str, float]
    """Up to when each order has met bars already."""
    position: Decimal
    halted: bool

    @property
    def start(self) -> int:
        """The first bar that any of them has not met."""
        return int(min(max(order.placed_at // MINUTE * MINUTE, self.seen.get(order.id, 0.0)) for order in self.orders))

    def meet(self, bars: Bars, until: int, costs: Costs) -> list[Change]:
        """What comes of it."""
        return match(self.orders, bars, self.position, until, costs, halted=self.halted, seen=self.seen)


class PaperMatching:
    """One step of the engine. What it has looked at is remembered in the same transaction as what came of it.

    An order that was placed under an earlier clock than that of the last look meets the bars in between all the same.
    """

    def __init__(
        self, records: Records, bars: BarService, books: Books, costs: Costs, halted: Halted = marks.halted
    ) -> None:
        self._records = records
        self._bars = bars
        self._books = books
        self._costs = costs
        self._halted = halted
        self._seen: dict[str, float] = {}
        """Up to when this engine has shown an order bars that did nothing to it."""

    async def step(self, lease: Lease | None, until: int) -> int:
        """Match everything up to `until`; how many changes there were."""
        changes = 0
        for account, symbol in await self._records.read(queries.working_accounts):
            try:
                changes += await self._match(lease, account, symbol, until)
            except (DataError, UnknownSymbol, StoreError) as error:
                log.warning("orders of %s wait: %s", symbol, error)
        return changes

    async def _match(self, lease: Lease | None, account: str, symbol: str, until: int) -> int:
        scene = await self._records.read(lambda connection: self._scene(connection, account, symbol))
        if scene is None:
            return 0
        start = scene.start
        expiring = any(order.expires_at is not None and order.expires_at <= until for order in scene.orders)
        if start >= until and not expiring:
            return 0
        bars = await self._read(symbol, start, until)
        # Looking is cheap and writing is not: most minutes bring nothing.
        if not scene.meet(bars, until, self._costs):
            self._look_further(scene.orders, until)
            return 0

        def work(journal: Journal) -> tuple[int, list[Order]]:
            # Orders may have come and gone, and another engine may have been here, since the bars were read.
            now = self._scene(journal.connection, account, symbol)
            if now is None or now.start < start:
                return 0, []
            changes = now.meet(bars, until, self._costs)
            for change in changes:
                journal.put("order" if isinstance(change, Order) else "fill", change, new=isinstance(change, Fill))
            if changes and until >= marks.mark(journal.connection, _mark(account, symbol)):
                marks.set_mark(journal.connection, _mark(account, symbol), until)
                marks.set_mark(journal.connection, _mark_seq(account, symbol), journal.seq)
            return len(changes), now.orders

        count, met = await self._records.write(work, lease)
        self._look_further(met, until)
        return count

    def _scene(self, connection: Connection, account: str, symbol: str) -> _Scene | None:
        """How things stand; None if there is nothing to fill here."""
        owner = queries.account(connection, account)
        if owner is None or owner.broker != PaperBroker.name:
            return None
        orders = queries.working_on(connection, account, symbol)
        if not orders:
            return None
        marked = marks.mark(connection, _mark(account, symbol))
        marked_seq = marks.mark(connection, _mark_seq(account, symbol))
        # What was written after the last change is new, and has met no bar: only matching changes what goes on working.
        seen = {
            order.id: max(marked if seq <= marked_seq else 0.0, self._seen.get(order.id, 0.0)) for seq, order in orders
        }
        position = self._books.book(connection, owner).quantity(symbol)
        return _Scene([order for _, order in orders], seen, position, self._halted(connection) is not None)

    def _look_further(self, orders: list[Order], until: int) -> None:
        if len(self._seen) > _REMEMBERED:
            self._seen.clear()  # it only saves looking twice
        for order in orders:
            self._seen[order.id] = max(float(until), self._seen.get(order.id, 0.0))

    async def _read(self, symbol: str, start: int, until: int) -> Bars:
        """The minutes to look at; none are left out because the feed is silent: then it waits."""
        instrument = parse(symbol)
        span = Span(start, max(start, until))
        if span.end > span.start and (failure := await self._bars.fill(instrument, span)):
            raise failure
        return await asyncio.to_thread(self._bars.store.read, instrument, span.start, span.end)


def _mark(account: str, symbol: str) -> str:
    return f"match {account} {symbol}"


def _mark_seq(account: str, symbol: str) -> str:
    return f"match {account} {symbol} through entry"
