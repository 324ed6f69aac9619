"""decisions: the journal of what an agent decided and why (TradeStream's decisions-mcp)."""

from __future__ import annotations

from openbell.market.errors import CallTimeout, InputError, InvalidSymbol, Refused, StoreError, StoreTimeout
from openbell.protocol.dialects import EnvelopeDialect
from openbell.protocol.service import Service
from openbell.servers.decisions import tools
from openbell.trading.request import InvalidAction, InvalidConfidence, ReasoningTooLong

SERVICE = Service(
    name="decisions-mcp",
    command="decisions",
    title="Openbell decisions",
    instructions="Decisions are kept for good, in a chain of hashes that openbell verify checks; newest first.",
    tools=tools.TOOLS,
    opens_records=True,
    dialect=EnvelopeDialect(
        {
            InvalidSymbol: "INVALID_SYMBOL",
            InvalidAction: "INVALID_ACTION",
            InvalidConfidence: "INVALID_CONFIDENCE",
            ReasoningTooLong: "REASONING_TOO_LONG",
            InputError: "INVALID_PARAMETER",
            CallTimeout: "TIMEOUT",
            StoreTimeout: "TIMEOUT",
            StoreError: "DATABASE_ERROR",
            Refused: "UNAUTHORIZED",
        }
    ),
)
