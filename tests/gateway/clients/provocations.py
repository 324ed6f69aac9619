"""Calls that provoke each declared error code of each tool for real, on desks that lack what the call needs."""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from openbell.desk.quotes.arche.errors import ADAPTER, STATUSES
from openbell.market.errors import InputError, InvalidParameter
from openbell.protocol.dialects import ArcheDialect
from openbell.protocol.service import Service
from openbell.protocol.tool import Tool
from openbell.servers import NAMES, load
from tests.servers.every_tool import BTC, SAMPLES, UNKNOWN
from tests.servers.quotes_server import failure, reply

NOWHERE = "127.0.0.1:9"
"""The port `discard`, on which nothing listens."""
DESKS: dict[str, dict[str, str]] = {
    "stored": {"FEED": "none", "BACKTESTER": NOWHERE, "RATE_READ": "0", "RATE_TRADE": "0", "RATE_WRITE": "0"},
    "simulated": {
        "FEED": "sim",
        "BACKTEST_TIMEOUT": "0.000001",
        "RATE_READ": "0",
        "RATE_TRADE": "0",
        "RATE_WRITE": "0",
    },
    "broken": {"FEED": "none", "INFLUX_URL": f"http://{NOWHERE}"},
    "hurried": {"FEED": "sim", "TIMEOUT": "0.0001"},
    "without an account": {"FEED": "sim", "ACCOUNT": "savings"},
    "guarded": {"FEED": "sim", "ACCOUNT": "guarded"},
    "read-only": {"FEED": "sim", "READ_ONLY": "1", "TRADE": ""},
    "cut off": {"FEED": "alpaca", "AS_OF": "2025-09-19T20:00:00Z"},
    "live": {"FEED": "alpaca", "BROKER": "alpaca", "APPROVAL": "none"},
    "of a quotes API": {"FEED": "none"},
    "of a vendor that refuses": {"FEED": "none", "CHART_IMG_PLAN": "ULTRA"},
    "of a vendor that is busy": {"FEED": "none", "CHART_IMG_PLAN": "ULTRA"},
}
"""The settings of each desk: `stored` has old minutes of AAPL, `guarded` an account whose token is not given.

`cut off` and `live` have a feed that does not respond. The clock of `cut off` stands, so that a call waits until the feed
has failed; the orders of `live` go to a broker that does not respond either. The records of `broken` are no database, and
its bars are in a database that does not respond. The last three ask servers that `test_errors.py` starts.
"""
VENDOR = {
    "ALPACA_API_KEY": "key",
    "ALPACA_SECRET_KEY": "secret",
    "ALPACA_DATA_URL": f"http://{NOWHERE}",
    "ALPACA_STREAM_URL": f"ws://{NOWHERE}",
    "ALPACA_TRADING_URL": f"http://{NOWHERE}",
}
"""The variables of the feed of `cut off` and `live`."""
AAPL = "AAPL"
MACD = {"strategy_id": "MACD_CROSSOVER"}
_SPEC = SAMPLES["strategy-db"]["submit_new_spec"][0]
_DECISION = SAMPLES["decisions"]["save_decision"][0]
_TRADE = {"symbol": BTC, "side": "BUY", "size": 0.001}
_ALERT = {"symbol": BTC, "timeframe": "1min", "conditions": [{"type": "rsi_oversold"}]}
_RANGE = {"from": "2025-01-01", "to": "2025-12-31", "interval": "1d"}
_DATES = {"start_date": "2024-01-02", "end_date": "2024-01-02"}
_DRAWN = SAMPLES["chart-image"]["generate_chart_image"][0]["config"]
_ORDER = {"side": "buy", "type": "market", "quantity": "1"}
_CONDITION = {"condition": {"price_above": 1}}
SENTENCES: dict[str, str] = {
    "InvalidParameter": "an_argument_that_no_tool_has|no indicator 'nope'",
    "InvalidSymbol": "Invalid symbol",
    "UnknownSymbol": "Unknown symbol ZZZZ|no bars of NASDAQ:ZZZZ",
    "DataError": "^Alpaca does not respond",
    "StoreError": r"records\.sqlite failed: file is not a database|^InfluxDB at .* cannot be reached",
    "Refused": "started with --read-only|with --trade",
    "AccountNotFound": "no account savings",
    "OrderError": "^no order 'x'|stale price",
    "BrokerError": "^Alpaca does not answer",
    "NoSuchAlert": "^no alert 'x'",
    "ConfigRefused": "^Invalid configuration",
    "VendorError": r"^Invalid API key\. Check CHART_IMG_API_KEY|^Rate limit exceeded\. Try again in 7 seconds\.",
}
"""chartgen's and chart-image's errors have no code: how an agent tells them apart, by the name of the declared class."""
MESSAGES: dict[int, str] = {
    -32601: "Unknown tool: no_such_tool; there are ",
    -32602: "Unknown tool: no_such_tool; there are |Invalid params: .*an_argument_that_no_tool_has is not an argument",
    -32001: "Insufficient data$",
    -32002: r"Invalid symbol '\?'",
    -32003: "Invalid timeframe '2min': use one of ",
    -32004: "Market data unavailable: .* took longer than ",
}
"""The messages of JSON-RPC errors, by code. A client's own complaint about a result has the code -32602 too."""


