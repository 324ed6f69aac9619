"""backtest: runs of strategies over past bars, and what they have earned (TradeStream's backtest-mcp)."""

from __future__ import annotations

from openbell.backtest.errors import BacktesterUnavailable, BacktestTimeout
from openbell.market.errors import (
    CallTimeout,
    DataError,
    InputError,
    InsufficientData,
    InvalidSymbol,
    Refused,
    StoreError,
    StoreTimeout,
    UnknownSymbol,
)
from openbell.protocol.dialects import EnvelopeDialect
from openbell.protocol.service import Service
from openbell.servers.backtest import tools
from openbell.strategies.errors import InvalidDateRange, InvalidPeriod, NoPerformance, NoSignal, UnknownStrategy

SERVICE = Service(
    name="backtest-mcp",
    command="backtest",
    title="Openbell backtests",
    instructions=(
        "Decisions are made at the close of a bar and filled at the next open, with the costs of paper trading. Returns are "
        "shares: 0.05 is 5 %."
    ),
    tools=tools.TOOLS,
    opens_records=True,
    answers_early=True,
    dialect=EnvelopeDialect(
        {
            UnknownStrategy: "STRATEGY_NOT_FOUND",
            InvalidSymbol: "INVALID_SYMBOL",
            UnknownSymbol: "INVALID_SYMBOL",
            InvalidDateRange: "INVALID_DATE_RANGE",
            InvalidPeriod: "INVALID_PERIOD",
            InsufficientData: "INSUFFICIENT_DATA",
            BacktestTimeout: "BACKTEST_TIMEOUT",
            BacktesterUnavailable: "GRPC_ERROR",
            NoPerformance: "NO_PERFORMANCE_DATA",
            NoSignal: "NO_PERFORMANCE_DATA",
            InputError: "INVALID_PARAMETER",
            CallTimeout: "TIMEOUT",
            StoreTimeout: "TIMEOUT",
            StoreError: "DATABASE_ERROR",
            Refused: "UNAUTHORIZED",
            DataError: "INSUFFICIENT_DATA",
        },
        by_tool={"run_backtest": {CallTimeout: "BACKTEST_TIMEOUT"}},
    ),
)
