"""The book: cash and positions, made of fills alone.

Everything is sums of exact products; the one division (the cost that a partial close releases) is cut to 1e-8, and what is
left of it stays in the position, so that cash, cost and realised profit always add up to the last digit, and no cost ever
has another sign than its quantity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import ROUND_DOWN, Decimal

from openbell.trading import amounts
from openbell.trading.amounts import CENT, ONE, ZERO
from openbell.trading.fills import Fill

Marks = Mapping[str, Decimal]
"""What each symbol was last worth."""


@dataclass(frozen=True, slots=True)
class Position:
    """What is held of one symbol: more than zero is long, less is short."""

    symbol: str
    quantity: Decimal
    cost: Decimal
    """Quantity times average price, of the same sign."""
    opened_at: float

    @property
    def average_price(self) -> Decimal:
        """What one unit was entered at, without fees."""
        return amounts.share(self.cost, self.quantity)

    def unrealised(self, mark: Decimal) -> Decimal:
        """Profit if it were closed at a price, before fees."""
        with amounts.exact():
            return self.quantity * mark - self.cost


@dataclass(frozen=True, slots=True)
class Book:
    """An account at one moment."""

    cash: Decimal
    positions: Mapping[str, Position] = field(default_factory=dict)
    realised: Decimal = ZERO
    """Profit of what was closed, before fees."""
    fees: Decimal = ZERO
    count: int = 0
    """Fills that it is made of."""

    def after(self, fill: Fill) -> Book:
        """The book with one more fill."""
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
        """What is held of a symbol."""
        held = self.positions.get(symbol)
        return held.quantity if held else ZERO

    def equity(self, marks: Marks) -> Decimal:
        """What all would be worth if it were closed at these prices, before fees."""
        with amounts.exact():
            return self.cash + sum((p.quantity * marks[p.symbol] for p in self.positions.values()), ZERO)

    def exposure(self, marks: Marks) -> Decimal:
        """The worth of all positions, short ones counted as large as long ones."""
        with amounts.exact():
            return sum((abs(p.quantity) * marks[p.symbol] for p in self.positions.values()), ZERO)

    def unrealised(self, marks: Marks) -> Decimal:
        """Profit of what is open."""
        with amounts.exact():
            return sum((p.unrealised(marks[p.symbol]) for p in self.positions.values()), ZERO)


def replay(cash: Decimal, fills: Iterable[Fill]) -> Book:
    """The book that some fills make, begun with some cash."""
    book = Book(cash)
    for fill in fills:
        book = book.after(fill)
    return book


def margin(exposure: Decimal, leverage: Decimal) -> Decimal:
    """What an exposure ties up."""
    return amounts.share(exposure, leverage) if leverage != ONE else exposure


def _filled(held: Position | None, fill: Fill) -> tuple[Position | None, Decimal]:
    """A symbol's position after a fill, and the profit that the fill realised."""
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
