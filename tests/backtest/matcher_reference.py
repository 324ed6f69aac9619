"""The same runs through the matcher that fills paper orders, bar by bar with exact decimals: the reference of the engine.

An entry is a market order with its exits as a bracket: stop orders for the stop loss and the trailing stop, a limit order
for the target. The matcher has no trailing orders, so the price of that stop order is changed at each close, as a trader
would do it. A signal cancels the exits and sends a market order.

Stops are distances from the entry price, which is the next open: an order needs its price before it fills, so the reference
reads the next open when it places the bracket. Levels are the floats of the engine, because the matcher compares floats too.

The bars must be of an instrument that trades at all their times, with a volume above all orders: otherwise the matcher fills
in parts, which the engine does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from math import isnan

from openbell.backtest.rules import Factors, Reason, Setup, factors
from openbell.backtest.trades import Trade
from openbell.market.bars import Bars
from openbell.strategies.evaluation import Conditions
from openbell.strategies.spec import ConditionType, PositionSide
from openbell.trading import amounts
from openbell.trading.amounts import ONE, ZERO
from openbell.trading.book import Book
from openbell.trading.costs import Costs
from openbell.trading.fills import Fill
from openbell.trading.matcher import Matcher
from openbell.trading.orders import Force, Order, OrderKind, OrderState, Role, exits_of
from openbell.trading.orders import Side as OrderSide

_REASONS = {"sl": Reason.STOP_LOSS, "ts": Reason.TRAILING_STOP, "tp": Reason.TARGET, "exit": Reason.SIGNAL}
"""By the end of the order's id."""


def reference_trades(
    bars: Bars, conditions: Conditions, side: PositionSide, stops: Mapping[ConditionType, float], setup: Setup
) -> list[Trade]:
    """Returns the trades of a run, as `simulate` does."""
    account = _Account(bars, side, setup, factors(side, stops, setup))
    for index in range(len(bars)):
        account.match(index)
        if index < len(bars) - 1:
            account.decide(index, entry=bool(conditions.entry[index]), leave=bool(conditions.exit[index]))
    return account.ended()


@dataclass
class _Account:
    """One account, its matcher, and the trades that it has closed."""

    bars: Bars
    side: PositionSide
    setup: Setup
    factors: Factors
    best: float = 0.0
    """The best price since the entry."""
    entry: tuple[int, Fill] | None = None
    """The bar and the fill of the position's entry."""
    trades: list[Trade] = field(default_factory=list)

    def __post_init__(self) -> None:
        fee, slippage = amounts.of_bar(self.setup.fee), amounts.of_bar(self.setup.slippage)
        costs = Costs(fee=fee, slippage=slippage, volume_share=ONE)
        self.matcher = Matcher(Book(amounts.of_bar(self.setup.cash)), (), costs)
        self.opening = OrderSide.BUY if self.side is PositionSide.LONG else OrderSide.SELL

    def match(self, index: int) -> None:
        """Fill orders from a bar."""
        for change in self.matcher.match(self.bars, index):
            if isinstance(change, Fill) and change.side is self.opening:
                self.entry, self.best = (index, change), float(self.bars.open[index]) * self.factors.enter
            elif isinstance(change, Fill):
                reason = _REASONS[change.order_id.rpartition("-")[2]]
                self._close(index, change.price, change.fee, reason)
        better, price = (max, self.bars.high) if self.side is PositionSide.LONG else (min, self.bars.low)
        self.best = better(self.best, float(price[index]))

    def decide(self, index: int, *, entry: bool, leave: bool) -> None:
        """Place, change and cancel orders at the close of a bar."""
        if self.entry is None:
            if entry and self.matcher.book.cash > 0:
                self._enter(index)
            return
        trailing = [each for each in self.matcher.resting() if each.id.endswith("-ts")]
        for order in trailing:
            self.matcher.orders[order.id] = replace(order, stop_price=_exact(self.best * self.factors.trail))
        if leave:
            at = self._next(index)
            for order in self.matcher.resting():
                self.matcher.cancel(order, "the strategy leaves", at)
            quantity = abs(self.matcher.book.quantity(self.bars.instrument.symbol))
            self._place(self._order(f"{index}-exit", at, self.opening.other, quantity, opening=ZERO))

    def ended(self) -> list[Trade]:
        """Returns all trades, with the position that is still open valued at the last close."""
        if self.entry is not None:
            self._close(len(self.bars) - 1, amounts.of_bar(self.bars.close[-1]), ZERO, Reason.END)
        return self.trades

    def _next(self, index: int) -> float:
        return float(self.bars.time[index + 1])

    def _enter(self, index: int) -> None:
        opened = float(self.bars.open[index + 1])
        price = self.matcher.costs.taken(amounts.of_bar(opened), buying=self.opening is OrderSide.BUY)
        with amounts.exact():
            quantity = amounts.down(self.matcher.book.cash / (price * (ONE + self.matcher.costs.fee)))
        entered, by = opened * self.factors.enter, self.factors
        loss, trail, target = (
            None if isnan(each) else _exact(entered * each) for each in (by.loss, by.trail, by.target)
        )
        order = self._order(f"{index}", self._next(index), self.opening, quantity, opening=quantity)
        order = replace(order, role=Role.ENTRY, stop_loss=loss, take_profit=target)
        self._place(order)
        exits = exits_of(order)
        if trail is not None:
            # After the stop loss: the matcher tries stop orders in the order in which they were placed.
            (pattern,) = exits_of(replace(order, stop_loss=trail, take_profit=None))
            exits.append(replace(pattern, id=f"{order.id}-ts"))
        for each in exits:
            self._place(each)

    def _order(self, name: str, at: float, side: OrderSide, quantity: Decimal, opening: Decimal) -> Order:
        symbol = self.bars.instrument.symbol
        kind, state = OrderKind.MARKET, OrderState.OPEN
        return Order(name, "backtest", "backtest", symbol, side, kind, quantity, opening, Force.GTC, at, state=state)

    def _place(self, order: Order) -> None:
        self.matcher.orders[order.id] = order

    def _close(self, index: int, price: Decimal, fee: Decimal, reason: Reason) -> None:
        assert self.entry is not None
        entered, fill = self.entry
        with amounts.exact():
            profit = fill.signed * (price - fill.price) - fill.fee - fee
        prices = (float(fill.price), float(price), float(fill.quantity))
        fees = (float(fill.fee), float(fee), float(profit))
        self.trades.append(Trade(entered, index, *prices, self.side, *fees, reason))
        self.entry = None


def _exact(price: float) -> Decimal:
    return amounts.of_bar(price)
