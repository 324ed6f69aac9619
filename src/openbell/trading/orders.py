"""An order and the states it can be in.

pending           recorded, and not yet confirmed by the broker
                  → open, partially_filled, filled, cancelled, expired, rejected, unknown
held              an exit of a bracket, until its entry fills
                  → open, cancelled, expired, rejected
open              working at the broker
                  → partially_filled, filled, cancelling, cancelled, expired, rejected
partially_filled  working, and filled in part
                  → filled, cancelling, cancelled, expired
cancelling        its cancellation was requested; the broker may still fill it, or refuse to cancel it
                  → open, partially_filled, filled, cancelled, expired
unknown           sent, and no answer arrived: takes the state that the broker reports
                  → open, partially_filled, cancelling, filled, cancelled, expired, rejected, lost
lost              the broker has no record of it: takes the state that the broker reports if it appears later
                  → open, partially_filled, cancelling, filled, cancelled, expired, rejected
filled, cancelled, expired, rejected: final

An `unknown` order is never sent again; it is looked up by its id until the broker answers. `MOVES` has all allowed changes
of state, and only `Order.to` changes a state.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from typing import Any

from openbell.market.errors import OpenbellError
from openbell.trading import amounts
from openbell.trading.amounts import ZERO

_ENTRY_ENDED = "its entry opened nothing"


class Side(StrEnum):
    """The side of an order."""

    BUY = "buy"
    SELL = "sell"

    @property
    def sign(self) -> int:
        """+1 for buy, −1 for sell."""
        return 1 if self is Side.BUY else -1

    @property
    def other(self) -> Side:
        """The opposite side."""
        return Side.SELL if self is Side.BUY else Side.BUY


class OrderKind(StrEnum):
    """How an order is priced."""

    MARKET = "market"
    LIMIT = "limit"
    STOP = "stop"
    STOP_LIMIT = "stop_limit"


class Force(StrEnum):
    """Time in force: how long an order works."""

    GTC = "gtc"
    DAY = "day"


class Role(StrEnum):
    """The role of an order in a bracket; `single` if it has none."""

    SINGLE = "single"
    ENTRY = "entry"
    TAKE_PROFIT = "take_profit"
    STOP_LOSS = "stop_loss"

    @property
    def exit(self) -> bool:
        """Whether the order closes the position of an entry."""
        return self in {Role.TAKE_PROFIT, Role.STOP_LOSS}


class OrderState(StrEnum):
    """The state of an order."""

    PENDING = "pending"
    HELD = "held"
    OPEN = "open"
    PARTIALLY_FILLED = "partially_filled"
    CANCELLING = "cancelling"
    UNKNOWN = "unknown"
    LOST = "lost"
    FILLED = "filled"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    REJECTED = "rejected"


_IN_DOUBT = frozenset({OrderState.UNKNOWN, OrderState.LOST})
_ENDS = frozenset({OrderState.FILLED, OrderState.CANCELLED, OrderState.EXPIRED, OrderState.REJECTED})
_AT_BROKER = frozenset({OrderState.OPEN, OrderState.PARTIALLY_FILLED, OrderState.CANCELLING}) | _ENDS
MOVES: dict[OrderState, frozenset[OrderState]] = {
    OrderState.PENDING: _AT_BROKER - {OrderState.CANCELLING} | {OrderState.UNKNOWN},
    OrderState.HELD: frozenset({OrderState.OPEN, OrderState.CANCELLED, OrderState.EXPIRED, OrderState.REJECTED}),
    OrderState.OPEN: _AT_BROKER,
    OrderState.PARTIALLY_FILLED: _AT_BROKER - {OrderState.OPEN, OrderState.REJECTED},
    OrderState.CANCELLING: _AT_BROKER - {OrderState.REJECTED},
    OrderState.UNKNOWN: _AT_BROKER | {OrderState.LOST},
    OrderState.LOST: _AT_BROKER,
    **dict.fromkeys(_ENDS, frozenset()),
}
"""For each state, the states that may follow it; an order may always keep its state."""
FINAL = _ENDS
RESTING = frozenset({OrderState.OPEN, OrderState.PARTIALLY_FILLED, OrderState.CANCELLING})
"""States in which an order may still fill."""
EXPOSED = RESTING | {OrderState.PENDING, OrderState.UNKNOWN}
"""States that the risk gate counts: orders that may fill, or that the broker may have received."""


class ImpossibleMove(OpenbellError):
    """A change of state that is not allowed: a bug, or contradictory reports of a broker."""


@dataclass(frozen=True, slots=True)
class Order:
    """One order. Amounts are exact; times are epoch seconds on the desk's clock."""

    id: str
    account: str
    principal: str
    symbol: str
    side: Side
    kind: OrderKind
    quantity: Decimal
    opening: Decimal
    """The quantity that may still open a position. The rest only reduces one, and is cut to the position when it fills."""
    time_in_force: Force
    placed_at: float
    spelling: str = ""
    """The symbol as the caller wrote it; results repeat it."""
    limit_price: Decimal | None = None
    stop_price: Decimal | None = None
    take_profit: Decimal | None = None
    stop_loss: Decimal | None = None
    role: Role = Role.SINGLE
    parent: str | None = None
    client_order_id: str | None = None
    expires_at: float | None = None
    state: OrderState = OrderState.PENDING
    triggered: bool = False
    """Whether the stop price was reached; a stop-limit order is a limit order from then on."""
    filled: Decimal = ZERO
    paid: Decimal = ZERO
    """Sum of price times quantity of its fills."""
    fees: Decimal = ZERO
    broker_id: str | None = None
    reason: str | None = None
    updated_at: float = 0.0

    @property
    def remaining(self) -> Decimal:
        """The quantity that is not filled."""
        return self.quantity - self.filled

    @property
    def remaining_opening(self) -> Decimal:
        """The unfilled quantity that may open a position; fills reduce a position first."""
        return min(self.remaining, self.opening)

    @property
    def average_price(self) -> Decimal | None:
        """The average price of its fills; None if there are none."""
        return amounts.share(self.paid, self.filled) if self.filled else None

    @property
    def final(self) -> bool:
        """Whether its state is final."""
        return self.state in FINAL

    def to(self, state: OrderState, at: float, reason: str | None = None, **changes: Any) -> Order:
        """Returns the order in another state. Raises `ImpossibleMove`.

        It keeps its reason, unless that was about a doubt that is over: the broker has found the order again.
        """
        if state is not self.state and state not in MOVES[self.state]:
            raise ImpossibleMove(f"order {self.id} is {self.state} and cannot become {state}", order_id=self.id)
        kept = None if self.state in _IN_DOUBT and state not in _IN_DOUBT else self.reason
        return replace(self, state=state, updated_at=at, reason=reason or kept, **changes)

    def with_fill(self, quantity: Decimal, price: Decimal, fee: Decimal, at: float) -> Order:
        """Returns the order after one more fill; a `cancelling` order stays so until filled. Raises `ImpossibleMove`."""
        filled = self.filled + quantity
        if quantity <= 0:
            raise ImpossibleMove(f"order {self.id} cannot have a fill of nothing", order_id=self.id)
        if filled > self.quantity:
            raise ImpossibleMove(f"order {self.id} would be filled beyond its quantity", order_id=self.id)
        with amounts.exact():
            paid, fees = self.paid + quantity * price, self.fees + fee
        if filled == self.quantity:
            state = OrderState.FILLED
        else:
            state = OrderState.CANCELLING if self.state is OrderState.CANCELLING else OrderState.PARTIALLY_FILLED
        return self.to(state, at, filled=filled, paid=paid, fees=fees)


def exits_of(entry: Order) -> list[Order]:
    """Returns the exits of an entry, in the state `held` until it fills."""
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
                kind=OrderKind.LIMIT if target else OrderKind.STOP,
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
                state=OrderState.HELD,
                broker_id=None,
            )
        )
    return exits


def end_exits(ended: Order, orders: Iterable[Order], at: float) -> list[Order]:
    """Returns the cancelled exits of an entry that has ended: those still held, and all if the entry filled nothing."""
    if ended.role is not Role.ENTRY or not ended.final:
        return []
    return [
        each.to(OrderState.CANCELLED, at, _ENTRY_ENDED)
        for each in orders
        if each.parent == ended.id and not each.final and (each.state is OrderState.HELD or not ended.filled)
    ]
