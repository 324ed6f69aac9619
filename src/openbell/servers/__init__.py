"""One module per contract: its tools, its dialect, and handlers of a few lines that call the desk."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from openbell.market.errors import InvalidParameter
from openbell.market.nearest import did_you_mean

if TYPE_CHECKING:
    from openbell.protocol.service import Service

NAMES = {
    "chart-signals": "chart_signals",
    "market-data": "market_data",
    "portfolio": "portfolio",
    "decisions": "decisions",
    "chartgen": "chartgen",
}
"""The servers by the name that `openbell mcp` takes; each is loaded alone."""


def load(name: str) -> Service:
    """The service of a name; the error names those there are."""
    if name not in NAMES:
        raise InvalidParameter(f"no server {name!r}; there are {', '.join(NAMES)}{did_you_mean(name, NAMES)}")
    service: Service = import_module(f"{__name__}.{NAMES[name]}").SERVICE
    return service
