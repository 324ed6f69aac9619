"""The price at which one bar fills one order. It is never better than a real order would have got.

Market orders fill at the open. A limit order fills only if the price trades through its limit; after a gap it fills at the
open. Slippage makes the price of market and stop orders a little higher if buying, and a little lower if selling.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from openbell.market.bars import MINUTE, Bars
from openbell.trading import amounts
from openbell.trading.amounts import ZERO
from openbell.trading.costs import Costs
from openbell.trading.orders import Kind, Order, Side


@dataclass(frozen=True, slots=True)
class Minute:
    """One bar of one instrument."""

    bars: Bars
    index: int
    time: int
    open: float
    high: float
    low: float
    volume: float

    @property
    def end(self) -> float:
        """The time at which the bar closes."""
        return float(self.time + MINUTE)


def minute(bars: Bars, index: int) -> Minute:
    """Returns one bar as plain numbers."""
    time, o, h, low, _, volume = (column[index].item() for column in bars.columns())
    return Minute(bars, index, time, o, h, low, volume)


@dataclass(frozen=True, slots=True)
class Deal:
    """The price at which an order fills, and whether it fills at the open of the bar."""

    price: Decimal
    at_open: bool


def deal(order: Order, bar: Minute, costs: Costs, entered: Deal | None = None) -> tuple[Deal | None, bool]:
    """Returns the price at which a bar fills an order (None if it does not), and whether the bar triggers its stop.

    `entered` is the price at which the same bar filled the entry of the order's bracket.
    """
    buying = order.side is Side.BUY
    if order.kind is Kind.MARKET or (order.kind is Kind.STOP and order.triggered):
        return Deal(costs.taken(amounts.of_bar(bar.open), buying=buying), at_open=True), False
    if order.kind is Kind.LIMIT or order.triggered:
        return _limit(order.limit_price, bar, buying), False
    return _stop(order, bar, costs, entered)


def _stop(order: Order, bar: Minute, costs: Costs, entered: Deal | None) -> tuple[Deal | None, bool]:
    buying = order.side is Side.BUY
    stop = order.stop_price or ZERO
    level = float(stop)
    if not (bar.high >= level if buying else bar.low <= level):
        return None, False
    at_open = bar.open >= level if buying else bar.open <= level
    if entered and not entered.at_open:
        # The entry filled after the open: the exit cannot fill at the open, nor at a better price than the entry.
        at_open, stop = False, max(stop, entered.price) if buying else min(stop, entered.price)
    reached = amounts.of_bar(bar.open) if at_open else stop
    if order.kind is Kind.STOP:
        return Deal(costs.taken(reached, buying=buying), at_open), True
    if at_open:
        return _limit(order.limit_price, bar, buying), True
    limit = order.limit_price or ZERO
    if not (limit > stop if buying else limit < stop):
        return None, True  # it rests from the next bar on: the order of prices within this bar is not known
    taken = costs.taken(stop, buying=buying)
    return Deal(min(taken, limit) if buying else max(taken, limit), at_open=False), True


def _limit(limit: Decimal | None, bar: Minute, buying: bool) -> Deal | None:
    """Returns the open if it is better than the limit, else the limit if the bar trades through it, else None."""
    wanted = limit or ZERO
    level = float(wanted)
    if bar.open < level if buying else bar.open > level:
        return Deal(amounts.of_bar(bar.open), at_open=True)
    if bar.low < level if buying else bar.high > level:
        return Deal(wanted, at_open=False)
    return None
