"""The contract's names of timeframes and market hours, and the types of its results."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, WithJsonSchema, with_config
from typing_extensions import TypedDict

from openbell.market.timeframes import Timeframe
from openbell.protocol.numbers import Computed, Exact
from openbell.protocol.result_fields import From, Stated
from openbell.signals.crossings import SignalCrossings

TIMEFRAMES = {"1min": Timeframe.M1, "5min": Timeframe.M5, "15min": Timeframe.M15, "1hour": Timeframe.H1}

Symbol = Annotated[str, Field(description="AAPL, BTC/USD: a stock or crypto")]
_SPELLINGS = "other spellings such as 1m and 1h are read too"
TimeframeName = Annotated[str, Field(description=_SPELLINGS, json_schema_extra={"enum": list(TIMEFRAMES)})]
"""A string, not an enum: for a name outside the list, the handler raises the contract's own error."""


class PreviousShape(TypedDict):
    """The indicators at the previous closed bar."""

    price: Exact
    ema9: Computed
    ma10: Computed
    macd: Computed
    signal: Computed
    hist: Computed
    rsi: Computed
    bb_upper: Computed
    bb_middle: Computed
    bb_lower: Computed
    volume: Exact
    vwap: Annotated[
        Computed | None, Field(description="of the session, from minutes, unlike chartgen's; null outside it")
    ]
    time: str


class SnapshotShape(PreviousShape):
    """The indicators at the newest closed bar."""

    prev_snapshot: PreviousShape


_CROSSINGS: dict[str, Any] = {
    "properties": {each.name: {"type": "boolean"} for each in fields(SignalCrossings)},
    "required": [each.name for each in fields(SignalCrossings)],
    "type": "object",
}
CrossingsShape = Annotated[dict[str, bool], WithJsonSchema(_CROSSINGS)]
"""The nine crossings of the contract by name."""


class ReadingShape(TypedDict):
    """What the snapshot means."""

    rsi: Literal["overbought", "oversold", "neutral"]
    macd: Literal["above signal", "below signal", "at signal"]
    bollinger: Literal["above upper", "inside", "below lower"]
    price_vs_ema9_pct: Computed
    bb_position_pct: Annotated[Computed | None, Field(description="0 at the lower band, 100 at the upper one")]
    squeeze: Annotated[
        bool,
        Field(description="bands narrower than at 4/5 of the last 120 bars; bb_squeeze is a fixed 4 % of the price"),
    ]


class LastCrossing(TypedDict):
    """The newest bar at which a crossing was true."""

    time: str
    bars_ago: Annotated[int, Field(description="0: the newest closed bar")]


class RiskAnchorShape(TypedDict):
    """A stop two ATR(14) away from the price."""

    price: Computed
    type: Literal["long_stop", "short_stop"]
    distance_pct: Computed


_READY: dict[str, Any] = {
    "oneOf": [
        {"properties": {"ready": {"const": True}}, "required": ["symbol", "asset_type", "tf", "snapshot", "crossings"]},
        {"properties": {"ready": {"const": False}}, "required": ["reason"]},
    ]
}


@with_config(ConfigDict(json_schema_extra=_READY))
class SignalResponse(TypedDict):
    """Signals, or the reason why there are none yet."""

    ready: bool
    reason: NotRequired[str]
    symbol: NotRequired[str]
    asset_type: NotRequired[Literal["stock", "crypto"]]
    tf: NotRequired[str]
    snapshot: NotRequired[SnapshotShape]
    crossings: NotRequired[CrossingsShape]
    trend_state: NotRequired[Literal["bullish", "bearish", "consolidating", "mixed"]]
    risk_anchor: NotRequired[RiskAnchorShape]
    reading: NotRequired[ReadingShape]
    last_crossings: NotRequired[
        Annotated[
            dict[str, LastCrossing | None], Field(description="by crossing; null if not within the newest 3,000 bars")
        ]
    ]
    data_source: NotRequired[str]
    session: NotRequired[str]
    as_of: NotRequired[str]
    note: NotRequired[Annotated[str, Field(description="why something is missing")]]


