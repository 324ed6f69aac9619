"""Positions and balance of an account, and the validation of a trade without placing it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

from openbell.desk.orders.accounts import AccountService
from openbell.desk.orders.gate import TRIES, Gate, GatheredPrices, PricesMissing, Valued
from openbell.desk.orders.prices import Price
from openbell.market.digits import average
from openbell.market.errors import DataError, StoreError
from openbell.market.instruments import Instrument
from openbell.stores.records import orders as queries
from openbell.stores.records.orders import opening_times
from openbell.stores.records.records import Records
from openbell.stores.records.snapshot import View
from openbell.trading import amounts
from openbell.trading.accounts import Account
from openbell.trading.amounts import ONE, ZERO
from openbell.trading.book import Position, margin
from openbell.trading.fills import FillTime
from openbell.trading.halt import Halt
from openbell.trading.orders import EXPOSED, Order, Side
from openbell.trading.request import refuse_foreign_money, too_small
from openbell.trading.risk import Proposal, Verdict, lost_too_much, price_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ValuedHolding:
    """A position and its price."""

    position: Position
    opened: FillTime
    """When the position was opened."""
    price: Price | None
    """None if there is no price; `note` has the reason."""
    note: str | None
    """Why the price is missing or may not be current."""
    weight: Decimal | None
    """The share of the equity that the position is worth, without sign; None if the equity is not known."""
    exits: tuple[Order, ...]
    """The working orders that would reduce it."""

    @property
    def value(self) -> Decimal | None:
        """What the position is worth, negative if it is short; None if there is no price."""
        return None if self.price is None else self.position.quantity * self.price.value

    @property
    def return_pct(self) -> Decimal | None:
        """The profit in per cent of what was paid; None if there is no price."""
        paid = abs(self.position.quantity) * self.position.average_price
        profit = self.unrealised
        return None if profit is None or not paid else amounts.share(profit * 100, paid)

    @property
    def unrealised(self) -> Decimal | None:
        """The profit at that price; None if there is no price."""
        return None if self.price is None else self.position.unrealised(self.price.value)

    @property
    def size(self) -> Decimal:
        """The quantity without sign."""
        return abs(self.position.quantity)

    @property
    def entry_price(self) -> Decimal:
        """The average price as results show it."""
        return average(self.position.average_price)


@dataclass(frozen=True, slots=True)
class Balance:
    """The balance of an account. `total` is the equity, cash plus the value of positions; None if it is not known."""

    total: Decimal | None
    available: Decimal
    """The margin available for new positions, before fees; 0 while a position has no price."""
    margin_used: Decimal | None
    unrealised: Decimal | None
    cash: Decimal
    realised: Decimal
    fees: Decimal
    day_start: Decimal | None
    """The equity when the UTC day began; None if it is not known."""
    positions: int
    """The number of open positions."""
    working_orders: int
    started_with: Decimal
    """The cash that the account began with."""
    daily_loss_limit: Decimal
    """The share of the equity of the day's start; after such a loss nothing is opened. 0 if there is no limit."""
    halted: Halt | None
    """Why trading is halted; None if it is not."""
    note: str | None
    """Why some value is not known or may not be current."""
    end: int | None
    """The end of the bar of the oldest price."""

    @property
    def day_profit(self) -> Decimal | None:
        """The change of the equity since the UTC day began; None if it is not known."""
        return None if self.total is None or self.day_start is None else self.total - self.day_start

    @property
    def day_return_pct(self) -> Decimal | None:
        """The same in per cent of the equity when the day began."""
        profit = self.day_profit
        return amounts.share(profit * 100, self.day_start) if profit is not None and self.day_start else None

    @property
    def total_return_pct(self) -> Decimal | None:
        """The change of the equity since the account began, in per cent; None if it is not known."""
        if self.total is None or not self.started_with:
            return None
        return amounts.share((self.total - self.started_with) * 100, self.started_with)

    @property
    def loss_left(self) -> Decimal | None:
        """What may still be lost today before nothing is opened; None if there is no limit or it is not known."""
        if not self.daily_loss_limit or self.day_start is None or self.day_profit is None:
            return None
        return max(ZERO, self.daily_loss_limit * self.day_start + self.day_profit)


@dataclass(frozen=True, slots=True)
class TradeCheck:
    """The verdict on an order, and what it would cost."""

    verdict: Verdict
    price: Decimal | None
    """The limit, or the last price; None if there is none."""
    size: Decimal
    position_after: Decimal | None
    """The position if all of it fills; None if it is not known."""
    equity: Decimal | None
    """None if it is not known."""
    cost_share: Decimal
    """The share of the value that is reserved for fees and slippage."""

    @property
    def value(self) -> Decimal | None:
        """Size times price."""
        return None if self.price is None else self.size * self.price

    @property
    def costs(self) -> Decimal | None:
        """The fees and the slippage that the value would pay."""
        return None if self.value is None else self.value * self.cost_share

    @property
    def equity_pct(self) -> Decimal | None:
        """The value in per cent of the equity."""
        if self.value is None or not self.equity or self.equity < 0:
            return None
        return amounts.share(self.value * 100, self.equity)


