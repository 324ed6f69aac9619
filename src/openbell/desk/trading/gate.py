"""The gate's situation: everything that `trading.risk.judge` must know, gathered for one account at one moment.

Prices are asked before the transaction, positions and orders inside it; if those name a symbol whose price was not asked,
`MorePrices` says so and the caller asks again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeVar

from openbell.desk.trading.books import Books, DayStart
from openbell.desk.trading.halts import Halted
from openbell.desk.trading.prices import Price, Prices
from openbell.market.clock import Clock
from openbell.market.errors import DataError, OpenbellError, StoreError, UnknownSymbol
from openbell.market.instruments import Instrument
from openbell.stores.records import marks as switches
from openbell.stores.records.view import View
from openbell.trading import risk
from openbell.trading.accounts import Account
from openbell.trading.advance import DAY
from openbell.trading.book import Book
from openbell.trading.orders import EXPOSED, Order, Side
from openbell.trading.risk import Limits, Proposal, Situation, Verdict

T = TypeVar("T")
_TRIES = 5
NO_DATA = "stale_price"
"""The rule that objects for want of data: asked again later, it may say otherwise."""


class MorePrices(Exception):
    """Prices of these symbols are needed too."""

    def __init__(self, now: set[str], day_start: set[str]) -> None:
        super().__init__(now, day_start)
        self.now = now
        self.day_start = day_start


@dataclass(slots=True)
class Known:
    """The prices that were asked for so far."""

    moment: int
    """When the clock's UTC day began."""
    price: Price | None = None
    """Of what is proposed."""
    failure: OpenbellError | None = None
    """Why there is none."""
    prices: dict[str, Price] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    """Symbols that have no price, and why."""
    opening: dict[str, Decimal] = field(default_factory=dict)
    """When the day began."""
    unopened: set[str] = field(default_factory=set)
    """Symbols that had no price then."""


@dataclass(frozen=True, slots=True)
class Valued:
    """A book with prices for everything in it, as far as there are any."""

    book: Book
    prices: dict[str, Price]
    marks: dict[str, Decimal]
    """The same as numbers; what has no price is counted at what it cost, or is ordered at."""
    orders: tuple[Order, ...]
    day_start: Decimal | None
    missing: dict[str, str]
    """Held or ordered symbols that have no price, and why."""

    @property
    def doubt(self) -> str | None:
        """Why the account's worth is not known; nothing is opened then."""
        for symbol in sorted(self.book.positions):
            if symbol in self.missing:
                return f"{self.missing[symbol]}; nothing is opened while what is held has no price"
            if reason := self.prices[symbol].in_doubt:
                return f"{reason}; nothing is opened while what is held has no price"
        for order in self.orders:
            opens = order.state in EXPOSED and not order.role.exit and order.remaining_opening
            bounded = order.side is Side.BUY and order.limit_price is not None
            if opens and not bounded and order.symbol in self.missing:
                return (
                    f"{self.missing[order.symbol]}; nothing is opened while an order may open an unknown amount of it"
                )
        if self.day_start is None:
            return "what the account was worth when the day began is not known; nothing is opened until it is"
        return None


class Gate:
    """Judges proposals as the account stands inside a transaction."""

    def __init__(
        self,
        prices: Prices,
        books: Books,
        limits: Limits,
        clock: Clock,
        halted: Halted = switches.halted,
        *,
        cut: bool = False,
    ) -> None:
        """`cut`: the broker cuts fills to the position."""
        self._halted = halted
        self._cut = cut
        self._prices = prices
        self._books = books
        self._clock = clock
        self.limits = limits

    def judge(self, view: View, account: Account, proposal: Proposal, known: Known) -> Verdict:
        """The verdict. Raises `MorePrices`."""
        valued = self.value(view, account, known)
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
            self.halted(view),
            stale or valued.doubt,
            self._cut,
        )
        return risk.judge(proposal, situation, self.limits)

    def halted(self, view: View) -> str | None:
        """Why nothing may be opened; None if it may."""
        return self._halted(view)

    def value(self, view: View, account: Account, known: Known) -> Valued:
        """The account's book and orders with their prices. Raises `MorePrices`."""
        book = self._books.book(view, account)
        start = self._books.day_start(view, account, known.moment)
        orders = self._books.orders(view, account)
        needed = set(book.positions) | {order.symbol for order in orders}
        now = needed - set(known.prices) - set(known.missing)
        before = set(start.held) - set(known.opening) - known.unopened
        if now or before:
            raise MorePrices(now, before)
        marks = {symbol: price.value for symbol, price in known.prices.items()}
        for symbol in needed & set(known.missing):
            held = book.positions.get(symbol)
            order = next((each for each in orders if each.symbol == symbol), None)
            fallback = held.average_price if held else (order and (order.limit_price or order.stop_price)) or Decimal(0)
            marks.setdefault(symbol, fallback)
        missing = {symbol: why for symbol, why in known.missing.items() if symbol in needed}
        return Valued(book, known.prices, marks, orders, _worth(start, known), missing)

    async def known(self, instrument: Instrument | None = None) -> Known:
        """What to begin with: the price of what is proposed."""
        known = Known(int(self._clock.epoch() // DAY * DAY))
        if instrument is None:
            return known
        try:
            known.price = await self._prices.now(instrument)
            known.prices[instrument.symbol] = known.price
        except (DataError, UnknownSymbol, StoreError) as failure:
            known.failure = failure
            known.missing[instrument.symbol] = f"there is no price of {instrument}: {failure.message}"
        return known

    async def asking(self, known: Known, work: Callable[[], Awaitable[T]], *, writes: bool = False) -> T:
        """Run work that may need more prices, as often as it does. `writes`: it is undone each time that it does."""
        for _ in range(_TRIES):
            try:
                return await work()
            except MorePrices as more:
                if writes:
                    self._books.forget()  # what the transaction has counted may have been undone with it
                found, missing = await self._prices.of(more.now)
                known.prices |= found
                known.missing |= missing
                known.opening |= await self._opening(more.day_start, known.moment)
                known.unopened |= more.day_start - set(known.opening)
        raise RuntimeError("positions changed faster than their prices could be asked for")

    async def _opening(self, symbols: set[str], moment: int) -> dict[str, Decimal]:
        try:
            return await self._prices.before(symbols, moment)
        except (DataError, UnknownSymbol, StoreError):
            return {}


def _worth(start: DayStart, known: Known) -> Decimal | None:
    """What the account was worth when the day began; None if something that it held had no price then."""
    return start.equity(known.opening) if set(start.held) <= set(known.opening) else None
