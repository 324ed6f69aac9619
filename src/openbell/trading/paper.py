"""The paper broker's fills, honest ones: what a real order would have got, or a little less.

Market orders fill at the next bar's open. A limit fills only when the price trades through it, a gap fills at the open, and
within one bar a stop comes before a target. Of a bar's volume only a share can be had, the rest waits for later bars; forex
has no volume, and its orders fill whole. Buying costs a little more than the price and selling brings a little less
(slippage); fees come on top. Stocks fill in regular hours only. An order sees no bar that opened before it was placed.

`match` is a pure function of the orders of one account and symbol, the position and the bars since they were last looked
at; its changes are in the order in which they happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from openbell.market.bars import MINUTE, Bars
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.session_table import table_for
from openbell.trading import amounts
from openbell.trading.amounts import CENT, ONE, ZERO
from openbell.trading.evidence import bar_hash
from openbell.trading.fills import Fill, fill_of
from openbell.trading.orders import RESTING, Force, Kind, Order, Role, Side, State

Change = Order | Fill
_EXIT_REACHED = "its exit was reached"
_NOTHING_LEFT = "nothing is left to reduce"
_ENTRY_ENDED = "its entry opened nothing"
_OTHER_EXIT = "the other exit closed the position"
_MOST = Decimal("1e18")
"""More than all orders together: a volume beyond sense must not spoil the sums."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What trading on paper costs."""

    fee: Decimal = Decimal("0.001")
    """Of what is traded."""
    slippage: Decimal = Decimal("0.0005")
    """Of the price, against whoever takes it."""
    volume_share: Decimal = Decimal("0.1")
    """Of a bar's volume that can be had, where the instrument has a volume."""


@dataclass(frozen=True, slots=True)
class _Bar:
    index: int
    time: int
    open: float
    high: float
    low: float

    @property
    def end(self) -> float:
        return float(self.time + MINUTE)


@dataclass(frozen=True, slots=True)
class _Deal:
    price: Decimal
    at_open: bool


def match(
    orders: Sequence[Order],
    bars: Bars,
    position: Decimal,
    until: float,
    costs: Costs,
    *,
    halted: bool = False,
    seen: Mapping[str, float] | None = None,
) -> list[Change]:
    """What becomes of resting orders of one symbol in some minute bars, and of those whose time is over by `until`.

    `seen` says of some orders up to when they have met bars already.
    """
    matching = _Matching(orders, position, costs, halted, seen or {})
    for index in tradable(bars):
        if not matching.any_left:
            break
        time, o, h, low, _, volume = (column[index].item() for column in bars.columns())
        matching.begin(bars, time, available(bars.instrument, volume, costs))
        matching.bar(_Bar(index, time, o, h, low))
    matching.expire(until)
    return matching.changes


def available(instrument: Instrument, volume: float, costs: Costs) -> Decimal:
    """How much orders can have of a minute: a share of its volume, and any amount of what has no volume."""
    if not instrument.has_volume:
        return _MOST
    with amounts.exact():
        return amounts.down(min(amounts.of_bar(volume) * costs.volume_share, _MOST))


def in_steps(quantity: Decimal, order: Order, instrument: Instrument) -> Decimal:
    """A quantity rounded down to what a fill of an order may be: of whole shares, if it is of whole shares."""
    whole = instrument.asset_class is AssetClass.STOCK and order.quantity == order.quantity.to_integral_value()
    return amounts.down(quantity, ONE if whole else CENT)


def tradable(bars: Bars) -> Iterable[int]:
    """The bars in which orders can fill: of stocks, those of regular hours."""
    if bars.instrument.asset_class is not AssetClass.STOCK or not len(bars):
        return range(len(bars))
    table = table_for(int(bars.time[0]) - 86400, int(bars.time[-1]) + 86400)
    inside: list[int] = (table.regular(bars.time) >= 0).nonzero()[0].tolist()
    return inside


