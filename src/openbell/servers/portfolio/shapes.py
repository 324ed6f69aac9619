"""The types of portfolio's results."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from openbell.protocol.pages import Pagination


class PositionShape(TypedDict):
    """One open position."""

    symbol: str
    side: Literal["LONG", "SHORT"]
    size: float
    entry_price: float
    current_price: Annotated[float | None, Field(description="null if there is none; note says why")]
    price_time: NotRequired[Annotated[str | None, Field(description="beside note: when the bar of that price ended")]]
    unrealized_pnl: float | None
    opened_at: str
    note: NotRequired[str]


class PositionPage(TypedDict):
    """Positions, the last opened first."""

    items: list[PositionShape]
    pagination: Pagination
    data_source: str


class BalanceShape(TypedDict):
    """The account's money."""

    total_balance: Annotated[float | None, Field(description="cash and what the positions are worth")]
    available_balance: Annotated[float, Field(description="what new positions may still tie up")]
    margin_used: float | None
    unrealized_pnl: float | None
    note: NotRequired[str]
    data_source: str


class VerdictShape(TypedDict):
    """The verdict of the risk gate."""

    valid: bool
    reason: str
    max_size: Annotated[float, Field(description="the largest size that would pass")]
    risk_score: Annotated[float, Field(description="0 to 1: how much of the tightest limit it uses")]
    data_source: str
