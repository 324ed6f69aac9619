"""One module or package for each contract: its tools, its dialect, and short handlers that call the desk."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from openbell.market.errors import InvalidParameter
from openbell.market.nearest import did_you_mean

if TYPE_CHECKING:
    from openbell.protocol.service import Service

NAMES = {
    "chart-signals": "chart_signals",
    "strategy": "strategy",
    "market-data": "market_data",
    "portfolio": "portfolio",
    "backtest": "backtest",
    "decisions": "decisions",
    "strategy-db": "strategy_db",
    "arche": "arche",
    "chart-image": "chart_image",
    "chartgen": "chartgen",
}
"""The module of each server by its name in `openbell mcp`. Only the requested server is imported."""


def load(name: str, *, underscore_names: bool = False) -> Service:
    """Returns the service of a name. Raises `InvalidParameter`, which lists the names, if there is none.

    With `underscore_names`, tools with dots in their names are there a second time with underscores.
    """
    if name not in NAMES:
        raise InvalidParameter(f"no server {name!r}; the servers are {', '.join(NAMES)}{did_you_mean(name, NAMES)}")
    service: Service = import_module(f"{__name__}.{NAMES[name]}").SERVICE
    return service.with_underscores() if underscore_names else service