class _Matching:
    """The orders on their way through the bars."""

    def __init__(
        self, orders: Sequence[Order], position: Decimal, costs: Costs, halted: bool, seen: Mapping[str, float]
    ) -> None:
        self.seen = seen
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
        self.expire(time)

    def bar(self, bar: _Bar) -> None:
        """First the exits that were there before, a stop before a target; then entries, and what they bring with them."""
        before = self._exits()
        for order_id in before:
            self._try(order_id, bar)
        for order_id in [each.id for each in self.orders.values() if not each.role.exit]:
            deal = self._try(order_id, bar)
            if deal is None or self.orders[order_id].role is not Role.ENTRY:
                continue
            # Whether the price came to the target before or after the entry is not known, unless that was at the open.
            for exit_id in self._exits(order_id):
                if exit_id not in before and (deal.at_open or self.orders[exit_id].role is Role.STOP_LOSS):
                    self._try(exit_id, bar, deal)

    def _exits(self, parent: str | None = None) -> list[str]:
        found = [
            each
            for each in self.orders.values()
            if each.role.exit and each.state in RESTING and parent in {None, each.parent}
        ]
        return [each.id for each in sorted(found, key=lambda each: each.role is not Role.STOP_LOSS)]

    def _try(self, order_id: str, bar: _Bar, entered: _Deal | None = None) -> _Deal | None:
        """Fill what a bar fills of an order, once a bar; `entered` is how its entry has filled in the same one."""
        order = self.orders[order_id]
        # Cancelling is no shelter: until the end is confirmed an order may trade, but on paper the end is at once.
        if order.state not in RESTING or order.state is State.CANCELLING:
            return None
        if bar.time < max(order.placed_at, self.seen.get(order_id, 0.0)):
            return None
        deal = self._deal(order, bar, entered)
        order = self.orders[order_id]  # a stop may have been triggered
        if deal is None:
            return None
        allowed = self._allowed(order)
        if not allowed:
            if not order.remaining_opening:
                self._nothing_left(order, bar.end)
            return None
        assert self.bars is not None
        quantity = min(order.remaining, allowed, in_steps(self.capacity, order, self.bars.instrument))
        if quantity <= 0:
            return None
        self._fill(order, quantity, deal.price, bar)
        return deal

    def _allowed(self, order: Order) -> Decimal:
        """What it may trade: all that reduces, and what it may open unless that is halted."""
        return self._reducible(order) + (ZERO if self.halted else order.remaining_opening)

    def _reducible(self, order: Order) -> Decimal:
        return max(ZERO, self.position * -order.side.sign)

    def _deal(self, order: Order, bar: _Bar, entered: _Deal | None) -> _Deal | None:
        """The price at which a bar fills an order."""
        buying = order.side is Side.BUY
        if order.kind is Kind.MARKET or (order.kind is Kind.STOP and order.triggered):
            return _Deal(self._taken(amounts.of_bar(bar.open), buying), at_open=True)
        if order.kind is Kind.LIMIT or order.triggered:
            return _limit(order.limit_price, bar, buying)
        return self._stop(order, bar, buying, entered)

    def _stop(self, order: Order, bar: _Bar, buying: bool, entered: _Deal | None) -> _Deal | None:
        stop = order.stop_price or ZERO
        level = float(stop)
        if not (bar.high >= level if buying else bar.low <= level):
            return None
        at_open = bar.open >= level if buying else bar.open <= level
        if entered and not entered.at_open:
            # The open was before the entry, and what was beyond the stop by then is left where it was entered.
            at_open, stop = False, max(stop, entered.price) if buying else min(stop, entered.price)
        order = self._change(order.to(order.state, bar.end, triggered=True))
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
        at = bar.end
        count = f"{order.id}-{bar.time}"
        self.changes.append(
            fill_of(order, count, quantity, price, at, fee=fee, bar=bar.time, bar_hash=bar_hash(self.bars, bar.index))
        )
        opened = max(ZERO, quantity - self._reducible(order))
        self.capacity -= quantity
        self.position += quantity * order.side.sign
        order = self._change(replace(order.with_fill(quantity, price, fee, at), opening=order.opening - opened))
        if order.role is Role.ENTRY:
            self._entered(order, opened, at)
        elif order.role.exit:
            self._exited(order, at)
        if not self._reducible(order) and not order.final and not order.remaining_opening:
            self._nothing_left(order, at)
        for exit_id in self._exits():
            # Somebody has closed the position by hand: what was to close it is over.
            if not self._reducible(self.orders[exit_id]) and not self.orders[exit_id].final:
                self._nothing_left(self.orders[exit_id], at)

    # Brackets

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

    def expire(self, moment: float) -> None:
        """End what stood for a time that is over by some moment, what was over first first."""
        over = [
            (order.expires_at, order.id)
            for order in self.orders.values()
            if order.state in RESTING and order.expires_at is not None and order.expires_at <= moment
        ]
        for at, order_id in sorted(over, key=lambda each: each[0]):
            if not self.orders[order_id].final:
                self._end(self.orders[order_id], State.EXPIRED, "its day is over", at)

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

    def _change(self, order: Order) -> Order:
        self.orders[order.id] = order
        self.changes.append(order)
        return order


def end_exits(ended: Order, orders: Iterable[Order], at: float) -> list[Order]:
    """The exits of an entry that ended without opening anything end with it; those still held have nothing to close."""
    if ended.role is not Role.ENTRY or not ended.final:
        return []
    return [
        each.to(State.CANCELLED, at, _ENTRY_ENDED)
        for each in orders
        if each.parent == ended.id and not each.final and (each.state is State.HELD or not ended.filled)
    ]


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
                broker_id=None,
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