class Provocation(NamedTuple):
    """A call that fails, and the code of its error."""

    desk: str
    server: str
    tool: str
    arguments: dict[str, Any]
    code: str | int


_PROVOKED: list[tuple[str, str, str, dict[str, Any], str | int]] = [
    ("stored", "chart-signals", "get_signals", {"symbol": AAPL, "timeframe": "1hour"}, -32001),
    ("stored", "chart-signals", "get_signals", {"symbol": "?", "timeframe": "1min"}, -32002),
    ("stored", "chart-signals", "get_signals", {"symbol": AAPL, "timeframe": "2min"}, -32003),
    ("stored", "chart-signals", "get_watchlist", {"timeframe": "2min"}, -32003),
    ("stored", "chart-signals", "subscribe_alerts", {**_ALERT, "symbol": "?"}, -32002),
    ("stored", "chart-signals", "subscribe_alerts", {**_ALERT, "symbol": AAPL, "timeframe": "1hour"}, -32001),
    ("stored", "chart-signals", "subscribe_alerts", {**_ALERT, "timeframe": "2min"}, -32003),
    ("stored", "strategy", "get_top_strategies", {"symbol": "?"}, "INVALID_SYMBOL"),
    ("stored", "strategy", "get_top_strategies", {"symbol": "ZZZZ"}, "SYMBOL_NOT_FOUND"),
    ("stored", "strategy", "get_top_strategies", {"symbol": AAPL, "metric": "luck"}, "INVALID_METRIC"),
    ("stored", "strategy", "get_strategy_signal", {**MACD, "symbol": "?"}, "INVALID_SYMBOL"),
    ("stored", "strategy", "get_strategy_signal", {**MACD, "symbol": "ZZZZ"}, "NO_SIGNAL"),
    ("stored", "strategy", "get_strategy_signal", {"strategy_id": UNKNOWN, "symbol": AAPL}, "STRATEGY_NOT_FOUND"),
    ("stored", "strategy", "get_strategy_consensus", {"symbol": "?"}, "INVALID_SYMBOL"),
    ("stored", "strategy", "get_strategy_consensus", {"symbol": "ZZZZ"}, "NO_ACTIVE_STRATEGIES"),
    ("cut off", "strategy", "get_top_strategies", {"symbol": AAPL}, "NOT_FOUND"),
    ("cut off", "strategy", "get_strategy_signal", {**MACD, "symbol": AAPL}, "NOT_FOUND"),
    ("cut off", "strategy", "get_strategy_consensus", {"symbol": AAPL}, "NOT_FOUND"),
    ("stored", "market-data", "get_candles", {"symbol": "?"}, "INVALID_SYMBOL"),
    ("stored", "market-data", "get_candles", {"symbol": "ZZZZ"}, "NO_DATA"),
    ("stored", "market-data", "get_candles", {"symbol": AAPL, "timeframe": "7m"}, "INVALID_TIMEFRAME"),
    ("stored", "market-data", "get_current_price", {"symbol": "?"}, "INVALID_SYMBOL"),
    ("stored", "market-data", "get_current_price", {"symbol": "ZZZZ"}, "SYMBOL_NOT_FOUND"),
    ("stored", "market-data", "get_current_price", {"symbol": AAPL}, "STALE_DATA"),
    ("stored", "market-data", "get_volatility", {"symbol": "?"}, "INVALID_SYMBOL"),
    ("stored", "market-data", "get_volatility", {"symbol": AAPL, "timeframe": "7m"}, "INVALID_TIMEFRAME"),
    ("stored", "market-data", "get_volatility", {"symbol": AAPL, "timeframe": "1d"}, "INSUFFICIENT_DATA"),
    ("stored", "market-data", "get_volatility", {"symbol": "ZZZZ"}, "NOT_FOUND"),
    ("stored", "portfolio", "get_positions", {"symbol": "?"}, "INVALID_SYMBOL"),
    ("stored", "portfolio", "validate_trade", {**_TRADE, "symbol": "?"}, "INVALID_SYMBOL"),
    ("stored", "portfolio", "validate_trade", {**_TRADE, "side": "HOLD"}, "INVALID_SIDE"),
    ("stored", "portfolio", "validate_trade", {**_TRADE, "size": -1}, "INVALID_SIZE"),
    ("simulated", "portfolio", "validate_trade", {**_TRADE, "size": 10**6}, "INSUFFICIENT_BALANCE"),
    ("stored", "backtest", "run_backtest", {**MACD, "symbol": "?"}, "INVALID_SYMBOL"),
    ("stored", "backtest", "run_backtest", {"strategy_id": UNKNOWN, "symbol": AAPL}, "STRATEGY_NOT_FOUND"),
    ("stored", "backtest", "run_backtest", {**MACD, "symbol": AAPL, **_DATES}, "INVALID_DATE_RANGE"),
    ("stored", "backtest", "run_backtest", {**MACD, "symbol": AAPL}, "INSUFFICIENT_DATA"),
    ("stored", "backtest", "run_backtest", {**MACD, "symbol": BTC}, "GRPC_ERROR"),
    ("simulated", "backtest", "run_backtest", {**MACD, "symbol": BTC}, "BACKTEST_TIMEOUT"),
    ("stored", "backtest", "get_historical_performance", {**MACD, "symbol": "?"}, "INVALID_SYMBOL"),
    ("stored", "backtest", "get_historical_performance", {"strategy_id": UNKNOWN}, "STRATEGY_NOT_FOUND"),
    ("stored", "backtest", "get_historical_performance", {**MACD, "period": "2y"}, "INVALID_PERIOD"),
    ("stored", "backtest", "get_historical_performance", {**MACD, "symbol": AAPL}, "NO_PERFORMANCE_DATA"),
    ("cut off", "backtest", "get_historical_performance", {**MACD, "symbol": AAPL}, "INSUFFICIENT_DATA"),
    ("stored", "decisions", "get_recent_decisions", {"symbol": "?"}, "INVALID_SYMBOL"),
    ("stored", "decisions", "get_recent_decisions", {"action": "WAIT"}, "INVALID_ACTION"),
    ("stored", "decisions", "save_decision", {**_DECISION, "symbol": "?"}, "INVALID_SYMBOL"),
    ("stored", "decisions", "save_decision", {**_DECISION, "action": "WAIT"}, "INVALID_ACTION"),
    ("stored", "decisions", "save_decision", {**_DECISION, "confidence": 2}, "INVALID_CONFIDENCE"),
    ("stored", "decisions", "save_decision", {**_DECISION, "reasoning": "x" * 16_385}, "REASONING_TOO_LONG"),
    ("read-only", "decisions", "save_decision", _DECISION, "UNAUTHORIZED"),
    ("stored", "strategy-db", "get_top_specs", {"source": "MINE"}, "INVALID_SOURCE"),
    ("stored", "strategy-db", "get_implementations", {"spec_id": UNKNOWN}, "SPEC_NOT_FOUND"),
    (
        "stored",
        "strategy-db",
        "get_implementations",
        {"spec_id": "MACD_CROSSOVER", "status": "BEST"},
        "INVALID_STATUS",
    ),
    ("stored", "strategy-db", "submit_new_spec", {**_SPEC, "name": "!"}, "INVALID_NAME"),
    ("stored", "strategy-db", "submit_new_spec", {**_SPEC, "name": "MACD_CROSSOVER"}, "DUPLICATE_NAME"),
    (
        "stored",
        "strategy-db",
        "submit_new_spec",
        {**_SPEC, "indicators": [{"id": "x", "type": "NONE"}]},
        "INVALID_INDICATORS",
    ),
    (
        "stored",
        "strategy-db",
        "submit_new_spec",
        {**_SPEC, "entry_conditions": [{"type": "NONE"}]},
        "INVALID_CONDITIONS",
    ),
    ("stored", "strategy-db", "submit_new_spec", {**_SPEC, "parameters": [{"name": "n"}]}, "SCHEMA_VALIDATION_ERROR"),
    ("read-only", "strategy-db", "submit_new_spec", _SPEC, "UNAUTHORIZED"),
    ("stored", "arche", "quotes.live", {"tickers": ["ZZZZ"]}, "SYMBOL_NOT_FOUND"),
    ("stored", "arche", "quotes.historical", {**_RANGE, "tickers": ["ZZZZ"]}, "SYMBOL_NOT_FOUND"),
    ("stored", "arche", "quotes.historical", {**_RANGE, "tickers": [AAPL], "page_size": 201}, "VALIDATION_ERROR"),
    ("broken", "arche", "quotes.live", {"tickers": [AAPL]}, "MARKET_DATA_UNAVAILABLE"),
    ("broken", "arche", "quotes.historical", {**_RANGE, "tickers": [AAPL]}, "MARKET_DATA_UNAVAILABLE"),
    ("of a quotes API", "arche", "system.health", {}, "UNAUTHENTICATED"),
    ("stored", "chart-image", "generate_chart_image", {"config": {**_DRAWN, "symbol": "?"}}, "InvalidSymbol"),
    ("stored", "chart-image", "generate_chart_image", {"config": {**_DRAWN, "interval": "9z"}}, "ConfigRefused"),
    (
        "stored",
        "chart-image",
        "generate_chart_image",
        {"config": {**_DRAWN, "symbol": "NASDAQ:ZZZZ"}},
        "UnknownSymbol",
    ),
    (
        "cut off",
        "chart-image",
        "generate_chart_image",
        {"config": {**_DRAWN, "symbol": "NASDAQ:AAPL"}},
        "DataError",
    ),
    ("read-only", "chart-image", "generate_chart_image", {"config": _DRAWN, "storage": True}, "Refused"),
    ("stored", "chartgen", "list_indicators", {"name": "nope"}, "InvalidParameter"),
    ("stored", "chartgen", "cancel_order", {"order_id": "x"}, "OrderError"),
    ("stored", "chartgen", "place_order", {**_ORDER, "symbol": AAPL}, "OrderError"),
    ("stored", "chartgen", "cancel_alert", {"alert_id": "x"}, "NoSuchAlert"),
    ("stored", "chartgen", "subscribe_notifications", {"symbols": ["?"]}, "InvalidSymbol"),
    ("cut off", "chartgen", "generate_chart", {"symbol": AAPL}, "DataError"),
    ("cut off", "chartgen", "get_indicators", {"symbol": AAPL, "indicators": ["rsi"]}, "DataError"),
    ("cut off", "chartgen", "place_order", {**_ORDER, "symbol": AAPL}, "DataError"),
    ("live", "chartgen", "place_order", {**_ORDER, "symbol": AAPL}, "BrokerError"),
]
_EXPLORED = {
    "fetch_chart_documentation": {"section": "exchanges"},
    **{tool: SAMPLES["chart-image"][tool][0] for tool in ("get_exchanges", "get_symbols", "generate_chart_image")},
}
_PROVOKED += [
    (desk, "chart-image", tool, arguments, "VendorError")
    for desk in ("of a vendor that refuses", "of a vendor that is busy")
    for tool, arguments in _EXPLORED.items()
]
_OF_A_SYMBOL: dict[str, dict[str, Any]] = {
    "generate_chart": {},
    "get_indicators": {"indicators": ["rsi"]},
    "place_order": _ORDER,
    "set_alert": _CONDITION,
}
_PROVOKED += [
    ("stored", "chartgen", tool, {**more, "symbol": symbol}, kind)
    for symbol, kind in (("?", "InvalidSymbol"), ("ZZZZ", "UnknownSymbol"))
    for tool, more in _OF_A_SYMBOL.items()
]

