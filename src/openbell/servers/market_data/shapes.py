"""The contract's names of timeframes, and the types of its results."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from openbell.market.timeframes import Timeframe
from openbell.protocol.numbers import Computed, Exact
from openbell.protocol.pages import Pagination
from openbell.protocol.source_fields import Stated

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


class DayShape(TypedDict):
    """The trading day of the price so far; null before its first trade."""

    open: Exact | None
    high: Exact | None
    low: Exact | None


class YearRangeShape(TypedDict):
    """The range of the last year, today included; of stocks in regular hours."""

    high: Exact
    high_date: str
    low: Exact
    low_date: str
    from_high_pct: Annotated[
        Computed | None, Field(description="of the price; above 0 if a price of extended hours is above the high")
    ]
    from_low_pct: Computed | None
    since: Annotated[str, Field(description="the first day of it; less than a year ago if there are no older bars")]


class PeriodChangeShape(TypedDict):
    """The change of the price since a daily close."""

    pct: Computed
    close: Exact
    date: Annotated[str, Field(description="of that close")]


class RegularCloseShape(TypedDict):
    """The last close of regular hours."""

    price: Exact
    time: str
    change: Annotated[Exact | None, Field(description="since the close of the session before")]
    change_pct: Computed | None


class ExtendedShape(TypedDict):
    """A price outside of regular hours."""

    price: Exact
    time: str
    change: Annotated[Exact, Field(description="since regular_close")]
    change_pct: Computed | None


class PriceShape(Stated):
    """The current price and its changes in per cent; null if there was no price at the earlier time."""

    price: Exact
    change_1h: Annotated[Computed | None, Field(description="per cent; null if no bar is old enough")]
    change_24h: Annotated[
        Computed | None, Field(description="of a stock whose market is closed: since previous_close; null as change_1h")
    ]
    change_24h_since: Annotated[str | None, Field(description="the time of the price that it is compared with")]
    volume_24h: Exact
    previous_close: Annotated[
        Exact | None, Field(description="of the trading day before: regular hours of stocks, the UTC day of crypto")
    ]
    previous_close_time: str | None
    change_day: Annotated[Exact | None, Field(description="price less previous_close")]
    change_day_pct: Computed | None
    day: Annotated[DayShape, Field(description="regular hours of stocks, the UTC day of crypto")]
    range_52w: YearRangeShape | None
    regular_close: Annotated[
        RegularCloseShape | None, Field(description="of a stock outside of regular hours; price while it is closed")
    ]
    extended_hours: Annotated[
        ExtendedShape | None, Field(description="the newest price before or after regular hours; null if there is none")
    ]
    changes: Annotated[
        dict[str, PeriodChangeShape | None], Field(description="1w, 1m, 3m, 6m, ytd, 1y; null without a close that old")
    ]
    timestamp: Annotated[str, Field(description="of the price; as_of is the time of the answer")]


class WindowShape(TypedDict):
    """The closed bars that were measured."""

    timeframe: str
    bars: int
    start: str
    end: str


class VolatilityAnswer(Stated):
    """How much a symbol moves."""

    volatility: Annotated[
        Computed, Field(description="Standard deviation of returns: of log returns per bar, 0.01 is 1 %")
    ]
    annualized_pct: Annotated[
        Computed | None, Field(description="the same in per cent a year, to compare symbols and timeframes")
    ]
    atr: Annotated[Computed, Field(description="Average True Range: Wilder's, 14 bars, in the price's money")]
    atr_pct: Annotated[Computed, Field(description="of the last close")]
    high_low_range: Annotated[Computed, Field(description="high less low of the window")]
    high: Exact
    high_time: str
    low: Exact
    low_time: str
    last_close: Exact
    window: WindowShape
