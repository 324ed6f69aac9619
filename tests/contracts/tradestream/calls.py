"""Arguments of a call of each tool."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from openbell.desk.settings import Settings
from tests.servers.reverting_market import BUYS_LOW


def decision(**given: Any) -> dict[str, Any]:
    """The arguments of save_decision."""
    return {"symbol": "BTC/USD", "action": "HOLD", "confidence": 0.5, "reasoning": "because", **given}


def spec(name: str, **given: Any) -> dict[str, Any]:
    """The arguments of submit_new_spec."""
    return {**BUYS_LOW, "name": name, **given}


BTC = "BTC/USD"
SERVERS = ("strategy", "market-data", "portfolio", "backtest", "decisions", "strategy-db")
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "get_top_strategies": ("strategy", {"symbol": BTC}),
    "get_strategy_signal": ("strategy", {"strategy_id": "BBAND_WILLIAMS_R", "symbol": BTC}),
    "get_strategy_consensus": ("strategy", {"symbol": BTC}),
    "get_candles": ("market-data", {"symbol": BTC}),
    "get_current_price": ("market-data", {"symbol": BTC}),
    "get_volatility": ("market-data", {"symbol": BTC}),
    "get_positions": ("portfolio", {}),
    "get_balance": ("portfolio", {}),
    "validate_trade": ("portfolio", {"symbol": BTC, "side": "BUY", "size": 0.01}),
    "run_backtest": ("backtest", {"strategy_id": "MACD_CROSSOVER", "symbol": BTC}),
    "get_historical_performance": ("backtest", {"strategy_id": "BBAND_WILLIAMS_R", "symbol": BTC}),
    "get_recent_decisions": ("decisions", {}),
    "save_decision": ("decisions", decision()),
    "get_top_specs": ("strategy-db", {}),
    "get_implementations": ("strategy-db", {"spec_id": "BBAND_WILLIAMS_R", "status": "ALL"}),
    "submit_new_spec": ("strategy-db", spec("SUBMITTED_WITH_METADATA")),
}
"""A call of each tool, in the order of the page."""
LISTS = (
    "get_top_strategies",
    "get_candles",
    "get_positions",
    "get_recent_decisions",
    "get_top_specs",
    "get_implementations",
)


def default_of(setting: str) -> Any:
    """The value of a setting that nobody has set."""
    return next(each.default for each in fields(Settings) if each.name == setting)