_PLANS: dict[str, bytes] = {
    **{kind: failure(status, kind) for kind, status in STATUSES.items()},
    "UPSTREAM_ERROR": failure(500),
    "NON_JSON_RESPONSE": reply(200, b"<html>", "text/html"),
    "NETWORK_ERROR": b"",
}
"""What the quotes API sends, by the type of the error that it becomes."""
_TICKERS = {f"T{number}": kind for number, kind in enumerate(_PLANS)}
"""The ticker by which the quotes API is asked for each error."""
for _ticker, _type in _TICKERS.items():
    _PROVOKED.append(("of a quotes API", "arche", "quotes.live", {"tickers": [_ticker]}, _type))
    _PROVOKED.append(("of a quotes API", "arche", "quotes.historical", {**_RANGE, "tickers": [_ticker]}, _type))


def planned(target: str) -> bytes:
    """What the quotes API sends for a request: the failure that its ticker names."""
    (ticker,) = parse_qs(urlsplit(target).query).get("tickers", [""])
    return _PLANS[_TICKERS.get(ticker, "UNAUTHENTICATED")]


_GOOD = {"get_volatility": {"symbol": BTC}}
"""Arguments that only a desk can refuse, of tools whose first sample is refused by the tool."""
_UNKNOWN = {"an_argument_that_no_tool_has": 1}
_REFUSED_ARGUMENT: dict[str, str | int] = {
    "chart-signals": -32602,
    "arche": "VALIDATION_ERROR",
    "chart-image": "InvalidParameter",
    "chartgen": "InvalidParameter",
}
_OF_THE_DESK: dict[str, set[str | int]] = {
    "broken": {"DATABASE_ERROR", "StoreError"},
    "hurried": {"TIMEOUT", -32004},
    "without an account": {"ACCOUNT_NOT_FOUND", "AccountNotFound"},
    "guarded": {"UNAUTHORIZED"},
    "read-only": {"Refused"},
}
"""The codes that any call of a tool which declares them gets on a desk."""


