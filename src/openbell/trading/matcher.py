"""The matcher: fills the orders of one account from minute bars, one bar at a time.

Within one minute, stops fill before targets. Orders share a part of the minute's volume, and what remains of them waits for
later minutes; forex has no volume, and its orders fill whole. Fees are added to the price. Stocks fill in regular hours
only. An order never fills from a bar that opened before it was placed.

The price at which one bar fills one order is never better than a real order would have got. Market orders fill at the open.
A limit order fills only if the price trades through its limit; after a gap it fills at the open. Slippage makes the price
of market and stop orders a little higher if buying, and a little lower if selling.

Paper trading fills orders only with this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from openbell.market.bars import MINUTE, Bars
from openbell.trading import amounts
from openbell.trading.amounts import ZERO
from openbell.trading.book import Book
from openbell.trading.costs import Costs, available, in_steps, tradable
from openbell.trading.evidence import bar_hash
from openbell.trading.fills import Fill, fill_of
from openbell.trading.orders import RESTING, Order, OrderKind, OrderState, Role, Side, end_exits

Change = Order | Fill
_EXIT_REACHED = "its exit was reached"
_NOTHING_LEFT = "nothing is left to reduce"
_OTHER_EXIT = "the other exit closed the position"


@dataclass(slots=True)
class _CurrentBar:
    """The bar that is being matched with the orders of its symbol."""

    bar: Minute
    may_open: bool
    left: Decimal
    """The volume that orders can still get in this minute."""
    matched_until: Mapping[str, float]
    """By order id, the time before which bars were already matched. Exits that this bar activates are not in it."""


class Matcher:
    """Applies bars to an account: its book, its orders, and the list of changes in the order in which they happened."""

    def __init__(
        self, book: Book, orders: Iterable[Order], costs: Costs, matched_until: Mapping[str, float] | None = None
    ) -> None:
        """`matched_until`: by order id, the time before which bars were already matched, if later than `updated_at`."""
        self.book = book
        self.orders = {order.id: order for order in sorted(orders, key=lambda o: (o.placed_at, o.id))}
        """All orders that are not final, by id."""
        self.costs = costs
        self.changes: list[Change] = []
        self._matched_until = matched_until or {}

    def resting(self, symbol: str | None = None) -> list[Order]:
        """Returns the orders that a bar may fill."""
        return [each for each in self.orders.values() if each.state in RESTING and symbol in {None, each.symbol}]

    def match(self, bars: Bars, index: int, *, may_open: bool = True) -> list[Change]:
        """Match one bar with the orders of its symbol; returns the changes. Without `may_open`, orders only reduce."""
        before = len(self.changes)
        if 0 in tradable(bars.take(slice(index, index + 1))):
            bar, symbol = minute(bars, index), bars.instrument.symbol
            self.expire(bar.time, symbol)
            # Only bars change resting orders, so that bars that end by `updated_at` were matched already.
            matched_until = {
                order.id: max(order.updated_at, float(self._matched_until.get(order.id, 0)))
                for order in self.orders.values()
                if order.symbol == symbol
            }
            volume = available(bars.instrument, bar.volume, self.costs)
            self._match_all(_CurrentBar(bar, may_open, volume, matched_until), symbol)
            self._drop_ended()
        return self.changes[before:]

    def expire(self, moment: float, symbol: str | None = None) -> None:
        """Expire the orders whose time in force is over at `moment`, in the order of their expiry."""
        expired = [
            (order.expires_at, order.id)
            for order in self.resting(symbol)
            if order.expires_at is not None and order.expires_at <= moment
        ]
        for at, order_id in sorted(expired, key=lambda each: each[0]):
            if not self.orders[order_id].final:
                self._end(self.orders[order_id], OrderState.EXPIRED, "its day is over", at)
        self._drop_ended()

    def cancel(self, order: Order, reason: str, at: float) -> None:
        """Cancel an order."""
        self._end(order, OrderState.CANCELLED, reason, at)
        self._drop_ended()

    def _reducible(self, order: Order) -> Decimal:
        """Returns how much of the position an order can close."""
        return max(ZERO, self.book.quantity(order.symbol) * -order.side.sign)

    def _change(self, order: Order) -> Order:
        self.orders[order.id] = order
        self.changes.append(order)
        return order

    def _drop_ended(self) -> None:
        self.orders = {order_id: order for order_id, order in self.orders.items() if not order.final}

    # One minute

    def _match_all(self, current: _CurrentBar, symbol: str) -> None:
        """Match resting exits first, stops before targets; then other orders, each entry followed by its own exits."""
        before = self._exits(symbol)
        for order_id in before:
            self._try(order_id, current)
        for order_id in [each for each in current.matched_until if not self.orders[each].role.exit]:
            found = self._try(order_id, current)
            if found is None or self.orders[order_id].role is not Role.ENTRY:
                continue
            # Unless the entry filled at the open, the bar may have reached the target before the entry.
            for exit_id in self._exits(symbol, order_id):
                if exit_id not in before and (found.at_open or self.orders[exit_id].role is Role.STOP_LOSS):
                    self._try(exit_id, current, found)

    def _try(self, order_id: str, current: _CurrentBar, entered: Deal | None = None) -> Deal | None:
        """Fill an order from the bar, at most once; returns the price. `entered`: the fill of its entry in this bar."""
        order, bar = self.orders[order_id], current.bar
        # A broker may fill an order while it is being cancelled; on paper a cancellation takes effect at once.
        if order.state not in RESTING or order.state is OrderState.CANCELLING:
            return None
        if bar.time < max(order.placed_at, current.matched_until.get(order_id, 0.0)):
            return None
        found, triggered = deal(order, bar, self.costs, entered)
        if triggered:
            order = self._change(order.to(order.state, bar.end, triggered=True))
        if found is None:
            return None
        # The reducing part may always trade, the opening part only if `may_open`.
        allowed = self._reducible(order) + (order.remaining_opening if current.may_open else ZERO)
        if not allowed:
            if not order.remaining_opening:
                self._nothing_left(order, bar.end)
            return None
        quantity = min(order.remaining, allowed, in_steps(current.left, order, bar.bars.instrument))
        if quantity <= 0:
            return None
        current.left -= quantity
        self._fill(order, quantity, found.price, bar)
        return found

    def _fill(self, order: Order, quantity: Decimal, price: Decimal, bar: Minute) -> None:
        fee, at = self.costs.fee_of(quantity, price), bar.end
        opened = max(ZERO, quantity - self._reducible(order))
        evidence = bar_hash(bar.bars, bar.index)
        fill = fill_of(order, f"{order.id}-{bar.time}", quantity, price, at, fee=fee, bar=bar.time, bar_hash=evidence)
        self.book = self.book.after(fill)
        self.changes.append(fill)
        order = self._change(replace(order.with_fill(quantity, price, fee, at), opening=order.opening - opened))
        if order.role is Role.ENTRY:
            self._entered(order, opened, at)
        elif order.role.exit:
            self._exited(order, at)
        if not self._reducible(order) and not order.final and not order.remaining_opening:
            self._nothing_left(order, at)
        for exit_id in self._exits(order.symbol):
            # The position was closed by another order: the exits have nothing left to close.
            if not self._reducible(self.orders[exit_id]) and not self.orders[exit_id].final:
                self._nothing_left(self.orders[exit_id], at)

    # Brackets

    def _exits(self, symbol: str, parent: str | None = None) -> list[str]:
        """Returns the ids of the resting exits of a symbol or of one entry, stops before targets."""
        found = [each for each in self.resting(symbol) if each.role.exit and parent in {None, each.parent}]
        return [each.id for each in sorted(found, key=lambda each: each.role is not Role.STOP_LOSS)]

    def _others(self, order: Order) -> list[Order]:
        """Returns the other working exits of an order's bracket. The entry itself may have ended already."""
        entry_id = order.parent or order.id
        return [
            each for each in self.orders.values() if each.parent == entry_id and each.id != order.id and not each.final
        ]

    def _entered(self, entry: Order, opened: Decimal, at: float) -> None:
        """Increase the exits by the quantity that their entry has opened."""
        for each in self._others(entry) if opened else ():
            held = each.state is OrderState.HELD
            state, before = (OrderState.OPEN, ZERO) if held else (each.state, each.quantity)
            self._change(each.to(state, at, quantity=before + opened))
        self._end_exits(entry, at)

    def _exited(self, order: Order, at: float) -> None:
        """Reduce the other exit by the quantity that this one has closed; cancel it if nothing is left."""
        if not order.remaining:
            self._close_bracket(order, _OTHER_EXIT, at)
            return
        for each in self._others(order):
            self._change(each.to(each.state, at, quantity=each.filled + order.remaining))

    def _close_bracket(self, order: Order, reason: str, at: float) -> None:
        """Cancel the entry and the other exit of an exit's bracket."""
        entry = self.orders.get(order.parent or "")
        if entry is not None and not entry.final:
            self._change(entry.to(OrderState.CANCELLED, at, _EXIT_REACHED))
        for each in self._others(order):
            self._change(each.to(OrderState.CANCELLED, at, reason))

    # Ending orders

    def _nothing_left(self, order: Order, at: float) -> None:
        """Cancel an order that can only reduce but has nothing to reduce; of a bracket, cancel all of it."""
        self._end(order, OrderState.CANCELLED, _NOTHING_LEFT, at)
        if order.role.exit:
            self._close_bracket(order, _NOTHING_LEFT, at)

    def _end(self, order: Order, state: OrderState, reason: str, at: float) -> None:
        self._end_exits(self._change(order.to(state, at, reason)), at)

    def _end_exits(self, entry: Order, at: float) -> None:
        for change in end_exits(entry, self.orders.values(), at):
            self._change(change)


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
    if order.kind is OrderKind.MARKET or (order.kind is OrderKind.STOP and order.triggered):
        return Deal(costs.taken(amounts.of_bar(bar.open), buying=buying), at_open=True), False
    if order.kind is OrderKind.LIMIT or order.triggered:
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
    if order.kind is OrderKind.STOP:
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
