"""The gate's situation: everything that `trading.risk.judge` must know, gathered for one account at one moment.

Prices are asked before the transaction, positions and orders inside it; if those name a symbol whose price was not asked,
`MorePrices` says so and the caller asks again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeVar

from sqlalchemy import Connection

from openbell.desk.trading.books import Books, DayStart
from openbell.desk.trading.halts import Halted
from openbell.desk.trading.prices import Price, Prices
from openbell.market.errors import DataError, OpenbellError, StoreError, UnknownSymbol
from openbell.market.instruments import Instrument
from openbell.stores.records import marks as switches
from openbell.trading import risk
from openbell.trading.accounts import Account
from openbell.trading.book import Book
from openbell.trading.orders import Order
from openbell.trading.risk import Limits, Proposal, Situation, Verdict

T = TypeVar("T")
_TRIES = 5


class MorePrices(Exception):
    """Prices of these symbols are needed too."""

    def __init__(self, now: set[str], day_start: set[str]) -> None:
        super().__init__(now, day_start)
        self.now = now
        self.day_start = day_start


@dataclass(slots=True)
class Known:
    """The prices that were asked for so far."""

    price: Price | None = None
    """Of what is proposed."""
    failure: OpenbellError | None = None
    """Why there is none."""
    marks: dict[str, Decimal] = field(default_factory=dict)
    opening: dict[str, Decimal] = field(default_factory=dict)
    """When the day began."""
    missing: set[str] = field(default_factory=set)
    """Symbols that have no price: a position in one is valued at what it cost."""


@dataclass(frozen=True, slots=True)
class Valued:
    """A book with prices for everything in it."""

    book: Book
    marks: dict[str, Decimal]
    orders: tuple[Order, ...]
    day_start: Decimal


class Gate:
    """Judges proposals as the account stands inside a transaction."""

    def __init__(
        self, prices: Prices, books: Books, limits: Limits, halted: Halted = switches.halted, *, cut: bool = False
    ) -> None:
        """`cut`: the broker cuts fills to the position."""
        self._halted = halted
        self._cut = cut
        self._prices = prices
        self._books = books
        self.limits = limits

    def judge(self, connection: Connection, account: Account, proposal: Proposal, known: Known) -> Verdict:
        """The verdict. Raises `MorePrices`."""
        valued = self.value(connection, account, known)
        mark, stale = valued.marks.get(proposal.symbol), None
        if known.price is not None:
            mark, stale = known.price.value, known.price.stale
        elif known.failure is not None:
            # What is held may be reduced whatever the feed does; nothing is opened without a price.
            if not valued.book.quantity(proposal.symbol) or mark is None:
                raise known.failure
            stale = f"there is no price of {proposal.symbol}: {known.failure.message}"
        assert mark is not None
        situation = Situation(
            valued.book,
            {**valued.marks, proposal.symbol: mark},
            valued.orders,
            valued.day_start,
            self._halted(connection),
            stale,
            self._cut,
        )
        return risk.judge(proposal, situation, self.limits)

    def value(self, connection: Connection, account: Account, known: Known) -> Valued:
        """The account's book and orders with their prices. Raises `MorePrices`."""
        book = self._books.book(connection, account)
        start = self._books.day_start(connection, account)
        orders = self._books.orders(connection, account)
        needed = set(book.positions) | {order.symbol for order in orders}
        now = needed - set(known.marks) - known.missing
        before = set(start.held) - set(known.opening) - known.missing
        if now or before:
            raise MorePrices(now, before)
        marks = dict(known.marks)
        for symbol in needed & known.missing:
            held = book.positions.get(symbol)
            order = next((each for each in orders if each.symbol == symbol), None)
            fallback = held.average_price if held else (order and (order.limit_price or order.stop_price)) or Decimal(0)
            marks.setdefault(symbol, fallback)
        return Valued(book, marks, orders, self._worth_at_start(start, marks, known))

    @staticmethod
    def _worth_at_start(start: DayStart, marks: dict[str, Decimal], known: Known) -> Decimal:
        then = {symbol: known.opening.get(symbol, marks.get(symbol, Decimal(0))) for symbol in start.held}
        return start.equity(then)

    async def known(self, instrument: Instrument | None = None) -> Known:
        """What to begin with: the price of what is proposed."""
        known = Known()
        if instrument is None:
            return known
        try:
            known.price = await self._prices.now(instrument)
            known.marks[instrument.symbol] = known.price.value
        except (DataError, UnknownSymbol, StoreError) as failure:
            known.failure = failure
            known.missing.add(instrument.symbol)
        return known

    async def asking(self, known: Known, work: Callable[[], Awaitable[T]], moment: int) -> T:
        """Run work that may need more prices, as often as it does."""
        for _ in range(_TRIES):
            try:
                return await work()
            except MorePrices as more:
                # What the transaction has counted may have been undone with it.
                self._books.forget()
                known.marks |= await self._prices.of(more.now)
                known.opening |= await self._prices.before(more.day_start, moment)
                known.missing |= (more.now - set(known.marks)) | (more.day_start - set(known.opening))
        raise RuntimeError("positions changed faster than their prices could be asked for")
