"""Paper fills: each account's resting orders of each symbol meet the bars that have closed since they last did."""

from __future__ import annotations

import asyncio
import logging

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
from openbell.trading.orders import Order
from openbell.trading.paper import Costs, match

log = logging.getLogger(__name__)


class PaperMatching:
    """One step of the engine. What it has looked at is remembered in the same transaction as what came of it."""

    def __init__(
        self, records: Records, bars: BarService, books: Books, costs: Costs, halted: Halted = marks.halted
    ) -> None:
        self._halted = halted
        self._records = records
        self._bars = bars
        self._books = books
        self._costs = costs
        self._seen: dict[tuple[str, str], float] = {}

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
        name = f"match {account} {symbol}"

        def look(connection: Connection) -> tuple[list[Order], float, str | None]:
            found = queries.account(connection, account)
            orders = queries.working(connection, account, symbol)
            inside = found is not None and found.broker == "paper"
            return (orders if inside else []), marks.mark(connection, name), self._halted(connection)

        orders, marked, _ = await self._records.read(look)
        if not orders:
            return 0
        first = min(order.placed_at for order in orders)
        seen = max(marked, self._seen.get((account, symbol), 0.0))
        start = int(max(seen, first // MINUTE * MINUTE))
        expiring = any(order.expires_at is not None and order.expires_at <= until for order in orders)
        if start >= until and not expiring:
            return 0
        bars = await self._read(symbol, start, until)

        def work(journal: Journal) -> int:
            # Orders may have come and gone, and another engine may have been here, since the bars were read.
            orders, marked, halted = look(journal.connection)
            owner = queries.account(journal.connection, account)
            if owner is None or marked > start:
                return 0
            position = self._books.book(journal.connection, owner).quantity(symbol)
            changes = match(orders, bars, position, until, self._costs, halted=halted is not None)
            known = {order.id for order in orders}
            for change in changes:
                if isinstance(change, Order):
                    journal.put("order", change, new=change.id not in known)
                else:
                    journal.put("fill", change, new=True)
            if changes:
                marks.set_mark(journal.connection, name, until)
            return len(changes)

        # Looking is cheap and writing is not: most minutes bring nothing.
        if not await self._records.read(lambda connection: self._anything(connection, account, symbol, bars, until)):
            self._seen[account, symbol] = max(until, start)
            return 0
        count = await self._records.write(work, lease)
        self._seen[account, symbol] = max(until, start)
        return count

    def _anything(self, connection: Connection, account: str, symbol: str, bars: Bars, until: int) -> bool:
        owner = queries.account(connection, account)
        if owner is None:
            return False
        orders = queries.working(connection, account, symbol)
        position = self._books.book(connection, owner).quantity(symbol)
        return bool(match(orders, bars, position, until, self._costs, halted=self._halted(connection) is not None))

    async def _read(self, symbol: str, start: int, until: int) -> Bars:
        """The minutes to look at; none are left out because the feed is silent: then it waits."""
        instrument = parse(symbol)
        span = Span(start, max(start, until))
        if span.end > span.start and (failure := await self._bars.fill(instrument, span)):
            raise failure
        return await asyncio.to_thread(self._bars.store.read, instrument, span.start, span.end)
