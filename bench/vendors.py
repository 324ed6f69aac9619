"""The first charts of a fresh home at each vendor: local servers with the vendors' page sizes, limits and 80 ms latency.

The time is that of generate_chart over stdio, on a server that has started: 200 bars with five indicators. It contains the
import of the vendor's library (ccxt about 0.5 s, yfinance 1.2 s), once in each process.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.feeds.alpaca_server import KEY, SECRET, AlpacaServer
from tests.feeds.dialects import ALL
from tests.feeds.exchange_server import LATENCY
from tests.feeds.yahoo_server import YahooServer

from measure import Client, row, rows
from openbell.market.clock import SystemClock

OPENBELL = [sys.executable, "-m", "openbell.cli.entry"]
INDICATORS = ["rsi", "macd", "bbands", "atr", "ema_line"]
LIMITS = {"1d": (5, 1.5), "4h": (8, 2.0), "1m": (6, 2.0)}
"""Requests and seconds."""
Vendor = tuple[str, str, dict[str, str], object]
"""A feed, a symbol, the variables of its double, and the double, which counts its requests."""


def vendors(stack: ExitStack) -> Iterator[Vendor]:
    for kind in ALL:
        exchange = stack.enter_context(kind(SystemClock()))
        symbol = next(iter(exchange.pairs.values())).symbol
        yield f"ccxt:{exchange.exchange}", symbol, {"CCXT_PROXY_URL": exchange.proxy}, exchange
    alpaca = stack.enter_context(AlpacaServer(SystemClock()))
    alpaca.latency, alpaca.per_minute = LATENCY, 200
    keys = {f"ALPACA_{name.upper()}": url for name, url in alpaca.urls.items()}
    for symbol in ("AAPL", "BTC/USD"):
        yield "alpaca", symbol, keys | {"ALPACA_API_KEY": KEY, "ALPACA_SECRET_KEY": SECRET}, alpaca
    yahoo = stack.enter_context(YahooServer(SystemClock()))
    yield "yahoo", "AAPL", {"YAHOO_PROXY_URL": yahoo.proxy}, yahoo


def requests(server: object) -> int:
    """How many requests a double has answered."""
    return int(getattr(server, "total", 0)) if hasattr(server, "total") else len(getattr(server, "requests", ()))


def first_chart(folder: Path, vendor: Vendor, timeframe: str) -> tuple[float, int]:
    """Seconds and requests of the first chart of a fresh home."""
    feed, symbol, variables, server = vendor
    home = folder / f"{feed.replace(':', '-')}-{symbol.replace('/', '')}-{timeframe}"
    given = {"symbol": symbol, "timeframe": timeframe, "bars": 200, "indicators": INDICATORS}
    client = Client([*OPENBELL, "mcp", "chartgen"], str(home), variables, FEED=feed)
    before, began = requests(server), time.perf_counter()
    result = client.call("generate_chart", given)
    spent = time.perf_counter() - began
    client.close()
    assert not result["isError"], result
    return spent, requests(server) - before


def main() -> int:
    """Measure and print."""
    with TemporaryDirectory() as name, ExitStack() as stack:
        for vendor in vendors(stack):
            for timeframe, (most, seconds) in LIMITS.items():
                spent, count = first_chart(Path(name), vendor, timeframe)
                what = f"first {timeframe} chart of {vendor[1]} at {vendor[0]}"
                met = count <= most and spent <= seconds
                row(what, f"{spent:.2f} s, {count} requests", f"≤ {seconds:g} s, ≤ {most} requests", met)
    return len([met for *_, met in rows if not met]) and 0


if __name__ == "__main__":
    sys.exit(main())
