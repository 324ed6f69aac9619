"""An order and the states it can be in.

pending           written down, not yet known to the broker
                  → open, partially_filled, filled, cancelled, expired, rejected, unknown
held              an exit of a bracket, until its entry fills
                  → open, cancelled, expired, rejected
open              working at the broker
                  → partially_filled, filled, cancelling, cancelled, expired, rejected
partially_filled  working, some of it done
                  → filled, cancelling, cancelled, expired
cancelling        its cancellation was asked for; fills may still come, and the broker may refuse
                  → open, partially_filled, filled, cancelled, expired
unknown           sent, and nobody knows whether it arrived: whatever the broker says of it
                  → open, partially_filled, cancelling, filled, cancelled, expired, rejected, lost
lost              the broker has no record of it: whatever it says should it appear after all
                  → open, partially_filled, cancelling, filled, cancelled, expired, rejected
filled, cancelled, expired, rejected: final

`unknown` is never sent again: it is asked for by its id until the broker has answered. `MOVES` is the whole machine;
`Order.to` is the one way to change a state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from typing import Any

from openbell.market.errors import OpenbellError
from openbell.trading import amounts
from openbell.trading.amounts import ZERO


class Side(StrEnum):
    """Which way."""

    BUY = "buy"
    SELL = "sell"

    @property
    def sign(self) -> int:
        """+1 for what adds to a position, −1 for what takes from it."""
        return 1 if self is Side.BUY else -1

    @property
    def other(self) -> Side:
        """The way back."""
        return Side.SELL if self is Side.BUY else Side.BUY


class Kind(StrEnum):
    """How it is priced."""

    MARKET = "market"
    LIMIT = "limit"
    STOP = "stop"
    STOP_LIMIT = "stop_limit"


class Force(StrEnum):
    """How long it stands."""

    GTC = "gtc"
    DAY = "day"


class Role(StrEnum):
    """What it is within a bracket."""

    SINGLE = "single"
    ENTRY = "entry"
    TAKE_PROFIT = "take_profit"
    STOP_LOSS = "stop_loss"

    @property
    def exit(self) -> bool:
        """Whether it closes what an entry opened."""
        return self in {Role.TAKE_PROFIT, Role.STOP_LOSS}


class State(StrEnum):
    """Where an order stands."""

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


_ENDS = frozenset({State.FILLED, State.CANCELLED, State.EXPIRED, State.REJECTED})
_AT_BROKER = frozenset({State.OPEN, State.PARTIALLY_FILLED, State.CANCELLING}) | _ENDS
MOVES: dict[State, frozenset[State]] = {
    State.PENDING: _AT_BROKER - {State.CANCELLING} | {State.UNKNOWN},
    State.HELD: frozenset({State.OPEN, State.CANCELLED, State.EXPIRED, State.REJECTED}),
    State.OPEN: _AT_BROKER,
    State.PARTIALLY_FILLED: _AT_BROKER - {State.OPEN, State.REJECTED},
    State.CANCELLING: _AT_BROKER - {State.REJECTED},
    State.UNKNOWN: _AT_BROKER | {State.LOST},
    State.LOST: _AT_BROKER,
    **dict.fromkeys(_ENDS, frozenset()),
}
"""From each state those that may follow; staying is always allowed."""
FINAL = _ENDS
RESTING = frozenset({State.OPEN, State.PARTIALLY_FILLED, State.CANCELLING})
"""Those that may still trade at the broker."""
EXPOSED = RESTING | {State.PENDING, State.UNKNOWN}
"""Those that the risk gate must count: they trade, or may."""


class ImpossibleMove(OpenbellError):
    """A state that cannot follow: a bug, or a broker that contradicts itself."""


@dataclass(frozen=True, slots=True)
class Order:
    """One order. Amounts are exact; times are epoch seconds on the desk's clock."""

    id: str
    account: str
    principal: str
    symbol: str
    side: Side
    kind: Kind
    quantity: Decimal
    opening: Decimal
    """How much of it may yet open a position; the rest only reduces one, and is cut if there is less to reduce by then."""
    time_in_force: Force
    placed_at: float
    spelling: str = ""
    """The symbol as the caller wrote it, which answers echo."""
    limit_price: Decimal | None = None
    stop_price: Decimal | None = None
    take_profit: Decimal | None = None
    stop_loss: Decimal | None = None
    role: Role = Role.SINGLE
    parent: str | None = None
    client_order_id: str | None = None
    expires_at: float | None = None
    state: State = State.PENDING
    triggered: bool = False
    """Of a stop-limit: the stop was reached, it is a limit order now."""
    filled: Decimal = ZERO
    paid: Decimal = ZERO
    """Price times quantity of its fills."""
    fees: Decimal = ZERO
    broker_id: str | None = None
    reason: str | None = None
    updated_at: float = 0.0

    @property
    def remaining(self) -> Decimal:
        """What is not done yet."""
        return self.quantity - self.filled

    @property
    def remaining_opening(self) -> Decimal:
        """What may still open a position: reducing comes first."""
        return min(self.remaining, self.opening)

    @property
    def average_price(self) -> Decimal | None:
        """Of its fills."""
        return amounts.share(self.paid, self.filled) if self.filled else None

    @property
    def final(self) -> bool:
        """Whether nothing more can happen to it."""
        return self.state in FINAL

    def to(self, state: State, at: float, reason: str | None = None, **changes: Any) -> Order:
        """The order in another state. Raises `ImpossibleMove`."""
        if state is not self.state and state not in MOVES[self.state]:
            raise ImpossibleMove(f"order {self.id} is {self.state} and cannot become {state}", order_id=self.id)
        return replace(self, state=state, updated_at=at, reason=reason or self.reason, **changes)

    def with_fill(self, quantity: Decimal, price: Decimal, fee: Decimal, at: float) -> Order:
        """The order after one more fill; what was being cancelled stays so until it is all done."""
        filled = self.filled + quantity
        if quantity <= 0:
            raise ImpossibleMove(f"order {self.id} cannot have a fill of nothing", order_id=self.id)
        if filled > self.quantity:
            raise ImpossibleMove(f"order {self.id} would be filled beyond its quantity", order_id=self.id)
        with amounts.exact():
            paid, fees = self.paid + quantity * price, self.fees + fee
        if filled == self.quantity:
            state = State.FILLED
        else:
            state = State.CANCELLING if self.state is State.CANCELLING else State.PARTIALLY_FILLED
        return self.to(state, at, filled=filled, paid=paid, fees=fees)
