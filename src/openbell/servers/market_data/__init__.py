"""market-data: candles, the current price, volatility (TradeStream's market-data-mcp)."""

from __future__ import annotations

from openbell.market.errors import (
    CallTimeout,
    FeedUnavailable,
    InputError,
    InsufficientData,
    InvalidSymbol,
    InvalidTimeframe,
    NoData,
    NotFinite,
    Refused,
    StaleData,
    StoreError,
    StoreTimeout,
    UnknownSymbol,
)
from openbell.protocol.dialects import EnvelopeDialect
from openbell.protocol.service import Service
from openbell.servers.market_data import tools

SERVICE = Service(
    name="market-data-mcp",
    command="market-data",
    title="Openbell market data",
    instructions=(
        "Candles are closed bars, oldest first; offset counts from the newest. Times are UTC and name the bar's open."
    ),
    tools=tools.TOOLS,
    dialect=EnvelopeDialect(
        {
            InvalidSymbol: "INVALID_SYMBOL",
            InvalidTimeframe: "INVALID_TIMEFRAME",
            InputError: "INVALID_PARAMETER",
            UnknownSymbol: "NOT_FOUND",
            InsufficientData: "INSUFFICIENT_DATA",
            NotFinite: "INSUFFICIENT_DATA",
            StaleData: "STALE_DATA",
            NoData: "NO_DATA",
            FeedUnavailable: "NO_DATA",
            CallTimeout: "TIMEOUT",
            StoreTimeout: "TIMEOUT",
            StoreError: "DATABASE_ERROR",
            Refused: "UNAUTHORIZED",
        },
        by_tool={
            "get_candles": {UnknownSymbol: "NO_DATA"},
            "get_current_price": dict.fromkeys((UnknownSymbol, NoData, FeedUnavailable), "SYMBOL_NOT_FOUND"),
            "get_volatility": dict.fromkeys((NoData, FeedUnavailable), "INSUFFICIENT_DATA"),
        },
    ),
)
