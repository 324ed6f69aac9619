"""strategy-db: strategy specs and their implementations (TradeStream's strategy-db-mcp)."""

from __future__ import annotations

from openbell.market.errors import CallTimeout, InputError, Refused, StoreError, StoreTimeout
from openbell.protocol.dialects import EnvelopeDialect
from openbell.protocol.service import Service
from openbell.servers.strategy_db import tools
from openbell.strategies.errors import (
    DuplicateName,
    InvalidConditions,
    InvalidIndicators,
    InvalidName,
    InvalidSchema,
    InvalidSource,
    InvalidStatus,
    UnknownSpec,
)

SERVICE = Service(
    name="strategy-db-mcp",
    command="strategy-db",
    title="Openbell strategy specs",
    instructions=(
        "A submitted spec is tried on the watched symbols, out of sample. Conditions are ANDed; types are CROSSED_UP, "
        "CROSSED_DOWN, OVER, UNDER, IS_RISING, IS_FALLING, AND, OR, NOT, and in exits STOP_LOSS, STOP_GAIN, "
        "TRAILING_STOP_LOSS."
    ),
    tools=tools.TOOLS,
    opens_records=True,
    answers_early=True,
    searches=True,
    dialect=EnvelopeDialect(
        {
            InvalidName: "INVALID_NAME",
            DuplicateName: "DUPLICATE_NAME",
            InvalidIndicators: "INVALID_INDICATORS",
            InvalidConditions: "INVALID_CONDITIONS",
            InvalidSchema: "SCHEMA_VALIDATION_ERROR",
            InvalidSource: "INVALID_SOURCE",
            InvalidStatus: "INVALID_STATUS",
            UnknownSpec: "SPEC_NOT_FOUND",
            InputError: "INVALID_PARAMETER",
            CallTimeout: "TIMEOUT",
            StoreTimeout: "TIMEOUT",
            StoreError: "DATABASE_ERROR",
            Refused: "UNAUTHORIZED",
        }
    ),
)
