"""strategy: rankings, signals and the consensus of strategies (TradeStream's strategy-mcp)."""

from __future__ import annotations

from openbell.market.errors import (
    CallTimeout,
    DataError,
    InputError,
    InvalidSymbol,
    Refused,
    StoreError,
    StoreTimeout,
    UnknownSymbol,
)
from openbell.protocol.dialects import EnvelopeDialect
from openbell.protocol.service import Service
from openbell.servers.strategy import tools
from openbell.strategies.errors import InvalidMetric, NoActiveStrategies, NoSignal, NoStrategies, UnknownStrategy

SERVICE = Service(
    name="strategy-mcp",
    command="strategy",
    title="Openbell strategies",
    instructions=(
        "Figures are of bars that were not used to choose a strategy's parameters, after fees and slippage. A strategy is "
        "CANDIDATE until it passes validation; only VALIDATED and DEPLOYED ones count in the consensus."
    ),
    tools=tools.TOOLS,
    opens_records=True,
    answers_early=True,
    searches=True,
    dialect=EnvelopeDialect(
        {
            InvalidSymbol: "INVALID_SYMBOL",
            InvalidMetric: "INVALID_METRIC",
            UnknownStrategy: "STRATEGY_NOT_FOUND",
            NoSignal: "NO_SIGNAL",
            NoStrategies: "SYMBOL_NOT_FOUND",
            UnknownSymbol: "SYMBOL_NOT_FOUND",
            NoActiveStrategies: "NO_ACTIVE_STRATEGIES",
            InputError: "INVALID_PARAMETER",
            CallTimeout: "TIMEOUT",
            StoreTimeout: "TIMEOUT",
            StoreError: "DATABASE_ERROR",
            Refused: "UNAUTHORIZED",
            DataError: "NOT_FOUND",
        },
        by_tool={
            # These have no code for an unknown symbol: nothing can be said about it.
            "get_strategy_signal": {UnknownSymbol: "NO_SIGNAL"},
            "get_strategy_consensus": {UnknownSymbol: "NO_ACTIVE_STRATEGIES"},
        },
    ),
)
