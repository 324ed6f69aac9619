"""A fill: the only thing that moves money."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from openbell.trading import amounts
from openbell.trading.amounts import ZERO
from openbell.trading.orders import Order, Side


@dataclass(frozen=True, slots=True)
class Fill:
    """A part of an order that was done, at one price."""

    id: str
    """Made of the order's id and a number, or of the broker's own: the same fill is never counted twice."""
    order_id: str
    account: str
    principal: str
    symbol: str
    side: Side
    quantity: Decimal
    price: Decimal
    fee: Decimal
    at: float
    """When it was known: on paper, the end of the bar that it happened in."""
    bar: int | None = None
    """On paper, the open time of that bar."""
    bar_hash: str | None = None

    @property
    def signed(self) -> Decimal:
        """What it adds to the position."""
        return self.quantity * self.side.sign

    @property
    def cash(self) -> Decimal:
        """What it adds to the cash."""
        with amounts.exact():
            return -self.signed * self.price - self.fee


def fill_of(
    order: Order,
    fill_id: str,
    quantity: Decimal,
    price: Decimal,
    at: float,
    *,
    fee: Decimal = ZERO,
    bar: int | None = None,
    bar_hash: str | None = None,
) -> Fill:
    """A fill of an order."""
    return Fill(
        fill_id,
        order.id,
        order.account,
        order.principal,
        order.symbol,
        order.side,
        quantity,
        price,
        fee,
        at,
        bar,
        bar_hash,
    )
