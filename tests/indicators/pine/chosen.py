"""The parameters of the scripts: TradingView's defaults, or those that a run of the scripts chooses."""

from __future__ import annotations

from typing import Any

CHOSEN: dict[str, Any] = {}
"""The parameters that differ from their defaults, by `indicator.parameter`."""


def of(name: str, default: Any) -> Any:
    """The value of a parameter."""
    return CHOSEN.get(name, default)
