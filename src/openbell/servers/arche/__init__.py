"""arche: live and historical quotes of the quotes API (Arche's arche-mcp)."""

from __future__ import annotations

from urllib.parse import urlsplit

from openbell.desk.settings import Settings
from openbell.market.errors import CallTimeout, DataError, InputError, Refused, StoreError
from openbell.protocol.dialects import ArcheDialect
from openbell.protocol.service import Service
from openbell.servers.arche import tools


def _remote(settings: Settings) -> str:
    """Returns the name of the API that the settings name."""
    return f"arche:{urlsplit(settings.arche_url).netloc}" if settings.arche_url else ""


SERVICE = Service(
    name="arche-mcp",
    command="arche",
    title="Openbell Arche quotes",
    instructions=(
        "Prices are decimal strings. Bars are closed ones, pages run oldest first, dates are UTC days. source_status 206 "
        "means that some tickers have no answer: the second text block of a result names them, and says what the prices are "
        "and how old. system.metadata has the limits."
    ),
    tools=tools.TOOLS,
    dialect=ArcheDialect(
        {
            InputError: "VALIDATION_ERROR",
            Refused: "FORBIDDEN",
            CallTimeout: "MARKET_DATA_UNAVAILABLE",
            DataError: "MARKET_DATA_UNAVAILABLE",
            StoreError: "MARKET_DATA_UNAVAILABLE",
        }
    ),
    remote=_remote,
)
