"""The book of an account: cash and positions, computed from fills only.

All amounts are sums of exact products. The one division, the cost that a partial close releases, is rounded down to 1e-8,
and the remainder stays in the position's cost. So cash, cost and realised profit always add up exactly, and a cost always
has the sign of its quantity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import ROUND_DOWN, Decimal

from openbell.trading import amounts
from openbell.trading.amounts import CENT, ONE, ZERO
from openbell.trading.fills import Fill

Values = Mapping[str, Decimal]
"""By symbol, the price at which a position is valued."""


@dataclass(frozen=True, slots=True)
class Position:
    """The position in one symbol. A positive quantity is long, a negative one short."""

    symbol: str
    quantity: Decimal
    cost: Decimal
    """Quantity times average price, with the sign of the quantity."""
    opened_at: float
    """When the fill that opened it was recorded."""

    @property
    def average_price(self) -> Decimal:
        """The average price per unit at which it was opened, without fees."""
        return amounts.share(self.cost, self.quantity)

    def unrealised(self, price: Decimal) -> Decimal:
        """Returns the profit if the position were closed at a price, before fees."""
        with amounts.exact():
            return self.quantity * price - self.cost


@dataclass(frozen=True, slots=True)
class Book:
    """Cash and positions of an account at one moment."""

    cash: Decimal
    positions: Mapping[str, Position] = field(default_factory=dict)
    realised: Decimal = ZERO
    """Profit of closed positions, before fees."""
    fees: Decimal = ZERO
    count: int = 0
    """The number of fills so far."""

    def after(self, fill: Fill) -> Book:
        """Returns the book after one more fill."""
        held = self.positions.get(fill.symbol)
        positions = dict(self.positions)
        with amounts.exact():
            position, realised = _filled(held, fill)
            if position is None:
                positions.pop(fill.symbol, None)
            else:
                positions[fill.symbol] = position
            return replace(
                self,
                cash=self.cash + fill.cash,
                positions=positions,
                realised=self.realised + realised,
                fees=self.fees + fill.fee,
                count=self.count + 1,
            )

    def quantity(self, symbol: str) -> Decimal:
        """Returns the quantity held of a symbol; 0 if there is no position."""
        held = self.positions.get(symbol)
        return held.quantity if held else ZERO

    def equity(self, prices: Values) -> Decimal:
        """Returns cash plus the value of all positions at these prices, before fees."""
        with amounts.exact():
            return self.cash + sum((p.quantity * prices[p.symbol] for p in self.positions.values()), ZERO)

    def exposure(self, prices: Values) -> Decimal:
        """Returns the sum of the absolute values of all positions."""
        with amounts.exact():
            return sum((abs(p.quantity) * prices[p.symbol] for p in self.positions.values()), ZERO)

    def unrealised(self, prices: Values) -> Decimal:
        """Returns the profit of all open positions, before fees."""
        with amounts.exact():
            return sum((p.unrealised(prices[p.symbol]) for p in self.positions.values()), ZERO)


def replay(cash: Decimal, fills: Iterable[Fill]) -> Book:
    """Returns the book that starts with `cash` and has had these fills."""
    book = Book(cash)
    for fill in fills:
        book = book.after(fill)
    return book


def margin(exposure: Decimal, leverage: Decimal) -> Decimal:
    """Returns the margin that an exposure requires."""
    return amounts.share(exposure, leverage) if leverage != ONE else exposure


def _filled(held: Position | None, fill: Fill) -> tuple[Position | None, Decimal]:
    """Returns a symbol's position after a fill (None if closed), and the profit that the fill realised."""
    signed = fill.signed
    if held is None or held.quantity * signed > 0:
        old_quantity, old_cost, opened = (held.quantity, held.cost, held.opened_at) if held else (ZERO, ZERO, fill.at)
        return Position(fill.symbol, old_quantity + signed, old_cost + signed * fill.price, opened), ZERO
    if abs(signed) < abs(held.quantity):
        released = (held.cost * -signed / held.quantity).quantize(CENT, ROUND_DOWN)
        rest = replace(held, quantity=held.quantity + signed, cost=held.cost - released)
        return rest, -signed * fill.price - released
    realised = held.quantity * fill.price - held.cost
    left = held.quantity + signed
    return (Position(fill.symbol, left, left * fill.price, fill.at) if left else None), realised
