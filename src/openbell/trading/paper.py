"""The paper broker's fills, honest ones: what a real order would have got, or a little less.

Market orders fill at the next bar's open. A limit fills only when the price trades through it, a gap fills at the open, and
within one bar a stop comes before a target. Of a bar's volume only a share can be had, the rest waits for later bars.
Buying costs a little more than the price and selling brings a little less (slippage); fees come on top. Stocks fill in
regular hours only. An order sees no bar that opened before it was placed.

`match` is a pure function of the orders of one account and symbol, the position and the bars since they were last looked
at; its changes are in the order in which they happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from openbell.market.bars import MINUTE, Bars
from openbell.market.instruments import AssetClass
from openbell.market.session_table import table_for
from openbell.trading import amounts
from openbell.trading.amounts import CENT, ONE, ZERO
from openbell.trading.evidence import bar_hash
from openbell.trading.fills import Fill, fill_of
from openbell.trading.orders import FINAL, RESTING, Force, Kind, Order, Role, Side, State

Change = Order | Fill
_EXIT_REACHED = "its exit was reached"
_NOTHING_LEFT = "nothing is left to reduce"
_ENTRY_ENDED = "its entry ended unfilled"
_OTHER_EXIT = "the other exit closed the position"


@dataclass(frozen=True, slots=True)
class Costs:
    """What trading on paper costs."""

    fee: Decimal = Decimal("0.001")
    """Of what is traded."""
    slippage: Decimal = Decimal("0.0005")
    """Of the price, against whoever takes it."""
    volume_share: Decimal = Decimal("0.1")
    """Of a bar's volume that can be had."""


@dataclass(frozen=True, slots=True)
class _Bar:
    index: int
    time: int
    open: float
    high: float
    low: float


@dataclass(frozen=True, slots=True)
class _Deal:
    price: Decimal
    at_open: bool


def match(
    orders: Sequence[Order], bars: Bars, position: Decimal, until: float, costs: Costs, *, halted: bool = False
) -> list[Change]:
    """What becomes of resting orders of one symbol in some minute bars, and of those whose time is over by `until`."""
    matching = _Matching(orders, position, costs, halted)
    share = float(costs.volume_share)
    for index in _tradable(bars):
        if not matching.any_left:
            break
        time, o, h, low, _, volume = (column[index].item() for column in bars.columns())
        matching.begin(bars, time, amounts.down(amounts.of_bar(volume * share)))
        matching.bar(_Bar(index, time, o, h, low))
    matching.expire(until, until)
    return matching.changes


def _tradable(bars: Bars) -> Iterable[int]:
    """The bars in which orders can fill: of stocks, those of regular hours."""
    if bars.instrument.asset_class is not AssetClass.STOCK or not len(bars):
        return range(len(bars))
    table = table_for(int(bars.time[0]) - 86400, int(bars.time[-1]) + 86400)
    inside: list[int] = (table.regular(bars.time) >= 0).nonzero()[0].tolist()
    return inside


