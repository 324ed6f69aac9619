"""The matcher: the orders of one account meet minute bars, one at a time, and fill from them.

Within one minute a stop comes before a target. Of its volume only a share can be had, the rest waits for later minutes;
forex has no volume, and its orders fill whole. Fees come on top of the price that `deals` finds. Stocks fill in regular
hours only, and an order meets no bar that opened before it was placed.

Paper trading and backtests fill orders with this and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from openbell.market.bars import Bars
from openbell.trading.amounts import ZERO
from openbell.trading.book import Book
from openbell.trading.brackets import end_exits
from openbell.trading.costs import Costs, available, in_steps, tradable
from openbell.trading.deals import Deal, Minute, deal, minute
from openbell.trading.evidence import bar_hash
from openbell.trading.fills import Fill, fill_of
from openbell.trading.orders import RESTING, Order, Role, State

Change = Order | Fill
_EXIT_REACHED = "its exit was reached"
_NOTHING_LEFT = "nothing is left to reduce"
_OTHER_EXIT = "the other exit closed the position"


@dataclass(slots=True)
class _Meeting:
    """One minute that the orders of its symbol meet."""

    bar: Minute
    may_open: bool
    left: Decimal
    """What can still be had of the volume."""
    met: Mapping[str, float]
    """Up to when each order has met bars. What this minute brings to life is not in it, and may fill at once."""


class Matcher:
    """An account on its way through bars: its book, its orders, and what has changed, in the order in which it happened."""

    def __init__(
        self, book: Book, orders: Iterable[Order], costs: Costs, met: Mapping[str, float] | None = None
    ) -> None:
        """`met` says of some orders up to when they have met every bar already, though none has changed them."""
        self.book = book
        self.orders = {order.id: order for order in sorted(orders, key=lambda o: (o.placed_at, o.id))}
        """Those that are not final."""
        self.costs = costs
        self.changes: list[Change] = []
        self._met = met or {}

    def resting(self, symbol: str | None = None) -> list[Order]:
        """The orders that a bar may fill."""
        return [each for each in self.orders.values() if each.state in RESTING and symbol in {None, each.symbol}]

    def meet(self, bars: Bars, index: int, *, may_open: bool = True) -> list[Change]:
        """Show one minute to the orders of its symbol; what it changed. Without `may_open` it only reduces positions."""
        before = len(self.changes)
        if 0 in tradable(bars.take(slice(index, index + 1))):
            bar, symbol = minute(bars, index), bars.instrument.symbol
            self.expire(bar.time, symbol)
            # Only a bar changes an order that rests, and at the bar's end.
            mine = [order for order in self.orders.values() if order.symbol == symbol]
            met = {order.id: max(order.updated_at, float(self._met.get(order.id, 0))) for order in mine}
            self._run(_Meeting(bar, may_open, available(bars.instrument, bar.volume, self.costs), met), symbol)
            self._drop_ended()
        return self.changes[before:]

    def expire(self, moment: float, symbol: str | None = None) -> None:
        """End the orders whose time is over by some moment, what was over first first."""
        over = [
            (order.expires_at, order.id)
            for order in self.resting(symbol)
            if order.expires_at is not None and order.expires_at <= moment
        ]
        for at, order_id in sorted(over, key=lambda each: each[0]):
            if not self.orders[order_id].final:
                self._end(self.orders[order_id], State.EXPIRED, "its day is over", at)
        self._drop_ended()

    def cancel(self, order: Order, reason: str, at: float) -> None:
        """End an order."""
        self._end(order, State.CANCELLED, reason, at)
        self._drop_ended()

    def _reducible(self, order: Order) -> Decimal:
        """How much of the position an order can close."""
        return max(ZERO, self.book.quantity(order.symbol) * -order.side.sign)

    def _change(self, order: Order) -> Order:
        self.orders[order.id] = order
        self.changes.append(order)
        return order

    def _drop_ended(self) -> None:
        self.orders = {order_id: order for order_id, order in self.orders.items() if not order.final}

    # One minute

    def _run(self, meeting: _Meeting, symbol: str) -> None:
        """First the exits that were there before, a stop before a target; then entries, and what they bring with them."""
        before = self._exits(symbol)
        for order_id in before:
            self._try(order_id, meeting)
        for order_id in [each for each in meeting.met if not self.orders[each].role.exit]:
            found = self._try(order_id, meeting)
            if found is None or self.orders[order_id].role is not Role.ENTRY:
                continue
            # Whether the price came to the target before or after the entry is not known, unless that was at the open.
            for exit_id in self._exits(symbol, order_id):
                if exit_id not in before and (found.at_open or self.orders[exit_id].role is Role.STOP_LOSS):
                    self._try(exit_id, meeting, found)

    def _try(self, order_id: str, meeting: _Meeting, entered: Deal | None = None) -> Deal | None:
        """Fill what the minute fills of an order, once; `entered` is how its entry has filled in the same one."""
        order, bar = self.orders[order_id], meeting.bar
        # Cancelling is no shelter: until the end is confirmed an order may trade, but on paper the end is at once.
        if order.state not in RESTING or order.state is State.CANCELLING:
            return None
        if bar.time < max(order.placed_at, meeting.met.get(order_id, 0.0)):
            return None
        found, triggered = deal(order, bar, self.costs, entered)
        if triggered:
            order = self._change(order.to(order.state, bar.end, triggered=True))
        if found is None:
            return None
        # All that reduces may be traded, and what it may open unless that is halted.
        allowed = self._reducible(order) + (order.remaining_opening if meeting.may_open else ZERO)
        if not allowed:
            if not order.remaining_opening:
                self._nothing_left(order, bar.end)
            return None
        quantity = min(order.remaining, allowed, in_steps(meeting.left, order, bar.bars.instrument))
        if quantity <= 0:
            return None
        meeting.left -= quantity
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
            # Somebody has closed the position by hand: what was to close it is over.
            if not self._reducible(self.orders[exit_id]) and not self.orders[exit_id].final:
                self._nothing_left(self.orders[exit_id], at)

    # Brackets

    def _exits(self, symbol: str, parent: str | None = None) -> list[str]:
        """The exits that rest, stops before targets."""
        found = [each for each in self.resting(symbol) if each.role.exit and parent in {None, each.parent}]
        return [each.id for each in sorted(found, key=lambda each: each.role is not Role.STOP_LOSS)]

    def _others(self, order: Order) -> list[Order]:
        """The exits of an order's bracket that have not ended, but for itself. Its entry may have, and not be here."""
        entry_id = order.parent or order.id
        return [
            each for each in self.orders.values() if each.parent == entry_id and each.id != order.id and not each.final
        ]

    def _entered(self, entry: Order, opened: Decimal, at: float) -> None:
        """The exits grow by what their entry has opened."""
        for each in self._others(entry) if opened else ():
            held = each.state is State.HELD
            state, before = (State.OPEN, ZERO) if held else (each.state, each.quantity)
            self._change(each.to(state, at, quantity=before + opened))
        self._end_exits(entry, at)

    def _exited(self, order: Order, at: float) -> None:
        """What one exit has closed the other need not; when nothing is left the bracket is over."""
        if not order.remaining:
            self._close_bracket(order, _OTHER_EXIT, at)
            return
        for each in self._others(order):
            self._change(each.to(each.state, at, quantity=each.filled + order.remaining))

    def _close_bracket(self, order: Order, reason: str, at: float) -> None:
        entry = self.orders.get(order.parent or "")
        if entry is not None and not entry.final:
            self._change(entry.to(State.CANCELLED, at, _EXIT_REACHED))
        for each in self._others(order):
            self._change(each.to(State.CANCELLED, at, reason))

    # Ends

    def _nothing_left(self, order: Order, at: float) -> None:
        """End what can only reduce when there is nothing to reduce; of a bracket, all of it."""
        self._end(order, State.CANCELLED, _NOTHING_LEFT, at)
        if order.role.exit:
            self._close_bracket(order, _NOTHING_LEFT, at)

    def _end(self, order: Order, state: State, reason: str, at: float) -> None:
        self._end_exits(self._change(order.to(state, at, reason)), at)

    def _end_exits(self, entry: Order, at: float) -> None:
        for change in end_exits(entry, self.orders.values(), at):
            self._change(change)