def declared(service: Service, tool: Tool) -> set[str | int]:
    """The codes of the errors that a tool declares; of errors that are sentences, the names of their classes.

    The quotes of arche have every type of docs/arche.md, whether this desk or a quotes API reports it.
    """
    table = {**getattr(service.dialect, "codes", {}), **getattr(service.dialect, "by_tool", {}).get(tool.name, {})}
    if not table:
        return {kind.__name__ for kind in (*tool.errors, InvalidParameter)}
    if isinstance(service.dialect, ArcheDialect) and tool.name.startswith("quotes."):
        return {*STATUSES, *ADAPTER}
    checked = [InvalidParameter] if tool.input_schema.get("properties") and InputError in table else []
    codes = [next(table[each] for each in kind.__mro__ if each in table) for kind in (*tool.errors, *checked)]
    return {code[0] if isinstance(code, tuple) else code for code in codes}


def provocations() -> list[Provocation]:
    """Every call that fails."""
    found = [Provocation(*each) for each in _PROVOKED]
    for server in NAMES:
        service = load(server)
        found.append(Provocation("stored", server, "no_such_tool", {}, service.dialect.unknown_tool))
        for tool in service.tools:
            code = _REFUSED_ARGUMENT.get(server, "INVALID_PARAMETER")
            found.append(Provocation("stored", server, tool.name, _UNKNOWN, code))
            arguments = _GOOD.get(tool.name) or SAMPLES[server][tool.name][0]
            codes = declared(service, tool)
            known = {each.code for each in found if (each.server, each.tool) == (server, tool.name)}
            for desk, given in _OF_THE_DESK.items():
                wanted = (given & codes) - known
                if desk != "guarded" or server == "portfolio":
                    found += [Provocation(desk, server, tool.name, arguments, each) for each in wanted]
    return found