class _Matching:
    """The orders on their way through the bars."""

    def __init__(self, orders: Sequence[Order], position: Decimal, costs: Costs, halted: bool) -> None:
        self.orders = {order.id: order for order in sorted(orders, key=lambda o: (o.placed_at, o.id))}
        self.position = position
        self.costs = costs
        self.halted = halted
        self.changes: list[Change] = []
        self.capacity = ZERO
        self.bars: Bars | None = None

    @property
    def any_left(self) -> bool:
        return any(order.state in RESTING for order in self.orders.values())

    def begin(self, bars: Bars, time: int, capacity: Decimal) -> None:
        self.bars, self.capacity = bars, capacity
        self.expire(time, time)

    def bar(self, bar: _Bar) -> None:
        """First the exits that were there before, a stop before a target; then entries, and what they bring with them."""
        for order_id in self._exits():
            self._try(order_id, bar)
        for order_id in [each.id for each in self.orders.values() if not each.role.exit]:
            deal = self._try(order_id, bar)
            if deal is None or self.orders[order_id].role is not Role.ENTRY:
                continue
            # Whether the price came to the target before or after the entry is not known, unless that was at the open.
            for exit_id in self._exits(order_id):
                if deal.at_open or self.orders[exit_id].role is Role.STOP_LOSS:
                    self._try(exit_id, bar)

    def _exits(self, parent: str | None = None) -> list[str]:
        found = [
            each
            for each in self.orders.values()
            if each.role.exit and each.state in RESTING and parent in {None, each.parent}
        ]
        return [each.id for each in sorted(found, key=lambda each: each.role is not Role.STOP_LOSS)]

    def _try(self, order_id: str, bar: _Bar) -> _Deal | None:
        order = self.orders[order_id]
        # Cancelling is no shelter: until the end is confirmed an order may trade, but on paper the end is at once.
        if order.state not in RESTING or bar.time < order.placed_at or order.state is State.CANCELLING:
            return None
        deal = self._deal(order, bar)
        order = self.orders[order_id]  # a stop may have been triggered
        if deal is None:
            return None
        allowed = self._allowed(order)
        if not allowed:
            if not order.remaining_opening:
                self._end(order, State.CANCELLED, _NOTHING_LEFT, bar.time + MINUTE)
            return None
        whole = order.quantity == order.quantity.to_integral_value() and self._is_stock
        quantity = min(order.remaining, allowed, amounts.down(self.capacity, ONE if whole else CENT))
        if quantity <= 0:
            return None
        self._fill(order, quantity, deal.price, bar)
        return deal

    @property
    def _is_stock(self) -> bool:
        return self.bars is not None and self.bars.instrument.asset_class is AssetClass.STOCK

    def _allowed(self, order: Order) -> Decimal:
        """What it may trade: all that reduces, and what it may open unless that is halted."""
        against = max(ZERO, self.position * -order.side.sign)
        return against + (ZERO if self.halted else order.remaining_opening)

    def _deal(self, order: Order, bar: _Bar) -> _Deal | None:
        """The price at which a bar fills an order."""
        buying = order.side is Side.BUY
        if order.kind is Kind.MARKET or (order.kind is Kind.STOP and order.triggered):
            return _Deal(self._taken(amounts.of_bar(bar.open), buying), at_open=True)
        if order.kind is Kind.LIMIT or order.triggered:
            return _limit(order.limit_price, bar, buying)
        return self._stop(order, bar, buying)

    def _stop(self, order: Order, bar: _Bar, buying: bool) -> _Deal | None:
        stop = order.stop_price or ZERO
        level = float(stop)
        at_open = bar.open >= level if buying else bar.open <= level
        if not at_open and not (bar.high >= level if buying else bar.low <= level):
            return None
        order = self._change(order.to(order.state, bar.time + MINUTE, triggered=True))
        reached = amounts.of_bar(bar.open) if at_open else stop
        if order.kind is Kind.STOP:
            return _Deal(self._taken(reached, buying), at_open)
        if at_open:
            return _limit(order.limit_price, bar, buying)
        limit = order.limit_price or ZERO
        if not (limit > stop if buying else limit < stop):
            return None  # it rests from the next bar on: what came first in this one is not known
        taken = self._taken(stop, buying)
        return _Deal(min(taken, limit) if buying else max(taken, limit), at_open=False)

    def _taken(self, price: Decimal, buying: bool) -> Decimal:
        """A price with slippage."""
        with amounts.exact():
            return amounts.against(price * (ONE + self.costs.slippage * (1 if buying else -1)), buying)

    def _fill(self, order: Order, quantity: Decimal, price: Decimal, bar: _Bar) -> None:
        assert self.bars is not None
        with amounts.exact():
            fee = amounts.up(quantity * price * self.costs.fee)
        at = float(bar.time + MINUTE)
        count = f"{order.id}-{bar.time}"
        self.changes.append(
            fill_of(order, count, quantity, price, at, fee=fee, bar=bar.time, bar_hash=bar_hash(self.bars, bar.index))
        )
        self.capacity -= quantity
        self.position += quantity * order.side.sign
        order = self._change(order.with_fill(quantity, price, fee, at))
        if order.role is Role.ENTRY or order.role.exit:
            self._follow_bracket(order.parent or order.id, at)
        if not self._allowed(order) and not order.final and not order.remaining_opening:
            self._end(order, State.CANCELLED, _NOTHING_LEFT, at)

    # Brackets

    def _follow_bracket(self, entry_id: str, at: float) -> None:
        """Keep the exits as large as what their entry has opened and they have not yet closed."""
        entry = self.orders.get(entry_id)
        exits = [each for each in self.orders.values() if each.parent == entry_id]
        if entry is None or not exits:
            return
        left = entry.filled - sum((each.filled for each in exits), ZERO)
        if left <= 0 and entry.filled:
            self._close_bracket(entry, exits, at)
            return
        for each in exits:
            wanted = each.filled + left
            if not each.final and left and (each.state is State.HELD or each.quantity != wanted):
                state = State.OPEN if each.state is State.HELD else each.state
                placed = entry.placed_at if each.state is State.HELD else each.placed_at
                self._change(each.to(state, at, quantity=wanted, placed_at=placed))

    def _close_bracket(self, entry: Order, exits: list[Order], at: float) -> None:
        if not entry.final:
            self._change(entry.to(State.CANCELLED, at, _EXIT_REACHED))
        for each in exits:
            if not each.final:
                self._change(each.to(State.CANCELLED, at, _OTHER_EXIT))

    # Ends

    def expire(self, moment: float, at: float) -> None:
        """End what stood for a time that is over."""
        for order in list(self.orders.values()):
            over = order.expires_at is not None and order.expires_at <= moment
            if over and order.state in RESTING and self.orders[order.id].state not in FINAL:
                self._end(order, State.EXPIRED, "its day is over", min(at, order.expires_at or at))

    def _end(self, order: Order, state: State, reason: str, at: float) -> None:
        ended = self._change(order.to(state, at, reason))
        for change in end_exits(ended, self.orders.values(), at):
            self._change(change)

    def _change(self, order: Order) -> Order:
        self.orders[order.id] = order
        self.changes.append(order)
        return order


