"""The contract's names of timeframes, and the types of its results."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from openbell.market.timeframes import Timeframe
from openbell.protocol.pages import Pagination

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
    open: float
    high: float
    low: float
    close: float
    volume: float


class CandlePage(TypedDict):
    """Candles from oldest to newest, and the position of the page."""

    items: list[Candle]
    pagination: Pagination
    data_source: str


class Price(TypedDict):
    """The newest close and its changes in per cent; null if there was no price at the earlier time."""

    price: float
    change_1h: float | None
    change_24h: float | None
    volume_24h: float
    timestamp: str
    data_source: str


class Window(TypedDict):
    """The closed bars that were measured."""

    timeframe: str
    bars: int
    start: str
    end: str


class VolatilityAnswer(TypedDict):
    """How much a symbol moves."""

    volatility: Annotated[float, Field(description="standard deviation of log returns per bar")]
    atr: Annotated[float, Field(description="Wilder's, 14 bars")]
    high_low_range: float
    window: Window
    data_source: str
