"""Sample arguments for every tool of every server, and the whole answer to each as a client would get it.

A tool without a sample fails `test_every_tool_has_samples`, so that no new tool escapes the tests that walk all of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from mcp.shared.exceptions import MCPError

from openbell.desk.desk import Desk
from openbell.protocol.server import _wire
from openbell.protocol.service import Runner
from openbell.protocol.tool import Effect, Tool
from openbell.servers import NAMES, load
from tests.sessions import session

BTC, LATER = "BTC/USD", "DOGE/USD"
"""A symbol that has bars at every time, and one whose bars begin later than the clock of the question."""
UNKNOWN = "nobody-has-this-id"
_BUY = {"symbol": BTC, "side": "buy", "type": "market", "quantity": "0.02"}
_CONFIG = {"symbol": "BINANCE:BTCUSD", "interval": "5m", "width": 400, "height": 300, "studies": [{"name": "RSI"}]}
_DECISION = {"symbol": BTC, "action": "HOLD", "confidence": 0.5, "reasoning": "the sample"}
_SPEC = {
    "name": "SAMPLE_CROSSOVER",
    "indicators": [
        {"id": "fast", "type": "EMA", "params": {"length": "${n}"}},
        {"id": "slow", "type": "SMA", "params": {"length": 30}},
    ],
    "entry_conditions": [{"type": "CROSSED_UP", "indicator": "fast", "params": {"crosses": "slow"}}],
    "exit_conditions": [{"type": "CROSSED_DOWN", "indicator": "fast", "params": {"crosses": "slow"}}],
    "parameters": [{"name": "n", "type": "INTEGER", "min": 5, "max": 20, "defaultValue": 9}],
}

SAMPLES: dict[str, dict[str, list[dict[str, Any]]]] = {
    "chart-signals": {
        "get_signals": [{"symbol": BTC, "timeframe": "1min"}, {"symbol": LATER, "timeframe": "5min"}],
        "get_watchlist": [{}],
        "check_market_status": [{}],
        "get_storage_info": [{}],
        "get_capabilities": [{}],
        "subscribe_alerts": [
            {"symbol": BTC, "timeframe": "1min", "conditions": [{"type": "rsi_oversold"}]},
            {"symbol": LATER, "timeframe": "1min", "conditions": [{"type": "rsi_oversold"}]},
        ],
        "unsubscribe_alerts": [{"subscription_id": "sub_1"}, {"subscription_id": UNKNOWN}],
    },
    "strategy": {
        "get_top_strategies": [
            {"symbol": BTC, "limit": 2},
            {"symbol": LATER},
            {"symbol": BTC, "metric": "return", "offset": 1},
        ],
        "get_strategy_signal": [
            {"strategy_id": "MACD_CROSSOVER", "symbol": BTC},
            {"strategy_id": UNKNOWN, "symbol": BTC},
            {"strategy_id": "MACD_CROSSOVER", "symbol": LATER},
        ],
        "get_strategy_consensus": [{"symbol": BTC}, {"symbol": LATER}],
    },
    "backtest": {
        "run_backtest": [{"strategy_id": "MACD_CROSSOVER", "symbol": BTC}, {"strategy_id": UNKNOWN, "symbol": BTC}],
        "get_historical_performance": [
            {"strategy_id": "MACD_CROSSOVER", "symbol": BTC, "period": "1y"},
            {"strategy_id": UNKNOWN},
        ],
    },
    "strategy-db": {
        "get_top_specs": [{"limit": 2}, {"source": "LLM_GENERATED"}],
        "get_implementations": [{"spec_id": "MACD_CROSSOVER", "status": "ALL"}, {"spec_id": UNKNOWN}],
        "submit_new_spec": [
            _SPEC,
            {**_SPEC, "name": "MACD_CROSSOVER"},
            {**_SPEC, "indicators": [{"id": "x", "type": "NONE"}]},
        ],
    },
    "market-data": {
        "get_candles": [
            {"symbol": BTC, "timeframe": "5m", "limit": 20},
            {"symbol": LATER},
            {"symbol": BTC, "offset": 3},
        ],
        "get_current_price": [{"symbol": BTC}, {"symbol": LATER}],
        "get_volatility": [{"symbol": BTC, "timeframe": "1m"}, {"symbol": LATER}],
    },
    "arche": {
        "quotes.live": [{"tickers": [BTC, "eth-usd"]}, {"tickers": [LATER]}, {"tickers": [LATER, BTC]}],
        "quotes.historical": [
            {"tickers": [BTC, "ETH/USD"], "from": "2025-01-01", "to": "2025-12-31", "interval": "1m", "page_size": 3},
            {"tickers": [BTC, LATER], "from": "2026-01-01", "to": "2026-12-31", "interval": "1d", "page": 2},
            {"tickers": [LATER], "from": "2026-01-01", "to": "2026-12-31", "interval": "1m"},
        ],
        "system.health": [{}],
        "system.metadata": [{}],
    },
    "chart-image": {
        # The documentation is the vendor's: without it the answer is the package's, with a note and a time of its own.
        "fetch_chart_documentation": [{"section": "parameters"}],
        "get_exchanges": [{}],
        "get_symbols": [{"exchange": "BINANCE", "search": "btc", "limit": 5}, {"exchange": "NASDAQ"}],
        "construct_chart_config": [
            {"naturalLanguage": "Bitcoin with RSI since Monday"},
            {"naturalLanguage": "a chart", "symbol": "AAPL"},
            {"naturalLanguage": "nothing"},
        ],
        "validate_chart_config": [
            {"config": {**_CONFIG, "range": "1Y"}, "planLevel": "BASIC"},
            {"config": {"symbol": "x"}},
        ],
        "generate_chart_image": [
            {"config": _CONFIG},
            {"config": {**_CONFIG, "symbol": "BINANCE:DOGEUSD"}, "format": "jpeg"},
        ],
    },
    "portfolio": {
        "get_positions": [{}, {"symbol": "ETH/USD"}, {"limit": 1}],
        "get_balance": [{}],
        "validate_trade": [
            {"symbol": BTC, "side": "BUY", "size": 0.5},
            {"symbol": "ETH/USD", "side": "SELL", "size": 0.5},
            {"symbol": BTC, "side": "BUY", "size": 1e6},
            {"symbol": LATER, "side": "BUY", "size": 1},
        ],
    },
    "decisions": {
        "get_recent_decisions": [{}, {"symbol": BTC, "limit": 2, "offset": 1}, {"action": "BUY"}],
        "save_decision": [_DECISION],
    },
    "chartgen": {
        "generate_chart": [
            {
                "symbol": BTC,
                "timeframe": "5m",
                "format": "both",
                "bars": 40,
                "width": 320,
                "height": 200,
                "trades": True,
            },
            {"symbol": BTC, "timeframe": "1m", "format": "series", "bars": 20, "indicators": ["rsi"]},
            {"symbol": LATER, "format": "summary"},
        ],
        "list_indicators": [{}, {"name": "bollinger"}, {"detail": True}],
        "get_indicators": [{"symbol": BTC, "interval": "1m", "indicators": ["rsi", "macd"]}],
        "get_orders": [
            {},
            {"filter": "open", "detail": True},
            {"limit": 2, "offset": 1},
            {"limit": 1, "cursor": UNKNOWN},
        ],
        "get_positions": [{}],
        "get_balance": [{}],
        "list_alerts": [{}],
        "list_subscriptions": [{}],
        "get_notifications": [{"cursor": 0}, {"limit": 1}, {}],
        "place_order": [{**_BUY, "client_order_id": "sample"}, {**_BUY, "symbol": LATER}, {**_BUY, "quantity": "9999"}],
        "cancel_order": [{"order_id": UNKNOWN}],
        "set_alert": [
            {"symbol": BTC, "condition": {"price_above": 1.0}},
            {"symbol": LATER, "condition": {"price_above": 1.0}},
        ],
        "cancel_alert": [{"alert_id": UNKNOWN}],
        "subscribe_notifications": [{"symbols": [BTC]}],
        "unsubscribe_notifications": [{}],
    },
}
WRITES = {Effect.WRITE, Effect.DESTRUCTIVE}
_RANDOM = re.compile(r"\b(dec_[0-9a-f]{20}|alert_[0-9a-f]+|local-[0-9a-f]{24})\b")
_LATENCY = re.compile(r'"latency_ms":[0-9.e-]+')
_CALL = re.compile(r'"(request_id|trace_id)":"[0-9a-f]{24}"|"(generatedAt|cachedAt)":"[^"]*"')
"""The id of a call and the machine's time are its own, whatever the answer."""