class PortfolioService:
    """Positions, balance and validation of one account."""

    def __init__(
        self, records: Records, accounts: AccountService, gate: Gate, settle: Callable[[str], Awaitable[None]]
    ) -> None:
        """`settle` applies the bars that have closed to an account before it is read."""
        self._records = records
        self._accounts = accounts
        self._gate = gate
        self._settle = settle

    async def holdings(self, principal: str) -> list[ValuedHolding]:
        """Returns the open positions, the last opened first."""
        account = await self._accounts.admit(principal)

        def work(view: View, sheet: GatheredPrices) -> tuple[Valued, dict[str, FillTime]]:
            valued = self._gate.value(view, self._accounts.open(view, principal), sheet)
            return valued, opening_times(view, account.name, valued.book.positions.values())

        valued, opened = await self._read(account, None, work)
        found = sorted(valued.book.positions.values(), key=lambda each: (-each.opened_at, each.symbol))
        return [_holding(position, opened[position.symbol], valued) for position in found]

    async def balance(self, principal: str) -> Balance:
        """Returns the current balance."""
        return self._balance(await self._valued(principal))

    async def balance_of(self, account: Account) -> Balance:
        """Returns the current balance of any account, for the operator of this desk."""
        return self._balance(
            await self._read(account, None, lambda view, sheet: self._gate.value(view, account, sheet))
        )

    def _balance(self, valued: Valued) -> Balance:
        book, values, leverage = valued.book, valued.values, self._gate.limits.leverage
        unpriced = any(symbol in valued.missing for symbol in book.positions)
        with amounts.exact():
            equity = book.equity(values)
            used = _margin(book.exposure(values), leverage)
            waiting = sum(
                (
                    order.remaining_opening * price_of(order, values[order.symbol])
                    for order in valued.orders
                    if order.state in EXPOSED and not order.role.exit
                ),
                ZERO,
            )
            # Fees of working orders are reserved, as the risk gate reserves them.
            reserved = _margin(waiting * (ONE + self._gate.limits.fee * leverage), leverage)
            available = ZERO if valued.unpriced_reason else max(ZERO, equity - used - reserved)
        ends = [valued.prices[symbol].end for symbol in book.positions if symbol in valued.prices]
        return Balance(
            None if unpriced else equity,
            available,
            None if unpriced else used,
            None if unpriced else book.unrealised(values),
            book.cash,
            book.realised,
            book.fees,
            valued.day_start,
            len(book.positions),
            len([order for order in valued.orders if not order.final]),
            valued.started_with,
            self._gate.limits.daily_loss,
            valued.halted,
            valued.unpriced_reason,
            min(ends, default=None),
        )

    async def lost_too_much(self, account: str) -> str | None:
        """Returns why nothing may be opened on an account today; None if opening is allowed."""
        found = await self._records.read(queries.account, account)
        if found is None:
            return None
        valued = await self._read(found, None, lambda view, sheet: self._gate.value(view, found, sheet))
        if any(symbol in valued.missing for symbol in valued.book.positions):
            return None  # the loss is not known; the gate accepts no opening order meanwhile
        return lost_too_much(valued.day_start, valued.book.equity(valued.values), self._gate.limits)

    async def validate(
        self, principal: str, instrument: Instrument, side: Side, size: Decimal, price: Decimal | None
    ) -> TradeCheck:
        """Returns the verdict on an order without placing it, and what it would cost."""
        refuse_foreign_money(instrument)
        account = await self._accounts.admit(principal)
        proposal = Proposal(instrument.symbol, side, size, price)

        def judged(view: View, sheet: GatheredPrices) -> TradeCheck:
            opened = self._accounts.open(view, principal)
            verdict = self._gate.judge(view, opened, proposal, sheet)
            if sheet.proposed and (objection := too_small(instrument, sheet.proposed.value)):
                verdict = Verdict(False, "least_price", objection, ZERO, ONE, size)
            valued = self._gate.value(view, opened, sheet)
            equity = None if valued.unpriced_reason else valued.book.equity(valued.values)
            held = valued.book.quantity(proposal.symbol)
            used = price if price is not None else sheet.proposed and sheet.proposed.value
            return TradeCheck(verdict, used or None, size, held + size * side.sign, equity, self._gate.limits.fee)

        try:
            return await self._read(account, instrument, judged)
        except DataError as error:
            verdict = Verdict(False, "no_price", error.message, ZERO, ONE, size)
            return TradeCheck(verdict, price, size, None, None, self._gate.limits.fee)

    async def _valued(self, principal: str) -> Valued:
        account = await self._accounts.admit(principal)
        return await self._read(
            account, None, lambda view, sheet: self._gate.value(view, self._accounts.open(view, principal), sheet)
        )

    async def _read(
        self, account: Account, instrument: Instrument | None, work: Callable[[View, GatheredPrices], T]
    ) -> T:
        """Bring an account up to date and gather its prices; returns the result of `work` with them."""
        await self._settle(account.name)
        for _ in range(TRIES):
            sheet = await self._gate.gather(account, instrument)
            with suppress(PricesMissing):
                return await self._records.read(work, sheet)
        raise StoreError(f"the account {account.name} changes too fast to be valued; try again")


def _margin(exposure: Decimal, leverage: Decimal) -> Decimal:
    """Returns the margin as results show it: it is a quotient."""
    return exposure if leverage == ONE else average(margin(exposure, leverage))


def _holding(position: Position, opened: FillTime, valued: Valued) -> ValuedHolding:
    price = valued.prices.get(position.symbol)
    equity = None if valued.unpriced_reason else valued.book.equity(valued.values)
    worth = None if price is None else abs(position.quantity) * price.value
    exits = tuple(
        order
        for order in valued.orders
        if order.symbol == position.symbol and order.side.sign * position.quantity < 0 and not order.final
    )
    return ValuedHolding(
        position,
        opened,
        price,
        valued.missing.get(position.symbol) or (price.in_doubt if price else None),
        None if worth is None or not equity or equity < 0 else amounts.share(worth, equity),
        exits,
    )
