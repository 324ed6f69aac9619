"""The types of portfolio's results."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from openbell.protocol.numbers import Computed, Exact
from openbell.protocol.pages import Pagination
from openbell.protocol.position_times import Opened
from openbell.protocol.source_fields import Stated, StatedOfAccount


class ExitShape(TypedDict):
    """A working order that would reduce a position."""

    order_id: str
    type: str
    price: Annotated[Exact | None, Field(description="its limit or stop; null at the market")]
    size: Exact
    distance_pct: Annotated[Computed | None, Field(description="of its price from the current one")]
    pnl: Annotated[Exact | None, Field(description="profit or loss of its size at its price, before costs")]


class PositionShape(Opened):
    """One open position."""

    symbol: str
    side: Literal["LONG", "SHORT"]
    size: Exact
    entry_price: Exact
    current_price: Annotated[Exact | None, Field(description="null if there is none; note says why")]
    price_time: Annotated[str | None, Field(description="when the bar of that price ended")]
    session: Annotated[str, Field(description="of its market")]
    unrealized_pnl: Annotated[Exact | None, Field(description="null as current_price")]
    unrealized_pnl_pct: Annotated[Computed | None, Field(description="of what was paid")]
    market_value: Annotated[Exact | None, Field(description="size times price, negative if short")]
    weight_pct: Annotated[Computed | None, Field(description="of the account's equity")]
    exits: Annotated[list[ExitShape], Field(description="stops, targets and other orders that reduce it, at most 5")]
    note: NotRequired[str]


class PositionPage(StatedOfAccount):
    """Positions, the last opened first."""

    items: list[PositionShape]
    pagination: Pagination
    total_market_value: Annotated[Exact | None, Field(description="of all pages; null if a price is missing")]
    total_unrealized_pnl: Exact | None


class BalanceShape(StatedOfAccount):
    """The account's money."""

    total_balance: Annotated[
        Exact | None, Field(description="cash and what the positions are worth; null if one has no price")
    ]
    available_balance: Annotated[Exact, Field(description="what new positions may still tie up")]
    margin_used: Annotated[Exact | None, Field(description="null as total_balance")]
    unrealized_pnl: Annotated[Exact | None, Field(description="null as total_balance")]
    cash: Exact
    started_with: Annotated[Exact, Field(description="cash when the account began")]
    total_return_pct: Annotated[Computed | None, Field(description="of the balance since then")]
    realized_pnl: Annotated[Exact, Field(description="of closed positions, before fees")]
    fees_paid: Exact
    day_pnl: Annotated[Exact | None, Field(description="change of the balance since 00:00 UTC")]
    day_pnl_pct: Computed | None
    daily_loss_left: Annotated[
        Exact | None, Field(description="what may still be lost today before nothing is opened; null without a limit")
    ]
    open_positions: int
    working_orders: int
    halted: Annotated[str | None, Field(description="why nothing may be opened (openbell halt); null if not halted")]
    price_time: Annotated[str | None, Field(description="when the bar of the oldest price ended")]
    note: NotRequired[str]


class VerdictShape(Stated):
    """The verdict of the risk gate."""

    valid: bool
    reason: Annotated[str, Field(description="why not; empty if valid")]
    rule: NotRequired[Annotated[str, Field(description="the rule that refuses")]]
    value: NotRequired[Annotated[str, Field(description="what the trade would reach, of what the rule limits")]]
    limit: NotRequired[Annotated[str, Field(description="of the rule")]]
    setting: NotRequired[Annotated[str, Field(description="that holds the limit")]]
    max_size: Annotated[Exact, Field(description="the largest size that would pass")]
    risk_score: Annotated[Computed, Field(description="0 to 1: how much of the tightest limit it uses")]
    price: Annotated[Exact | None, Field(description="that it was judged at: the limit, or the last price")]
    trade_value: Annotated[Exact | None, Field(description="size times price")]
    costs: Annotated[Exact | None, Field(description="fees and slippage that it would pay")]
    equity_pct: Annotated[Computed | None, Field(description="of the balance that its value is")]
    position_after: Annotated[Exact | None, Field(description="if it fills; negative if short")]
