"""What first questions in a fresh home cost at each vendor: requests of all kinds, and their latency."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from openbell.desk.settings import Settings
from openbell.feeds.ccxt_exchange.connection import ExchangeConnection
from openbell.feeds.yahoo import feed as yahoo_feed
from openbell.market.clock import FixedClock, SystemClock, iso
from openbell.market.timeframes import SHORT
from openbell.protocol.tool import Tool
from openbell.servers.chart_signals.shapes import TIMEFRAMES as SIGNALS
from openbell.servers.market_data import CANDLES, VOLATILITY
from tests.client import run
from tests.feeds.alpaca_server import KEY, SECRET, AlpacaServer
from tests.feeds.contract import NOW
from tests.feeds.dialects import ALL, Coinbase, Kraken
from tests.feeds.exchange_server import LATENCY, ExchangeServer, Rate
from tests.feeds.yahoo_server import YahooServer
from tests.servers.desks import Bench, awaited, bench_as_found
from tests.servers.every_tool import every_tool, reads

pytestmark = [
    pytest.mark.skipif(find_spec("ccxt") is None, reason="pip install 'openbell[ccxt]'"),
    pytest.mark.filterwarnings("ignore:enable_cleanup_closed:DeprecationWarning"),
]
INDICATORS = ["rsi", "macd", "bbands", "atr", "ema_line"]
LIMITS = {"1d": (5, 1.5), "4h": (8, 2.0), "1m": (6, 2.0)}
"""Requests and seconds."""
TIMEOUT = 10.0
"""The default of OPENBELL_TIMEOUT."""
PAUSES = {
    "binance": 0.1,
    "coinbase": 0.102,
    "kraken": 1.2,
    "okx": 0.11,
    "bitstamp": 0.075,
    "bybit": 0.1,
    "alpaca": 0.0,
    "yahoo": 0.0,
}
"""The longest pause of the client between two requests, in seconds."""
needs_yfinance = pytest.mark.skipif(find_spec("yfinance") is None, reason="pip install 'openbell[yahoo]'")


@dataclass
class Vendor:
    """A vendor that a desk of this test uses."""

    feed: str
    symbol: str
    server: ExchangeServer | AlpacaServer

    @property
    def requests(self) -> int:
        return self.server.total if isinstance(self.server, ExchangeServer) else len(self.server.requests)

    @property
    def seconds(self) -> float:
        """How long the requests take, one after the other, at the vendor's latency and the client's pace."""
        return self.requests * LATENCY + max(0, self.requests - 1) * PAUSES[self.feed.removeprefix("ccxt:")]


@pytest.fixture
def exchange(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Vendor]:
    """An exchange at NOW, which is the time of ccxt in this process too."""
    make = ExchangeConnection.make

    def make_at_its_time(self: ExchangeConnection, kind: Any) -> Any:
        made = make(self, kind)
        made.milliseconds = lambda: int(server.clock.epoch() * 1000)
        made.timeout_on_exit = 1  # ccxt pauses for 250 ms when it closes
        return made

    with request.param(FixedClock(NOW + 30)) as server:
        monkeypatch.setattr(ExchangeConnection, "make", make_at_its_time)
        monkeypatch.setenv("CCXT_PROXY_URL", server.proxy)
        yield Vendor(f"ccxt:{server.exchange}", next(iter(server.pairs.values())).symbol, server)


@pytest.fixture
def alpaca(monkeypatch: pytest.MonkeyPatch) -> Iterator[AlpacaServer]:
    with AlpacaServer(FixedClock(NOW + 30)) as server:
        server.latency, server.per_minute = LATENCY, 200
        for name, url in server.urls.items():
            monkeypatch.setenv(f"ALPACA_{name.upper()}", url)
        monkeypatch.setenv("ALPACA_API_KEY", KEY)
        monkeypatch.setenv("ALPACA_SECRET_KEY", SECRET)
        yield server


@pytest.fixture
def yahoo(monkeypatch: pytest.MonkeyPatch) -> Iterator[YahooServer]:
    """Yahoo at NOW, which is the machine's time too."""
    with YahooServer(FixedClock(NOW + 30)) as server:
        monkeypatch.setattr(yahoo_feed, "MACHINE", server.clock)
        monkeypatch.setenv("YAHOO_PROXY_URL", server.proxy)
        yield server


