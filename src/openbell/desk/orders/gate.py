"""The risk gate: gathers what `trading.risk.judge` needs to know about one account, and judges proposals with it.

Prices are gathered before the transaction, positions and orders are read inside it. If the account holds or has ordered a
symbol by then whose price was not gathered, `PricesMissing` is raised and the caller gathers prices again. The limits come
from the settings; verdicts become errors, and rows of the ledger.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from openbell.desk.orders.books import Books, DayStart
from openbell.desk.orders.halts import Halted
from openbell.desk.orders.prices import Price, Prices
from openbell.market.clock import Clock
from openbell.market.errors import DataError, InsufficientFunds, OpenbellError, RiskRefused, StoreError, UnknownSymbol
from openbell.market.instruments import Instrument, parse
from openbell.stores.records import switches
from openbell.stores.records.records import Records
from openbell.stores.records.snapshot import View
from openbell.trading import amounts, risk
from openbell.trading.accounts import PAPER, Account
from openbell.trading.advance import DAY
from openbell.trading.book import Book
from openbell.trading.costs import Costs
from openbell.trading.halt import Halt
from openbell.trading.orders import EXPOSED, Order, Side
from openbell.trading.risk import Proposal, RiskLimits, Situation, Verdict

if TYPE_CHECKING:
    from openbell.desk.settings import Settings

NO_DATA = "stale_price"
"""The rule that refuses for lack of current prices; the same order may pass later."""
TRIES = 5
"""How often prices are gathered again because the account has changed since."""


class PricesMissing(Exception):
    """The account needs prices that were not gathered: it has changed since."""


@dataclass(slots=True)
class GatheredPrices:
    """The prices that a decision about one account rests on."""

    midnight: int
    """When the current UTC day began."""
    proposed: Price | None = None
    """The price of the proposed instrument."""
    failure: OpenbellError | None = None
    """Why that price could not be read."""
    current: dict[str, Price] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    """Symbols without a current price, each with the reason."""
    at_midnight: dict[str, Decimal] = field(default_factory=dict)
    missing_at_midnight: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Needed:
    """The symbols whose prices value an account: now, and when the day began."""

    now: set[str]
    at_midnight: set[str]


@dataclass(frozen=True, slots=True)
class Valued:
    """An account's book and working orders with their prices."""

    book: Book
    prices: dict[str, Price]
    values: dict[str, Decimal]
    """The prices as numbers; a symbol without a price is valued at its cost, or at its order's price."""
    orders: tuple[Order, ...]
    day_start: Decimal | None
    missing: dict[str, str]
    """Held or ordered symbols without a price, each with the reason."""
    started_with: Decimal
    """The cash that the account began with."""
    halted: Halt | None
    """Why trading is halted; None if it is not."""

    @property
    def unpriced_reason(self) -> str | None:
        """Why the equity is not known; nothing is opened then."""
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
    """Judges proposals against the state of an account inside a transaction."""

    def __init__(
        self,
        records: Records,
        prices: Prices,
        books: Books,
        limits: RiskLimits,
        clock: Clock,
        halted: Halted = switches.halted,
        *,
        fills_cut_to_position: bool = False,
    ) -> None:
        """`fills_cut_to_position`: the venue cuts fills of reducing orders to the position."""
        self._records = records
        self._halted = halted
        self._fills_cut_to_position = fills_cut_to_position
        self._prices = prices
        self._books = books
        self._clock = clock
        self.limits = limits

    async def gather(self, account: Account, instrument: Instrument | None = None) -> GatheredPrices:
        """Returns the prices of an instrument and of everything that an account holds or has ordered."""
        sheet = GatheredPrices(int(self._clock.epoch() // DAY * DAY))
        needed = await self._records.read(self._needed, account, sheet.midnight)
        others = needed.now - ({instrument.symbol} if instrument else set())
        # At the same time: while bars cannot be read, each of the three waits as long as a call may wait for prices.
        (found, missing), sheet.at_midnight, _ = await asyncio.gather(
            self._prices.of(others),
            self._at_midnight(needed.at_midnight, sheet.midnight),
            self._add_proposed(sheet, instrument),
        )
        sheet.current |= found
        sheet.missing |= missing
        sheet.missing_at_midnight = needed.at_midnight - set(sheet.at_midnight)
        return sheet

    def judge(self, view: View, account: Account, proposal: Proposal, sheet: GatheredPrices) -> Verdict:
        """Returns the verdict. Raises `PricesMissing`, or why there is no price of an instrument that is not held."""
        valued = self.value(view, account, sheet)
        price, stale = valued.values.get(proposal.symbol), None
        if sheet.proposed is not None:
            price, stale = sheet.proposed.value, sheet.proposed.stale
        elif sheet.failure is not None:
            # A position may be reduced without a price; nothing is opened without one.
            if not valued.book.quantity(proposal.symbol) or price is None:
                raise sheet.failure
            stale = f"there is no price of {proposal.symbol}: {sheet.failure.message}"
        assert price is not None
        situation = Situation(
            valued.book,
            {**valued.values, proposal.symbol: price},
            valued.orders,
            valued.day_start,
            self.halted(view),
            stale or valued.unpriced_reason,
            self._fills_cut_to_position,
        )
        return risk.judge(proposal, situation, self.limits)

    def halted(self, view: View) -> Halt | None:
        """Returns why nothing may be opened; None if opening is allowed."""
        return self._halted(view)

    def value(self, view: View, account: Account, sheet: GatheredPrices) -> Valued:
        """Returns the account's book and orders with their prices. Raises `PricesMissing`."""
        book = self._books.book(view, account)
        start = self._books.day_start(view, account, sheet.midnight)
        orders = self._books.orders(view, account)
        symbols = _symbols(book, orders)
        if symbols - set(sheet.current) - set(sheet.missing):
            raise PricesMissing
        if set(start.held) - set(sheet.at_midnight) - sheet.missing_at_midnight:
            raise PricesMissing
        values = {symbol: price.value for symbol, price in sheet.current.items()}
        for symbol in symbols & set(sheet.missing):
            held = book.positions.get(symbol)
            order = next((each for each in orders if each.symbol == symbol), None)
            fallback = held.average_price if held else (order and (order.limit_price or order.stop_price)) or Decimal(0)
            values.setdefault(symbol, fallback)
        missing = {symbol: why for symbol, why in sheet.missing.items() if symbol in symbols}
        return Valued(
            book, sheet.current, values, orders, _worth(start, sheet), missing, account.cash, self.halted(view)
        )

    def _needed(self, view: View, account: Account, midnight: int) -> Needed:
        start = self._books.day_start(view, account, midnight)
        return Needed(_symbols(self._books.book(view, account), self._books.orders(view, account)), set(start.held))

    async def _add_proposed(self, sheet: GatheredPrices, instrument: Instrument | None) -> None:
        if instrument is None:
            return
        try:
            sheet.proposed = await self._prices.in_time(instrument)
            sheet.current[instrument.symbol] = sheet.proposed
        except (DataError, UnknownSymbol, StoreError) as failure:
            sheet.failure = failure
            sheet.missing[instrument.symbol] = f"there is no price of {instrument}: {failure.message}"

    async def _at_midnight(self, symbols: set[str], midnight: int) -> dict[str, Decimal]:
        try:
            return await self._prices.before_in_time(symbols, midnight)
        except (DataError, UnknownSymbol, StoreError):
            return {}


def _symbols(book: Book, orders: tuple[Order, ...]) -> set[str]:
    """Returns the symbols that are held or ordered."""
    return set(book.positions) | {order.symbol for order in orders}


def _worth(start: DayStart, sheet: GatheredPrices) -> Decimal | None:
    """Returns the equity when the day began; None if a symbol that was held then has no price of that time."""
    return start.equity(sheet.at_midnight) if set(start.held) <= set(sheet.at_midnight) else None


def limits_of(settings: Settings) -> RiskLimits:
    """Returns the limits that orders are judged by."""
    symbols = frozenset(parse(each).symbol for each in settings.risk_symbols.split(",") if each.strip())
    on_paper = (1 + settings.paper_fee) * (1 + settings.paper_slippage) - 1
    return RiskLimits(
        order_share=settings.risk_order_share,
        symbol_share=settings.risk_symbol_share,
        order_notional=settings.risk_order_notional,
        symbol_notional=settings.risk_symbol_notional,
        positions=settings.risk_positions,
        daily_loss=settings.risk_daily_loss,
        leverage=settings.risk_leverage,
        collar=settings.risk_collar,
        symbols=symbols,
        fee=on_paper if settings.broker == PAPER else RiskLimits().fee,
        short=settings.risk_short,
    )


def costs_of(settings: Settings) -> Costs:
    """Returns the costs of paper fills."""
    return Costs(fee=settings.paper_fee, slippage=settings.paper_slippage, volume_share=settings.paper_volume_share)


def reason_of(verdict: Verdict) -> str:
    """Returns why a verdict refuses, and the largest size that would pass; the same words for every tool."""
    if verdict.valid or not verdict.max_size:
        return verdict.reason
    limited = f" ({verdict.largest_by})" if verdict.largest_by else ""
    return f"{verdict.reason}; at most {amounts.text(verdict.max_size)} would pass{limited}"


def details_of(verdict: Verdict) -> dict[str, str]:
    """Returns the rule that refused; if it has a limit, also the value that the order would reach, and the setting."""
    found = verdict.objection
    parts = {
        "rule": verdict.rule,
        "value": found and found.value,
        "limit": found and found.limit,
        "setting": found and found.setting,
    }
    return {name: part for name, part in parts.items() if part}


def refusal(verdict: Verdict, order_id: str | None = None) -> RiskRefused:
    """Returns the error for a verdict that is not valid."""
    kind = InsufficientFunds if verdict.rule == "balance" else RiskRefused
    details: dict[str, Any] = {**details_of(verdict), "max_size": amounts.number(verdict.max_size)}
    if order_id is not None:
        details["order_id"] = order_id
    return kind(f"refused by the risk gate: {reason_of(verdict)}", **details)


def verdict_row(order: Order, verdict: Verdict, price: Price | None, consensus: int | None) -> dict[str, Any]:
    """Returns what the ledger keeps of a verdict: the bar that it rests on, and the decision.

    `consensus` is the entry of the consensus of strategies that was recorded last; a verdict without any does not name it.
    """
    known = {} if consensus is None else {"consensus": consensus}
    return {
        **known,
        "order_id": order.id,
        "account": order.account,
        "symbol": order.symbol,
        "side": order.side.value,
        "quantity": amounts.text(order.quantity),
        "price": amounts.text(price.value) if price else None,
        "bar": price.bar if price else None,
        "bar_end": price.end if price else None,
        "valid": verdict.valid,
        "rule": verdict.rule,
        "reason": verdict.reason,
        "max_size": amounts.text(verdict.max_size),
        "risk_score": amounts.text(verdict.risk_score),
        "opening": amounts.text(verdict.opening),
    }
