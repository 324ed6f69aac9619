"""Fairness: how much slower one principal's calls are while another one asks for as much as it can.

The quiet figure and the one under attack are of the same calls at the same gateway. The attacker is a process of its own.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gateway import NO_RATES, Server, gateway, wait_until_idle
from gateway_home import Home
from http_load import Round
from measure import row

HERE = Path(__file__).resolve().parent
CALLS = 40
TARGET = 3.0
SPECS = 200
STRATEGY, DATABASE, MARKET, CHARTGEN = "/strategy/mcp", "/strategy-db/mcp", "/market-data/mcp", "/mcp"
DECISIONS = "/decisions/mcp"
SYMBOLS = ("AAPL", "MSFT", "NVDA", "AMZN", "GOOGL", "META", "TSLA", "BTC/USD", "ETH/USD")
Asked = tuple[str, str, dict[str, Any]]
CANDLES: list[Asked] = [
    (
        MARKET,
        "get_candles",
        {"symbol": symbol, "timeframe": "5m", "limit": 1000, "offset": 4_000, "force_refresh": True},
    )
    for symbol in SYMBOLS
]
TOP: list[Asked] = [(STRATEGY, "get_top_strategies", {"symbol": symbol}) for symbol in SYMBOLS]
CHARTS = [
    (CHARTGEN, "generate_chart", {"symbol": each, "bars": 1000, "indicators": ["rsi", "macd"]}) for each in SYMBOLS
]
SMALL: Asked = (MARKET, "get_candles", {"symbol": "ETH/USD", "timeframe": "1h", "limit": 100, "force_refresh": True})
PRICE: Asked = (MARKET, "get_current_price", {"symbol": "AAPL", "force_refresh": True})
SUMMARY: Asked = (CHARTGEN, "generate_chart", {"symbol": "AAPL", "format": "summary", "indicators": ["rsi"]})
SAID = {"symbol": "AAPL", "action": "BUY", "confidence": 0.5}
SAVE: Asked = (DECISIONS, "save_decision", {**SAID, "reasoning": "because"})
SAVES: list[Asked] = [(DECISIONS, "save_decision", {**SAID, "reasoning": "r" * 16_000, "tool_calls": ["x" * 60_000]})]
RECENT: Asked = (DECISIONS, "get_recent_decisions", {"limit": 10, "force_refresh": True})
PAGES: list[Asked] = [(DECISIONS, "get_recent_decisions", {"limit": 100, "force_refresh": True})]
SIGNAL: Asked = (STRATEGY, "get_top_strategies", {"symbol": "AAPL", "force_refresh": True})


async def call(port: int, token: str, asked: Asked, streams: tuple[Any, Any]) -> bool:
    """Send one call over a connection; returns False if its result is an error."""
    path, tool, arguments = asked
    around = Round({"port": port, "path": path, "tokens": [token], "era": "modern"})
    reader, writer = streams
    writer.write(around.payload(0, "tools/call", {"name": tool, "arguments": arguments}))
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if b"content-length:" in head:
        body = await reader.readexactly(int(head.split(b"content-length:")[1].split(b"\r\n")[0]))
    else:  # a stream of events, because it took long
        body = b""
        while not body.endswith(b"0\r\n\r\n"):
            body += await reader.read(65536)
    fine = b'"isError":true' not in body and b'"result"' in body
    if not fine:
        print(body[:300], file=sys.stderr)
    return fine


async def repeat(port: int, token: str, asked: list[Asked], times: int, *, strict: bool = True) -> list[float]:
    streams = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
    spent = []
    for number in range(times):
        began = time.perf_counter()
        fine = await call(port, token, asked[number % len(asked)], streams)
        if strict and not fine:
            raise RuntimeError(f"{asked[number % len(asked)][1]} failed")
        spent.append(time.perf_counter() - began)
    streams[1].close()
    return spent


async def attack(port: int, token: str, asked: list[Asked], clients: int) -> None:
    async def one(first: int) -> None:
        turned = asked[first % len(asked) :] + asked[: first % len(asked)]
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                await repeat(port, token, turned, 1_000_000, strict=False)

    print("begun", flush=True)
    await asyncio.gather(*(one(number) for number in range(clients)))


class Attacker:
    """The process of the attacker. Use as a context manager."""

    def __init__(self, port: int, token: str, asked: list[Asked], clients: int) -> None:
        words = json.dumps({"port": port, "token": token, "asked": asked, "clients": clients})
        self._process = subprocess.Popen([sys.executable, __file__, words], stdout=subprocess.PIPE)

    def __enter__(self) -> None:
        assert self._process.stdout
        self._process.stdout.readline()
        time.sleep(2.0)

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


def measured(server: Server, token: str, asked: Asked) -> list[float]:
    return asyncio.run(repeat(server.port, token, [asked], CALLS))


def compare(server: Server, home: Home, what: str, victim: Asked, attacking: list[Asked], clients: int) -> None:
    mine, other = home.tokens[:2]
    measured(server, mine, victim)
    quiet = measured(server, mine, victim)
    with Attacker(server.port, other, attacking, clients):
        loaded = measured(server, mine, victim)
    ratio = p95(loaded) / p95(quiet)
    figure = f"{ratio:.1f} × ({p95(loaded) * 1000:.0f} / {p95(quiet) * 1000:.0f} ms)"
    row(f"{what}: p95 of another's {victim[1]}", figure, f"≤ {TARGET:.0f} ×", ratio <= TARGET)


def submit_specs(server: Server, token: str) -> None:
    """Submit specs that differ from each other."""
    specs: list[Asked] = []
    for number in range(SPECS):
        spec = {
            "name": f"FLOOD_{number}",
            "indicators": [{"id": "fast", "type": "EMA", "params": {"period": "${period}"}}],
            "entry_conditions": [{"type": "CROSSED_UP", "indicator": "fast", "params": {"crosses": "close"}}],
            "exit_conditions": [{"type": "CROSSED_DOWN", "indicator": "fast", "params": {"crosses": "close"}}],
            "parameters": [{"name": "period", "type": "INTEGER", "min": 5, "max": 20 + number, "default": 10}],
            "description": "a flood",
        }
        specs.append((DATABASE, "submit_new_spec", spec))
    asyncio.run(repeat(server.port, token, specs, len(specs)))


def main() -> None:
    with TemporaryDirectory() as folder:
        home = Home(Path(folder), 2)
        with gateway(home, **NO_RATES, OPENBELL_TIMEOUT="120") as server:
            for asked in (*CANDLES, *TOP[:1]):
                asyncio.run(repeat(server.port, home.tokens[0], [asked], 1))
            wait_until_idle(server)
            for victim in (SMALL, PRICE, SUMMARY):
                compare(server, home, "60 × get_candles", victim, CANDLES, 60)
            compare(server, home, "20 × generate_chart", SUMMARY, CHARTS, 20)
            compare(server, home, "20 × generate_chart", PRICE, CHARTS, 20)
            for victim in (SAVE, RECENT):
                compare(server, home, "60 × save_decision", victim, SAVES, 60)
                compare(server, home, "60 × get_recent_decisions", victim, PAGES, 60)
            submit_specs(server, home.tokens[1])
            for victim in (PRICE, SIGNAL):
                compare(server, home, f"{SPECS} specs searched", victim, TOP, 10)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        given = json.loads(sys.argv[1])
        asyncio.run(attack(given["port"], given["token"], [tuple(each) for each in given["asked"]], given["clients"]))
    else:
        main()