def exchanges(*kinds: type[ExchangeServer]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("exchange", kinds, ids=lambda kind: kind.exchange, indirect=True)


def question(symbol: str, timeframe: str, indicators: list[str] = INDICATORS) -> dict[str, Any]:
    return {"symbol": symbol, "timeframe": timeframe, "bars": 200, "indicators": indicators, "format": "series"}


def check(chart: dict[str, Any], vendor: Vendor, timeframe: str, bars: int = 200) -> None:
    assert len(chart["bars"]) == bars
    assert set(chart["indicators"]) == set(INDICATORS)
    most, seconds = LIMITS[timeframe]
    assert vendor.requests <= most, vendor.server.counts
    assert vendor.seconds <= seconds
    if isinstance(vendor.server, ExchangeServer):
        assert vendor.server.refused == 0


async def ask_for_a_chart(home: Path, vendor: Vendor, timeframe: str, bars: int = 200) -> None:
    async with bench_as_found(home, iso(vendor.server.clock.epoch()), FEED=vendor.feed) as bench:
        check(await bench.chartgen("generate_chart", **question(vendor.symbol, timeframe)), vendor, timeframe, bars)


@exchanges(*ALL)
@pytest.mark.parametrize("timeframe", LIMITS)
@awaited
async def test_a_first_chart_at_an_exchange(exchange: Vendor, tmp_path: Path, timeframe: str) -> None:
    await ask_for_a_chart(tmp_path, exchange, timeframe)


@pytest.mark.parametrize("symbol", ["AAPL", "BTC/USD"])
@pytest.mark.parametrize("timeframe", LIMITS)
@awaited
async def test_a_first_chart_at_alpaca(alpaca: AlpacaServer, tmp_path: Path, symbol: str, timeframe: str) -> None:
    await ask_for_a_chart(tmp_path, Vendor("alpaca", symbol, alpaca), timeframe)


@needs_yfinance
@pytest.mark.parametrize("symbol", ["AAPL", "BTC/USD", "EUR/USD"])
@pytest.mark.parametrize("timeframe", LIMITS)
@awaited
async def test_a_first_chart_at_yahoo(yahoo: YahooServer, tmp_path: Path, symbol: str, timeframe: str) -> None:
    # Hours of stocks are made of 15 minutes, which reach back 60 days: these had 39 whole sessions, two of them half days.
    bars = 194 if (symbol, timeframe) == ("AAPL", "4h") else 200
    await ask_for_a_chart(tmp_path, Vendor("yahoo", symbol, yahoo), timeframe, bars)


@needs_yfinance
@exchanges(Kraken)
@awaited
async def test_routes_ask_yahoo_for_stocks_and_forex_and_an_exchange_for_crypto(
    exchange: Vendor, yahoo: YahooServer, tmp_path: Path
) -> None:
    routes = f"stocks=yahoo,crypto={exchange.feed},forex=yahoo"
    async with bench_as_found(tmp_path, iso(NOW + 30), FEED=routes) as bench:
        for symbol, feed in {"AAPL": "yahoo", "BTC/USD": exchange.feed, "EUR/USD": "yahoo"}.items():
            arguments = {"symbol": symbol, "timeframe": "15m", "limit": 20}
            reply = await bench.reply("market-data", "get_candles", arguments)
            assert len(reply.payload["data"]["items"]) == 20
            assert reply.truth["feed"] == feed
            assert ("Yahoo's terms" in reply.truth.get("note", "")) is (feed == "yahoo")
            assert ("Yahoo Finance (delayed" in reply.payload["data"]["data_source"]) is (feed == "yahoo")
    assert {symbol for symbol, _ in yahoo.queries} == {"AAPL", "EURUSD=X"}
    assert exchange.server.counts["candles"] > 0
    assert yahoo.counts["crumb"] == 1, "both routes share one connection"


@exchanges(Coinbase)
@pytest.mark.parametrize("timeframe", LIMITS)
@awaited
async def test_a_first_chart_shortly_after_a_day_has_ended(exchange: Vendor, tmp_path: Path, timeframe: str) -> None:
    exchange.server.clock = FixedClock(NOW - NOW % 86400 + 25)
    await ask_for_a_chart(tmp_path, exchange, timeframe)


@exchanges(Coinbase, Kraken)
def test_a_first_chart_by_the_command_line(exchange: Vendor, tmp_path: Path) -> None:
    exchange.server.clock = SystemClock()
    asked = json.dumps(question(exchange.symbol, "4h"))
    done = run(tmp_path, "call", "chartgen", "generate_chart", asked, FEED=exchange.feed, TIMEOUT="60")
    assert done.returncode == 0, done.stdout + done.stderr
    check(json.loads(done.stdout), exchange, "4h")


# Every tool that reads

DEMANDING = ["obv", "vwap"]
"""Indicators that use the most bars, and minutes."""


def questions(server: str, tool: Tool, symbol: str) -> list[dict[str, Any]]:
    """Returns arguments for a tool: one for each timeframe of its contract."""
    asked: dict[tuple[str, str], list[dict[str, Any]]] = {
        ("chart-signals", "get_signals"): [{"symbol": symbol, "timeframe": each} for each in SIGNALS],
        ("market-data", "get_candles"): [{"symbol": symbol, "timeframe": each, "limit": 1000} for each in CANDLES],
        ("market-data", "get_volatility"): [{"symbol": symbol, "timeframe": each} for each in VOLATILITY],
        ("market-data", "get_current_price"): [{"symbol": symbol}],
        ("arche", "quotes.live"): [{"tickers": [symbol]}],
        ("arche", "quotes.historical"): [
            {"tickers": [symbol], "from": "2025-01-08", "to": "2026-01-07", "interval": "1d"},
            {"tickers": [symbol], "from": "2026-01-06", "to": "2026-01-07", "interval": "1m"},
        ],
        ("portfolio", "validate_trade"): [{"symbol": symbol, "side": "BUY", "size": 0.01}],
        ("chartgen", "generate_chart"): [question(symbol, each, DEMANDING) for each in SHORT],
        ("chartgen", "get_indicators"): [{"symbol": symbol, "interval": each, "indicators": ["rsi"]} for each in SHORT],
        ("strategy", "get_top_strategies"): [{"symbol": symbol}],
        ("strategy", "get_strategy_signal"): [{"symbol": symbol, "strategy_id": "MACD_CROSSOVER"}],
        ("strategy", "get_strategy_consensus"): [{"symbol": symbol}],
        ("strategy-db", "get_implementations"): [{"spec_id": "MACD_CROSSOVER", "status": "ALL"}],
        ("backtest", "run_backtest"): [{"strategy_id": "MACD_CROSSOVER", "symbol": symbol}],
        ("backtest", "get_historical_performance"): [
            {"strategy_id": "MACD_CROSSOVER", "symbol": symbol, "period": "1y"}
        ],
        # The documentation is no question about bars.
        ("chart-image", "fetch_chart_documentation"): [],
        ("chart-image", "get_symbols"): [{"exchange": exchange_of(symbol)}],
        ("chart-image", "construct_chart_config"): [{"naturalLanguage": f"{exchange_of(symbol)}:{plain(symbol)} 1h"}],
        ("chart-image", "validate_chart_config"): [{"config": config_of(symbol, "1h")}],
        ("chart-image", "generate_chart_image"): [
            {"config": config_of(symbol, each)} for each in ("5m", "1h", "1D", "1M")
        ],
    }
    return asked.get((server, tool.name), [{}])


def plain(symbol: str) -> str:
    return symbol.replace("/", "")


def exchange_of(symbol: str) -> str:
    return "BINANCE" if "/" in symbol else "NASDAQ"


def config_of(symbol: str, interval: str) -> dict[str, Any]:
    return {"symbol": f"{exchange_of(symbol)}:{plain(symbol)}", "interval": interval, "studies": [{"name": "RSI"}]}


SEARCHING = {"strategy", "strategy-db", "get_historical_performance"}
"""Servers and tools that search for strategies: they are asked on one exchange."""


async def ask_everything(bench: Bench, vendor: Vendor) -> None:
    for server, tool in every_tool():
        if not reads(server, tool) or tool.name in {"unsubscribe_alerts", "subscribe_alerts"}:
            continue
        if {server, tool.name} & SEARCHING and "binance" not in vendor.feed:
            continue
        for arguments in questions(server, tool, vendor.symbol):
            before = vendor.seconds
            reply = await bench.reply(server, tool.name, arguments)
            # Random prices have no strategy that passes validation.
            known = reply.is_error and "NO_ACTIVE_STRATEGIES" in str(reply.payload)
            assert known or not reply.is_error, (server, tool.name, arguments, reply.payload)
            assert vendor.seconds - before <= 0.8 * TIMEOUT, (server, tool.name, arguments, vendor.server.counts)


@pytest.fixture
def unpaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes ccxt send its requests without pauses; the test counts them instead."""
    make = ExchangeConnection.make

    def without_pauses(self: ExchangeConnection, kind: Any) -> Any:
        made = make(self, kind)
        made.enableRateLimit = False
        return made

    monkeypatch.setattr(ExchangeConnection, "make", without_pauses)


@exchanges(*ALL)
@pytest.mark.usefixtures("unpaced", "quick_search")  # a search asks for the same bars, whatever strategies it tries
@awaited
async def test_no_tool_runs_into_the_timeout_at_an_exchange(exchange: Vendor, tmp_path: Path) -> None:
    assert isinstance(exchange.server, ExchangeServer)
    exchange.server.latency, exchange.server.rate = 0.0, Rate(1e9, 1, {})
    async with bench_as_found(tmp_path, iso(NOW + 30), FEED=exchange.feed) as bench:
        await ask_everything(bench, exchange)


@exchanges(*ALL)
@pytest.mark.parametrize("timeframe", ["3m", "12h"])
@pytest.mark.usefixtures("unpaced")
@awaited
async def test_a_chart_of_the_most_bars_stays_below_the_timeout(
    exchange: Vendor, tmp_path: Path, timeframe: str
) -> None:
    assert isinstance(exchange.server, ExchangeServer)
    exchange.server.latency, exchange.server.rate = 0.0, Rate(1e9, 1, {})
    async with bench_as_found(tmp_path, iso(NOW + 30), FEED=exchange.feed) as bench:
        await bench.chartgen("generate_chart", **question(exchange.symbol, timeframe, DEMANDING))
    assert exchange.seconds <= 0.8 * TIMEOUT, exchange.server.counts


@pytest.mark.parametrize("symbol", ["AAPL", "BTC/USD"])
@awaited
async def test_no_tool_runs_into_the_timeout_at_alpaca(alpaca: AlpacaServer, tmp_path: Path, symbol: str) -> None:
    alpaca.latency = 0.0
    async with bench_as_found(tmp_path, iso(NOW + 30), FEED="alpaca") as bench:
        await ask_everything(bench, Vendor("alpaca", symbol, alpaca))


@needs_yfinance
@pytest.mark.parametrize("symbol", ["AAPL", "BTC/USD"])
@awaited
async def test_no_tool_runs_into_the_timeout_at_yahoo(yahoo: YahooServer, tmp_path: Path, symbol: str) -> None:
    yahoo.latency = 0.0
    async with bench_as_found(tmp_path, iso(NOW + 30), FEED="yahoo") as bench:
        await ask_everything(bench, Vendor("yahoo", symbol, yahoo))


def test_the_timeout_is_the_default_of_the_settings() -> None:
    assert Settings().timeout == TIMEOUT
