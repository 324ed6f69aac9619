"""portfolio: positions, balance, and the check of a trade against the risk rules (TradeStream's portfolio-mcp)."""

from __future__ import annotations

from openbell.market.errors import (
    CallTimeout,
    DataError,
    InputError,
    InsufficientFunds,
    InvalidSymbol,
    Refused,
    StoreError,
    StoreTimeout,
    UnknownSymbol,
)
from openbell.protocol.dialects import EnvelopeDialect
from openbell.protocol.service import Service
from openbell.servers.portfolio import tools
from openbell.trading.accounts import AccountNotFound
from openbell.trading.broker import BrokerError
from openbell.trading.request import InvalidSide, InvalidSize

SERVICE = Service(
    name="portfolio-mcp",
    command="portfolio",
    title="Openbell portfolio",
    instructions="Money is in USD. validate_trade asks the same risk gate as every order and changes nothing.",
    tools=tools.TOOLS,
    opens_records=True,
    dialect=EnvelopeDialect(
        {
            InvalidSymbol: "INVALID_SYMBOL",
            UnknownSymbol: "INVALID_SYMBOL",
            InvalidSide: "INVALID_SIDE",
            InvalidSize: "INVALID_SIZE",
            InputError: "INVALID_PARAMETER",
            InsufficientFunds: "INSUFFICIENT_BALANCE",
            AccountNotFound: "ACCOUNT_NOT_FOUND",
            DataError: "NOT_FOUND",
            CallTimeout: "TIMEOUT",
            StoreTimeout: "TIMEOUT",
            StoreError: "DATABASE_ERROR",
            BrokerError: "DATABASE_ERROR",
            Refused: "UNAUTHORIZED",
        }
    ),
)
