"""The requirements of the contracts in the order of their pages, and what each file of tests says about them.

A file of tests goes through its contract from the first row to the last, with these three, each by the row's own text:

- `@row("text", …)` above a test: the test shows these rows;
- `shown_by("text", "servers/test_x.py::test_y", …)`: tests elsewhere (paths from tests/) show the row;
- `differs("text", "reason")`: the desk does it in another way on purpose. docs/conformance.md has the reason; the test of
  the row shows what the desk does instead.

test_rows.py compares the files with the lists below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import TypeVar

Test = TypeVar("Test", bound=Callable[..., object])

ROWS: dict[str, list[str]] = {
    "chart-signals": [
        "Tool get_signals(symbol, timeframe: 1min|5min|15min|1hour), both required",
        "Request example verbatim (id 1, AAPL, 1min)",
        "Result: ready, symbol, asset_type, tf",
        "asset_type is stock or crypto",
        "snapshot: price ema9 ma10 macd signal hist rsi bb_upper bb_middle bb_lower time",
        "crossings: nine booleans",
        "Insufficient data: {ready:false, reason:'insufficient bars (need 35+)'}",
        "get_watchlist() without arguments; stocks/crypto with symbol, price, rsi, signals",
        "get_watchlist.timestamp and the two market_hours strings",
        "check_market_status.stocks: open, session (4 values), next_open, current_time_et",
        "next_open example 'Tomorrow 9:30 AM ET'",
        "check_market_status.crypto {open:true, note:'24/7 trading'}, timestamp",
        "get_storage_info: data_directory, stored_symbols.stocks/crypto (BTC_USD), total_size_mb",
        "Symbols: stock tickers, crypto with slash",
        "Files: slash becomes underscore, BTC_USD_2025-09.parquet",
        "Timeframes: exactly the four names",
        "5min, 15min, 1hour aggregated from 1min",
        "All timestamps UTC, ISO 8601 with zone",
        "Bar timestamp is the open",
        "Closed bars only",
        "Crossing macd_cross_up (prev <=, last >)",
        "Crossing macd_cross_dn (prev >=, last <)",
        "Crossing rsi_overbought >= 70 inclusive",
        "Crossing rsi_oversold <= 30 inclusive",
        "Crossing ema_support_lost",
        "Crossing ema_reclaim",
        "Crossing bb_squeeze < 0.04",
        "Crossing bb_breakout_up",
        "Crossing bb_breakout_dn",
        "EMA 9, SMA 10, MACD 12/26/9, RSI 14, Bollinger 20/2",
        "Error -32001 with message 'Insufficient data' and data symbol, bars_available, bars_needed",
        "-32002 Invalid symbol",
        "-32003 Invalid timeframe",
        "-32004 Market data unavailable",
        "-32601 Method not found",
        "subscribe_alerts (planned), example verbatim",
        "signals.alert notification format",
        "throttle_ms",
        "get_capabilities literals: version, protocol, indicators, timeframes, asset_types, storage, max_bars_in_memory",
        "get_capabilities.data_source 'Alpaca Markets'",
        "JSON-RPC 2.0 over stdio",
        "No HTTP exposure",
        "Credentials in environment variables",
        "Data flow Alpaca WebSocket → memory → Parquet",
        "FastAPI server, separate process, port 8742, optional, for webhooks",
        "Watchlist of 20 stocks and 2 crypto, in order",
        "Stocks incl. extended hours; crypto 24/7",
        "35 bars needed",
        "Last 3,000 bars in memory",
        "Aggregation open first, high max, low min, close last, volume sum",
        "data/stocks/1min/{SYMBOL}_{YYYY-MM}.parquet",
        "data/crypto/1min/{SYMBOL_USD}_{YYYY-MM}.parquet",
        "Quick start 1-3 verbatim, after initialize",
        "Quick start line as the first line, as the contract shows it",
    ],
    "tradestream": [
        "get_top_strategies: name, parameters, types, defaults, maximum, enums, required",
        "get_top_strategies: description of the tool and of its parameters",
        "get_top_strategies: returns (fields and types)",
        "get_top_strategies: INVALID_SYMBOL",
        "get_top_strategies: SYMBOL_NOT_FOUND",
        "get_top_strategies: DATABASE_ERROR",
        "get_top_strategies: INVALID_METRIC",
        "get_top_strategies: cache 30 s, force_refresh bypasses and refills",
        "get_strategy_signal: name, parameters, types, defaults, maximum, enums, required",
        "get_strategy_signal: description of the tool and of its parameters",
        "get_strategy_signal: returns (fields and types)",
        "get_strategy_signal: STRATEGY_NOT_FOUND",
        "get_strategy_signal: INVALID_SYMBOL",
        "get_strategy_signal: NO_SIGNAL",
        "get_strategy_signal: DATABASE_ERROR",
        "get_strategy_signal: cache 10 s, force_refresh bypasses and refills",
        "get_strategy_consensus: name, parameters, types, defaults, maximum, enums, required",
        "get_strategy_consensus: description of the tool and of its parameters",
        "get_strategy_consensus: returns (fields and types)",
        "get_strategy_consensus: INVALID_SYMBOL",
        "get_strategy_consensus: NO_ACTIVE_STRATEGIES",
        "get_strategy_consensus: DATABASE_ERROR",
        "get_strategy_consensus: cache 30 s, force_refresh bypasses and refills",
        "get_candles: name, parameters, types, defaults, maximum, enums, required",
        "get_candles: description of the tool and of its parameters",
        "get_candles: returns (fields and types)",
        "get_candles: INVALID_SYMBOL",
        "get_candles: INVALID_TIMEFRAME",
        "get_candles: NO_DATA",
        "get_candles: DATABASE_ERROR",
        "get_candles: cache 60 s, force_refresh bypasses and refills",
        "get_current_price: name, parameters, types, defaults, maximum, enums, required",
        "get_current_price: description of the tool and of its parameters",
        "get_current_price: returns (fields and types)",
        "get_current_price: INVALID_SYMBOL",
        "get_current_price: SYMBOL_NOT_FOUND",
        "get_current_price: STALE_DATA",
        "get_current_price: DATABASE_ERROR",
        "get_current_price: cache 5 s, force_refresh bypasses and refills",
        "get_volatility: name, parameters, types, defaults, maximum, enums, required",
        "get_volatility: description of the tool and of its parameters",
        "get_volatility: returns (fields and types)",
        "get_volatility: INVALID_SYMBOL",
        "get_volatility: INVALID_TIMEFRAME",
        "get_volatility: INSUFFICIENT_DATA",
        "get_volatility: DATABASE_ERROR",
        "get_volatility: cache 30 s, force_refresh bypasses and refills",
        "get_positions: name, parameters, types, defaults, maximum, enums, required",
        "get_positions: description of the tool and of its parameters",
        "get_positions: returns (fields and types)",
        "get_positions: INVALID_SYMBOL",
        "get_positions: UNAUTHORIZED",
        "get_positions: DATABASE_ERROR",
        "get_positions: never cached",
        "get_balance: name, parameters, types, defaults, maximum, enums, required",
        "get_balance: description of the tool and of its parameters",
        "get_balance: returns (fields and types)",
        "get_balance: UNAUTHORIZED",
        "get_balance: ACCOUNT_NOT_FOUND",
        "get_balance: DATABASE_ERROR",
        "get_balance: never cached",
        "validate_trade: name, parameters, types, defaults, maximum, enums, required",
        "validate_trade: description of the tool and of its parameters",
        "validate_trade: returns (fields and types)",
        "validate_trade: INVALID_SYMBOL",
        "validate_trade: INVALID_SIDE",
        "validate_trade: INVALID_SIZE",
        "validate_trade: INSUFFICIENT_BALANCE",
        "validate_trade: DATABASE_ERROR",
        "run_backtest: name, parameters, types, defaults, maximum, enums, required",
        "run_backtest: description of the tool and of its parameters",
        "run_backtest: returns (fields and types)",
        "run_backtest: STRATEGY_NOT_FOUND",
        "run_backtest: INVALID_SYMBOL",
        "run_backtest: INVALID_DATE_RANGE",
        "run_backtest: INSUFFICIENT_DATA",
        "run_backtest: BACKTEST_TIMEOUT",
        "run_backtest: GRPC_ERROR",
        "get_historical_performance: name, parameters, types, defaults, maximum, enums, required",
        "get_historical_performance: description of the tool and of its parameters",
        "get_historical_performance: returns (fields and types)",
        "get_historical_performance: STRATEGY_NOT_FOUND",
        "get_historical_performance: INVALID_PERIOD",
        "get_historical_performance: NO_PERFORMANCE_DATA",
        "get_historical_performance: DATABASE_ERROR",
        "get_historical_performance: cache 300 s, force_refresh bypasses and refills",
        "get_recent_decisions: name, parameters, types, defaults, maximum, enums, required",
        "get_recent_decisions: description of the tool and of its parameters",
        "get_recent_decisions: returns (fields and types)",
        "get_recent_decisions: INVALID_SYMBOL",
        "get_recent_decisions: INVALID_ACTION",
        "get_recent_decisions: DATABASE_ERROR",
        "get_recent_decisions: cache 30 s, force_refresh bypasses and refills",
        "save_decision: name, parameters, types, defaults, maximum, enums, required",
        "save_decision: description of the tool and of its parameters",
        "save_decision: returns (fields and types)",
        "save_decision: INVALID_SYMBOL",
        "save_decision: INVALID_ACTION",
        "save_decision: INVALID_CONFIDENCE",
        "save_decision: REASONING_TOO_LONG",
        "save_decision: DATABASE_ERROR",
        "get_top_specs: name, parameters, types, defaults, maximum, enums, required",
        "get_top_specs: description of the tool and of its parameters",
        "get_top_specs: returns (fields and types)",
        "get_top_specs: INVALID_SOURCE",
        "get_top_specs: DATABASE_ERROR",
        "get_top_specs: cache 60 s, force_refresh bypasses and refills",
        "get_implementations: name, parameters, types, defaults, maximum, enums, required",
        "get_implementations: description of the tool and of its parameters",
        "get_implementations: returns (fields and types)",
        "get_implementations: SPEC_NOT_FOUND",
        "get_implementations: INVALID_STATUS",
        "get_implementations: DATABASE_ERROR",
        "get_implementations: cache 30 s, force_refresh bypasses and refills",
        "submit_new_spec: name, parameters, types, defaults, maximum, enums, required",
        "submit_new_spec: description of the tool and of its parameters",
        "submit_new_spec: returns (fields and types)",
        "submit_new_spec: INVALID_NAME (name 'missing or invalid')",
        "submit_new_spec: DUPLICATE_NAME",
        "submit_new_spec: INVALID_INDICATORS",
        "submit_new_spec: INVALID_CONDITIONS",
        "submit_new_spec: SCHEMA_VALIDATION_ERROR",
        "submit_new_spec: DATABASE_ERROR",
        "Server names strategy-mcp, market-data-mcp, portfolio-mcp, backtest-mcp, decisions-mcp, strategy-db-mcp",
        "PostgreSQL for strategy, portfolio, decisions, strategy-db",
        "InfluxDB for market-data",
        "gRPC Backtester for run_backtest",
        "Pagination object offset, limit, total, has_more on every list",
        "limit capped per endpoint",
        "has_more right at the end, total always",
        "{data, _metadata{latency_ms, cached, cache_ttl_remaining, source}} on every result",
        "{error{code,message,details}, _metadata{latency_ms}} on every error",
        "Structured errors reach the client",
        "Standard code DATABASE_ERROR",
        "Standard code GRPC_ERROR",
        "Standard code TIMEOUT",
        "Standard code INVALID_PARAMETER",
        "Standard code NOT_FOUND",
        "Standard code UNAUTHORIZED",
        "TTL configurable",
        "PostgreSQL pool min 2",
        "PostgreSQL pool max 10",
        "PostgreSQL idle_timeout 300 s",
        "PostgreSQL connection_timeout 5 s",
        "InfluxDB pool max 5",
        "InfluxDB idle_timeout 60 s",
        "InfluxDB connection_timeout 3 s",
        "gRPC pool max 3",
        "gRPC keepalive 30 s / 10 s",
        "Each server a separate process, stdio",
        "Constraint: latency metadata, structured errors, caching, pagination, pooling",
        "Acceptance: stdio transport",
        "Acceptance: JSON schema definitions",
        "Acceptance: callable from OpenCode via config",
        "Acceptance: error handling returns structured errors with documented codes",
        "Acceptance: latency metadata / caching / pagination / pooling",
        "Acceptance: unit tests for each tool",
        "Acceptance: integration tests with real databases",
        "File structure services/mcp_servers/…",
        "Dockerfile",
    ],
    "arche": [
        "File mcp/manifest/mcp.json",
        "name arche-mcp",
        "version 1.0.0",
        "description text",
        "contact",
        "license MIT",
        "four methods in order",
        "quotes.live schemas",
        "quotes.historical schemas",
        "system.health schemas",
        "system.metadata schemas",
        "errors.schema",
        "tools/list of quotes.live equals the manifest",
        "tools/list of quotes.historical equals the manifest",
        "tools/list of system.health equals the manifest",
        "tools/list of system.metadata equals the manifest",
        "additionalProperties:false on every result",
        "additionalProperties:false on every input",
        "tickers 1-50, case-insensitive, upper-cased",
        "price a decimal string",
        "volume integer|null, currency, as_of date-time",
        "request_id and source_status 200/206",
        "from/to dates inclusive",
        "interval only 1d, 1m",
        "page default 1, minimum 1",
        "page_size default 50, 1-200",
        "bars as strings, timestamp ISO, total over all pages",
        "health ok, degraded, down",
        "metadata: seven fields; mcp_version equals the manifest; limits equal the schemas",
        "max_range_days enforced",
        "error object: type, message, retryable, http_status, http_code, trace_id, retry_after_s",
        "type VALIDATION_ERROR",
        "type RATE_LIMITED, retry_after_s",
        "type UPSTREAM_ERROR (named as an example)",
        "http_code a textual phrase ('Bad Request')",
        "trace_id from X-Request-ID",
        "Errors reach the client in this shape",
        "MANIFEST.md kept beside the JSON",
        "docs/mcp/README.md",
        "Version bump discipline",
    ],
    "chart-image": [
        "Six tools, names",
        "fetch_chart_documentation input section (4 values), forceRefresh",
        "output success, data, cachedAt, error?",
        "data.indicators: name, displayName, category, inputs{type, default, description, min?, max?}",
        "data.chartParameters intervals, ranges, themes, styles",
        "data.rateLimits, data.examples",
        "Example response: data.studies",
        "Cache 24 h",
        "Parse HTML, sections, anchors",
        "Fallback to the cached version on failure",
        "Log cache hits and misses",
        "get_exchanges: success, exchanges{id,name,type,description}, count",
        "Calls /v3/tradingview/exchanges",
        "Sorted by type then name; cached",
        "… for 1 hour, exchanges and symbols",
        "get_symbols input exchange, search, limit (50)",
        "get_symbols output",
        "Calls /v3/tradingview/exchange/<EXCHANGE>/symbols",
        "Client-side search; cache per exchange",
        "construct_chart_config input",
        "construct example verbatim → config",
        "Pattern Bitcoin/BTC → BTCUSDT",
        "Pattern Ethereum/ETH → ETHUSDT",
        "Pattern Apple/AAPL → NASDAQ:AAPL",
        "Pattern EUR/USD → FX:EURUSD",
        "Pattern last 7 days / past week → 7D",
        "Pattern last month / 30 days → 1M",
        "Pattern last year → 1Y",
        "Pattern today → 1D",
        "Pattern below 1D → 5m or 15m",
        "Pattern 1D-7D → 1h",
        "Pattern 1M-3M → 4h or 1D",
        "Pattern over 3M → 1D or 1W",
        "Pattern Bollinger Bands",
        "Pattern RSI / Relative Strength",
        "Pattern MACD",
        "Pattern Moving Average / MA",
        "Warnings for ambiguous input",
        "validate_chart_config input and output",
        "validate example verbatim",
        "symbol EXCHANGE:SYMBOL required; interval required and valid",
        "resolution, studies, theme, style rules",
        "Drawing count against the plan",
        "Warnings for suboptimal configs",
        "generate_chart_image input config, storage, format",
        "generate example verbatim",
        "imageData base64 if storage=false",
        "POST /v2/tradingview/advanced-chart[/storage], x-api-key",
        "Rate limiting with exponential backoff",
        "At most 3 retries",
        "Authentication error text",
        "Rate limit error text and retryAfter",
        "Validation error {success:false, error:'Invalid configuration', details[field,message]}",
        "Errors reach the client",
        "Interaction patterns 1-4",
        "Latency fetch_chart_documentation < 2 s, cached < 50 ms",
        "Latency get_exchanges < 1 s, cached < 50 ms; get_symbols < 2 s",
        "Latency construct < 500 ms",
        "Latency validate < 200 ms",
        "Latency generate < 5 s",
    ],
    "chartgen": [
        "stdio and HTTP share the same tool definitions",
        "claude_desktop_config: command chartgen, args [--mcp]",
        "chartgen --serve",
        "Streamable HTTP 2025-03-26",
        "… including JSON-RPC batches, which 2025-03-26 requires",
        "OAuth 2.1 with PKCE",
        "POST /mcp with Accept both → application/json",
        "Accept text/plain → 406",
        "No Accept is treated as application/json",
        "GET /mcp: SSE, raw JSON-RPC notification frames",
        "GET /mcp needs the bearer token",
        "Mcp-Session-Id echoed unchanged",
        "No server-side session state; header only echoed",
        "POST / alias",
        "POST /message alias",
        "GET /sse alias",
        "15 tools",
        "12 trading tools without --trade return an error",
        "generate_chart: ticker/symbol, timeframe/interval, indicators as names or objects, bars, width, height, format",
        "format png (default): base64 PNG",
        "format summary; example request verbatim",
        "summary has divergences",
        "summary 10-50× fewer tokens than a PNG",
        "format both",
        "format series: shape, 1:1 alignment, null warm-up, single text item",
        "keys are the requested names",
        "series channel fills (Bollinger, Keltner, Ichimoku, VWAP bands)",
        "series channel hbars (VPVR, Session VP, HVN/LVN, Naked POC, TPO)",
        "series channel divlines",
        "series channel histogram",
        "series channel signals with x and t",
        "series channel empty channels omitted",
        "list_indicators: full catalog with descriptions, aliases, parameters",
        "get_indicators: required symbol, indicators; interval default 4h; response shape",
        "source engine_cache / fetched",
        "get_indicators object equals the summary's",
        "place_order market/limit, price for limits",
        "cancel_order",
        "get_orders filter open|all",
        "get_positions with unrealized PnL",
        "get_balance: stub, always an error",
        "set_alert, one-shot: fires once, then is removed",
        "three conditions; fixed registry of signals",
        "list_alerts, cancel_alert",
        "get_notifications drains",
        "subscribe_notifications symbols, alert_types",
        "unsubscribe_notifications, list_subscriptions with queue size",
        "Subscriptions persist",
        "… to ~/.chartgen/subscriptions.json",
        "Queued alerts delivered when the stream opens",
        "Queued alerts kept for up to one hour",
    ],
}
"""By contract, the rows of its page from the first to the last. No text is in two contracts."""

CONTRACT_OF = {text: contract for contract, texts in ROWS.items() for text in texts}


@dataclass
class Entry:
    """What one place in a file of tests says about rows of its contract."""

    rows: tuple[str, ...]
    module: str = ""
    test: str = ""
    """The test in the file itself, if it is one."""
    elsewhere: tuple[str, ...] = ()
    reason: str = ""


@dataclass
class Contract:
    """The entries of one file, in its order."""

    name: str
    entries: list[Entry] = field(default_factory=list)

    @property
    def module(self) -> str:
        return f"{__package__}.test_{self.name.replace('-', '_')}"

    @property
    def shown(self) -> set[str]:
        """The rows that have a test."""
        return {text for entry in self.entries if not entry.reason for text in entry.rows}

    @property
    def reasons(self) -> dict[str, str]:
        """The rows that differ, with the reasons, in the order of the page."""
        given = {text: entry.reason for entry in self.entries if entry.reason for text in entry.rows}
        return {text: given[text] for text in ROWS[self.name] if text in given}


_CONTRACTS = {name: Contract(name) for name in ROWS}


def row(*texts: str) -> Callable[[Test], Test]:
    """Marks a test that shows these rows."""
    entry = _add(Entry(texts))

    def mark(test: Test) -> Test:
        entry.module, entry.test = test.__module__, test.__name__
        return test

    return mark


def shown_by(text: str, *tests: str) -> None:
    """Names the tests elsewhere that show a row."""
    assert tests, text
    _add(Entry((text,), elsewhere=tests))


def differs(text: str, reason: str) -> None:
    """Gives the reason for which the desk does not do what a row says, or does it in another way."""
    assert reason, text
    _add(Entry((text,), reason=reason))


def _add(entry: Entry) -> Entry:
    assert entry.rows, "name a row"
    unknown = [text for text in entry.rows if text not in CONTRACT_OF]
    assert not unknown, f"no such row: {unknown}"
    contracts = {CONTRACT_OF[text] for text in entry.rows}
    assert len(contracts) == 1, f"rows of several contracts: {entry.rows}"
    _CONTRACTS[contracts.pop()].entries.append(entry)
    return entry


def contract(name: str) -> Contract:
    """A contract with what its file of tests says."""
    found = _CONTRACTS[name]
    import_module(found.module)
    return found


def table() -> list[str]:
    """The lines of the table of docs/conformance.md: the rows that differ, and why."""
    lines = ["| contract | requirement | what differs, and why |", "|---|---|---|"]
    for name in ROWS:
        for text, reason in contract(name).reasons.items():
            cells = (name, text.replace("<", "&lt;"), reason)
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return lines
