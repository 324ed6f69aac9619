"""The contract's names of timeframes, and the types of its results."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from openbell.market.timeframes import Timeframe
from openbell.protocol.numbers import Computed, Exact
from openbell.protocol.pages import Pagination
from openbell.protocol.stated import Stated

CANDLES = {
    "1m": Timeframe.M1,
    "5m": Timeframe.M5,
    "15m": Timeframe.M15,
    "1h": Timeframe.H1,
    "4h": Timeframe.H4,
    "1d": Timeframe.D1,
}
VOLATILITY = {name: CANDLES[name] for name in ("1h", "4h", "1d")}

CandleTimeframe = Annotated[str, Field(json_schema_extra={"enum": list(CANDLES)})]
VolatilityTimeframe = Annotated[str, Field(json_schema_extra={"enum": list(VOLATILITY)})]
"""Strings, not enums: for a name outside the list, the handler raises the contract's own error."""


class Candle(TypedDict):
    """One closed bar; the timestamp is its open time."""

    timestamp: str
    open: Exact
    high: Exact
    low: Exact
    close: Exact
    volume: Exact


class CandlePage(Stated):
    """Candles from oldest to newest, and the position of the page."""

    items: list[Candle]
    pagination: Pagination


class Price(Stated):
    """The newest close and its changes in per cent; null if there was no price at the earlier time."""

    price: Exact
    change_1h: Computed | None
    change_24h: Annotated[
        Computed | None, Field(description="of a stock on a day without trades: since the previous session's close")
    ]
    change_24h_since: Annotated[str | None, Field(description="the time of the price that it is compared with")]
    volume_24h: Exact
    timestamp: Annotated[str, Field(description="of the price; as_of is the time of the answer")]


class Window(TypedDict):
    """The closed bars that were measured."""

    timeframe: str
    bars: int
    start: str
    end: str


class VolatilityAnswer(Stated):
    """How much a symbol moves."""

    volatility: Annotated[Computed, Field(description="standard deviation of log returns per bar")]
    atr: Annotated[Computed, Field(description="Wilder's, 14 bars")]
    high_low_range: Computed
    window: Window
