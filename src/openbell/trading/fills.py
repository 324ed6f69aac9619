"""Fills, and when they happened. Only fills change the cash and the positions of an account.

The ledger keeps when a fill was recorded: on paper, at the end of its minute.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from openbell.trading import amounts
from openbell.trading.amounts import ZERO
from openbell.trading.orders import Order, OrderKind, Side


@dataclass(frozen=True, slots=True)
class Fill:
    """The execution of an order, or of a part of it, at one price."""

    id: str
    """The order's id with the bar's time or the broker's execution id, so that a fill is never counted twice."""
    order_id: str
    account: str
    principal: str
    symbol: str
    side: Side
    quantity: Decimal
    price: Decimal
    fee: Decimal
    at: float
    """When it was recorded: on paper, when its bar closed. `filled_at` is when it happened."""
    bar: int | None = None
    """On paper, the open time of that bar."""
    bar_hash: str | None = None

    @property
    def filled_at(self) -> float:
        """When it happened: on paper, the open of its bar; at a broker, the time of the execution."""
        return self.at if self.bar is None else float(self.bar)

    @property
    def signed(self) -> Decimal:
        """The change of the position."""
        return self.quantity * self.side.sign

    @property
    def cash(self) -> Decimal:
        """The change of the cash, fee included."""
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
    """Returns a fill of an order."""
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


@dataclass(frozen=True, slots=True)
class FillTime:
    """The time of a fill and of its record."""

    at: float
    """At a broker, the time of the execution; on paper, the open of the minute that filled the order."""
    recorded_at: float
    exact: bool
    """False if the fill happened at an unknown time of the minute that begins at `at`."""

    @property
    def precision(self) -> str | None:
        """`minute` if the time is not exact; None if it is."""
        return None if self.exact else "minute"


def fill_time(fill: Fill, kind: OrderKind, limit_price: Decimal | None) -> FillTime:
    """Returns the time of a fill of an order of this kind.

    Market orders fill at the open of a minute, and so do limit orders that get a better price than their limit. At its limit
    an order fills within the minute, and a stop may.
    """
    at_open = kind is OrderKind.MARKET or (kind is OrderKind.LIMIT and fill.price != limit_price)
    return FillTime(fill.filled_at, fill.at, fill.bar is None or at_open)
