"""chart-signals: signals and crossings on closed bars, the watchlist, market hours, storage, alerts."""

from __future__ import annotations

from openbell.market.errors import (
    DataError,
    InputError,
    InsufficientData,
    InvalidSymbol,
    InvalidTimeframe,
    Refused,
    StoreError,
    UnknownSymbol,
)
from openbell.protocol.dialects import INVALID_PARAMS, JsonRpcDialect
from openbell.protocol.service import Service
from openbell.protocol.session import Scope
from openbell.servers.chart_signals import alerts, market, signals
from openbell.signals.crossing_alerts import METHOD
from openbell.signals.crossings import NOT_COVERED

SERVICE = Service(
    name="chart-signals",
    title="Openbell chart signals",
    instructions=(
        "Signals use closed bars only. get_signals for one symbol, get_watchlist for an overview, "
        "subscribe_alerts to be notified. Times are UTC and name the bar's open."
    ),
    tools=(*signals.TOOLS, *market.TOOLS, *alerts.TOOLS),
    pushes={METHOD: Scope.READ},
    not_covered=NOT_COVERED,
    dialect=JsonRpcDialect(
        {
            InsufficientData: (-32001, "Insufficient data"),
            InvalidSymbol: (-32002, "Invalid symbol"),
            UnknownSymbol: (-32002, "Invalid symbol"),
            InvalidTimeframe: (-32003, "Invalid timeframe"),
            DataError: (-32004, "Market data unavailable"),
            StoreError: (-32004, "Market data unavailable"),
            InputError: (INVALID_PARAMS, "Invalid params"),
            Refused: (INVALID_PARAMS, "Refused"),
        }
    ),
)