def end_exits(ended: Order, orders: Iterable[Order], at: float) -> list[Order]:
    """The exits of an entry that ended without opening anything end with it."""
    if ended.role is not Role.ENTRY or ended.filled:
        return []
    return [each.to(State.CANCELLED, at, _ENTRY_ENDED) for each in orders if each.parent == ended.id and not each.final]


def exits_of(entry: Order) -> list[Order]:
    """The exits that come with an order, held until it fills."""
    exits: list[Order] = []
    for role, price in ((Role.TAKE_PROFIT, entry.take_profit), (Role.STOP_LOSS, entry.stop_loss)):
        if price is None:
            continue
        target = role is Role.TAKE_PROFIT
        exits.append(
            replace(
                entry,
                id=f"{entry.id}-{'tp' if target else 'sl'}",
                side=entry.side.other,
                kind=Kind.LIMIT if target else Kind.STOP,
                opening=ZERO,
                limit_price=price if target else None,
                stop_price=None if target else price,
                take_profit=None,
                stop_loss=None,
                role=role,
                parent=entry.id,
                client_order_id=None,
                time_in_force=Force.GTC,
                expires_at=None,
                state=State.HELD,
            )
        )
    return exits


def _limit(limit: Decimal | None, bar: _Bar, buying: bool) -> _Deal | None:
    """A limit fills at the open if that is better, else at its price if the bar trades through it."""
    wanted = limit or ZERO
    level = float(wanted)
    if bar.open < level if buying else bar.open > level:
        return _Deal(amounts.of_bar(bar.open), at_open=True)
    if bar.low < level if buying else bar.high > level:
        return _Deal(wanted, at_open=False)
    return None