class WatchedShape(TypedDict):
    """One line of the watchlist."""

    symbol: str
    price: Annotated[Exact | None, Field(description="null until there are enough bars for signals")]
    rsi: Annotated[Computed | None, Field(description="null as price")]
    signals: list[str]
    change_day_pct: NotRequired[
        Annotated[Computed | None, From("change_day"), Field(description="since the previous close")]
    ]
    price_time: NotRequired[Annotated[str, From("end"), Field(description="when the bar of the price ended")]]


class WatchedByClass(TypedDict):
    """The watchlist by asset class."""

    stocks: list[WatchedShape]
    crypto: list[WatchedShape]


class MarketHours(TypedDict):
    """When the markets trade, in words."""

    stocks: str
    crypto: str


MARKET_HOURS: MarketHours = {"stocks": "9:30 AM - 4:00 PM ET (weekdays)", "crypto": "24/7"}


class MoveShape(TypedDict):
    """A symbol and its change of the day."""

    symbol: str
    change_day_pct: Computed


class WatchlistSummary(TypedDict):
    """The symbols that stand out."""

    up: Annotated[int, Field(description="symbols above their previous close")]
    down: int
    best: Annotated[list[MoveShape], Field(description="the largest gains of the day, at most 3")]
    worst: list[MoveShape]
    by_signal: Annotated[dict[str, list[str]], Field(description="symbols by active crossing")]


class WatchlistResponse(Stated):
    """The whole watchlist; RSI and signals at one timeframe."""

    watchlist: WatchedByClass
    timeframe: Annotated[str, Field(description="of rsi and signals; prices are of 1min bars")]
    summary: WatchlistSummary
    timestamp: str
    market_hours: MarketHours


class StockStatus(TypedDict):
    """The US stock market."""

    open: bool
    session: Literal["premarket", "regular", "afterhours", "closed"]
    next_open: str
    next_open_at: str | None
    next_close: Annotated[str | None, Field(description="of regular hours, of this session or the next")]
    next_close_at: str | None
    changes_in: Annotated[str, Field(description="until regular hours open or close: opens in 4 hours and 26 minutes")]
    current_time_et: str


class CryptoStatus(TypedDict):
    """The crypto market, which never closes."""

    open: bool
    note: str


class MarketStatusResponse(TypedDict):
    """Which markets are open."""

    stocks: StockStatus
    crypto: CryptoStatus
    timestamp: str


class StoredSymbols(TypedDict):
    """File names of symbols by asset class."""

    stocks: list[str]
    crypto: list[str]


class StoredSeries(TypedDict):
    """The symbols that have bars of one timeframe."""

    total: int
    symbols: Annotated[list[str], Field(description="the first 100")]


class StorageInfoResponse(TypedDict):
    """The stored symbols, their folder and its size."""

    data_directory: str
    stored_symbols: StoredSymbols
    series: Annotated[dict[str, StoredSeries], Field(description="by the timeframe of the stored bars: 1m, 1d, …")]
    total_size_mb: Annotated[
        Exact,
        Field(description="on disk; in InfluxDB only if the desk's user is an admin there, otherwise the buffer's"),
    ]
    data_source: str
    set_aside: NotRequired[Annotated[list[str], Field(description="damaged files that are no longer read")]]


class CapabilitiesResponse(TypedDict):
    """The capabilities of this server."""

    version: str
    protocol: str
    indicators: list[str]
    timeframes: list[str]
    asset_types: list[str]
    data_source: str
    storage: str
    max_bars_in_memory: int


class SubscriptionResponse(TypedDict):
    """An open subscription."""

    subscription_id: Annotated[str, From("id")]
    symbol: Annotated[str, From("instrument.symbol")]
    timeframe: Annotated[str, From("spelling")]
    conditions: Annotated[list[str], From("crossings")]
    throttle_ms: int


class UnsubscribedResponse(TypedDict):
    """An ended subscription."""

    subscription_id: str
    unsubscribed: bool
