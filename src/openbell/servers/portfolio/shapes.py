"""The types of portfolio's results."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field

from openbell.protocol.numbers import Computed, Exact
from openbell.protocol.opened import Opened
from openbell.protocol.pages import Pagination
from openbell.protocol.stated import Stated, StatedOfAccount


class PositionShape(Opened):
    """One open position."""

    symbol: str
    side: Literal["LONG", "SHORT"]
    size: Exact
    entry_price: Exact
    current_price: Annotated[Exact | None, Field(description="null if there is none; note says why")]
    price_time: Annotated[str | None, Field(description="when the bar of that price ended")]
    session: Annotated[str, Field(description="of its market")]
    unrealized_pnl: Exact | None
    note: NotRequired[str]


class PositionPage(StatedOfAccount):
    """Positions, the last opened first."""

    items: list[PositionShape]
    pagination: Pagination


class BalanceShape(StatedOfAccount):
    """The account's money."""

    total_balance: Annotated[Exact | None, Field(description="cash and what the positions are worth")]
    available_balance: Annotated[Exact, Field(description="what new positions may still tie up")]
    margin_used: Exact | None
    unrealized_pnl: Exact | None
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