def every_tool() -> list[tuple[str, Tool]]:
    """Each tool with its server's name; those that write come last, so that what they write is asked for by none."""
    found = [(name, tool) for name in NAMES for tool in load(name).tools]
    return sorted(found, key=lambda pair: pair[1].effect in WRITES)


def samples(server: str, tool: str) -> list[dict[str, Any]]:
    """The arguments to call a tool with; an `AssertionError` says which tool has none."""
    found = SAMPLES.get(server, {}).get(tool)
    assert found, f"add sample arguments for {server} {tool} to tests/servers/every_tool.py"
    return found


class Walk:
    """One client's calls to all servers of a desk, the answers as bytes."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._runners: dict[str, Runner] = {}
        self._session = session()

    async def answer(self, server: str, tool: str, arguments: dict[str, Any]) -> str:
        """The whole result, or the JSON-RPC error, but for latency and call; work that waits for it to leave is done."""
        runner = self._runners.setdefault(server, Runner(load(server), self._desk))
        reply = await runner.run(tool, arguments, self._session)
        try:
            result = _wire(reply)
        except MCPError as error:
            result = {"code": error.error.code, "message": error.error.message, "data": error.error.data}
        await self._session.replies.sent(None)
        text = json.dumps(result, sort_keys=True, separators=(",", ":"))
        return _CALL.sub("", _LATENCY.sub('"latency_ms":0', text.replace('\\"', '"')))

    async def all(self, wanted: Callable[[str, Tool], bool]) -> dict[str, str]:
        """The answers of the wanted tools to their samples; ids that a writing tool has made are left out."""
        found: dict[str, str] = {}
        for server, tool in every_tool():
            for arguments in samples(server, tool.name) if wanted(server, tool) else ():
                answer = await self.answer(server, tool.name, arguments)
                shown = _RANDOM.sub("ID", answer) if tool.effect in WRITES else answer
                found[f"{server} {tool.name} {json.dumps(arguments)}"] = shown
        return found


def reads(_server: str, tool: Tool) -> bool:
    """Returns True if a tool writes nothing of its own."""
    return tool.effect not in WRITES
