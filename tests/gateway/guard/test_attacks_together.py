"""All attacks at the same time: another principal's calls are answered."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from tests.client import OPENBELL, PATIENCE, environment
from tests.gateway.guard import attacker as attacker_names
from tests.gateway.guard.serving import read
from tests.gateway.services import Service
from tests.gateway.streamable import gateways
from tests.gateway.streamable.gateways import Up, message
from tests.machine_load import slowdown
from tests.prefork import Process

LONGEST = 0.5
"""Seconds in which 95 of 100 calls are answered."""
CALLS = 60
IDLE = 1_100
"""Idle connections, more than a desk with 1,024 handles holds."""
CHART = "/v2/tradingview/advanced-chart"
SYMBOLS = ("AAPL", "MSFT", "NVDA", "AMZN", "GOOGL", "META", "TSLA", "BTC/USD", "ETH/USD")
SPEC = {
    "indicators": [{"id": "fast", "type": "EMA", "params": {"period": "${period}"}}],
    "entry_conditions": [{"type": "CROSSED_UP", "indicator": "fast", "params": {"crosses": "close"}}],
    "exit_conditions": [{"type": "CROSSED_DOWN", "indicator": "fast", "params": {"crosses": "close"}}],
    "description": "\x1b]0;a title\x07\u202e",
}


def _attacks(up: Up) -> dict[str, tuple[int, list[bytes]]]:
    """The connections and the requests of each attack."""

    def call(path: str, tool: str, /, who: str = "alice", **arguments: Any) -> bytes:
        body = json.dumps(message("tools/call", {"name": tool, "arguments": arguments})).encode()
        return up.bytes_of("POST", path, body, who, Connection="close")

    def plain(method: str, path: str, body: bytes | None, **headers: str) -> bytes:
        return up.bytes_of(method, path, body, None, Connection="close", **headers)

    form, page = {"Content_Type": "application/x-www-form-urlencoded"}, {"Origin": "https://other.example"}
    decision: dict[str, Any] = {"symbol": "AAPL", "action": "BUY", "confidence": 0.5, "reasoning": "r" * 10_000}
    registration = b'{"redirect_uris": ["http://127.0.0.1/callback"]}'
    specs: list[dict[str, Any]] = [
        {**SPEC, "name": f"FLOOD_{at}", "parameters": [{"name": "period", "type": "INTEGER", "min": 5, "max": at + 20}]}
        for at in range(200)
    ]
    unknown: dict[str, Any] = {f"k{n}": 1 for n in range(49_000)}
    candles: dict[str, Any] = {"timeframe": "5m", "limit": 1_000, "offset": 4_000, "force_refresh": True}
    return {
        "unknown arguments": (
            1,
            [call("/market-data/mcp", "get_candles", "reader", **unknown)],
        ),
        "many lists": (1, [call("/market-data/mcp", "get_candles", "reader", symbol=[[]] * 49_000)]),
        "cookies": (
            2,
            [plain("POST", "/authorize/consent", b"form=e30.x", Cookie='a="' + "\\" * 15_000 + '"', **form)],
        ),
        "unfinished bodies": (100, [plain("POST", "/mcp", b"x" * 100)[:-99]]),
        "stopped forms": (100, [plain("POST", "/register", b"x" * 16_000)[:-1_000]]),
        "webhooks": (4, [plain("POST", f"/webhooks/in_{'0' * 32}", b'{"a":"' + b"\\u202e" * 2_700 + b'"}')]),
        "quotes": (
            4,
            [up.bytes_of("GET", f"/v2/quotes?tickers={','.join(SYMBOLS)}", None, "alice", Connection="close")],
        ),
        "chart API": (4, [up.bytes_of("POST", CHART, b'{"symbol": "NASDAQ:AAPL"}', "alice", Connection="close")]),
        "pages": (4, [call("/decisions/mcp", "get_recent_decisions", limit=100, force_refresh=True)]),
        "candles": (60, [call("/market-data/mcp", "get_candles", symbol=each, **candles) for each in SYMBOLS]),
        "specs": (1, [call("/strategy-db/mcp", "submit_new_spec", **spec) for spec in specs]),
        "searches": (4, [call("/strategy/mcp", "get_top_strategies", symbol=each) for each in SYMBOLS]),
        "charts": (
            8,
            [call("/mcp", "generate_chart", symbol=each, bars=1_000, indicators=["rsi"]) for each in SYMBOLS],
        ),
        "decisions": (2, [call("/decisions/mcp", "save_decision", **decision)]),
        "refusals": (4, [call("/mcp", "place_order", "reader")]),
        "registrations": (1, [plain("POST", "/register", registration, Content_Type="application/json")]),
        "web pages": (1, [plain("POST", "/mcp", b"{}", Content_Type="application/json", **page)]),
        "stores": (1, [call("/chart-image/mcp", "get_symbols", exchange="NASDAQ")]),
    }


@contextmanager
def _imports(home: Path, folder: Path) -> Iterator[None]:
    """While a file of 1 MB that decodes to 229 MB is imported again and again. Each import must be refused."""
    file, pipe = folder / "wide.parquet", subprocess.PIPE
    wide = {f"x{n}": pa.array(np.ones(2_000_000)) for n in range(15)}
    pq.write_table(pa.table(wide), file, compression="zstd")
    command, variables = [*OPENBELL, "import", str(file), "--symbol", "AAPL"], environment(home, FEED="sim")
    ended, refused = threading.Event(), threading.Event()
    wrong: list[str] = []

    def repeat() -> None:
        while not ended.is_set():
            with Process(command, env=variables, text=True, stdout=pipe, stderr=pipe) as process:
                _, errors = process.communicate(timeout=PATIENCE)
            if process.returncode != 1 or "decodes to 229 MB" not in errors:
                wrong.append(errors)
            refused.set()
            ended.wait(1)  # the attacker, which has a low priority, must go on too

    with ThreadPoolExecutor(1) as threads:
        work = threads.submit(repeat)
        try:
            assert refused.wait(PATIENCE)
            yield
        finally:
            ended.set()
        work.result(PATIENCE)
    assert not wrong


@contextmanager
def _attacked(up: Up, backtester: Service) -> Iterator[None]:
    """Under all attacks. Each must be answered before, and go on while the context lasts."""
    attacks = {
        name: (connections, [b64encode(each).decode() for each in requests])
        for name, (connections, requests) in _attacks(up).items()
    }
    command, pipe = [sys.executable, "-m", "tests.gateway.guard.attacker"], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as attacker:
        try:
            assert attacker.stdin and attacker.stdout
            given = {"port": up.port, "attacks": attacks, "idle": IDLE, "backtester": backtester.address}
            attacker.stdin.write(json.dumps(given) + "\n")
            attacker.stdin.flush()
            before = json.loads(attacker.stdout.readline())
            assert set(before) == {*attacks, attacker_names.IDLE, attacker_names.LARGE}
            with _imports(up.home, up.home.parent):
                yield
            assert attacker.poll() is None
        finally:
            attacker.kill()


def _p95(up: Up) -> float:
    """Seconds in which 95 of 100 calls of bob are answered, over one connection."""
    asked = [
        ("/market-data/mcp", "get_current_price", {"symbol": "AAPL", "force_refresh": True}),
        (
            "/market-data/mcp",
            "get_candles",
            {"symbol": "ETH/USD", "timeframe": "1h", "limit": 50, "force_refresh": True},
        ),
        ("/mcp", "list_alerts", {}),
        ("/portfolio/mcp", "get_balance", {}),
    ]
    spent = []
    with up.connect() as connection:
        for at in range(CALLS):
            path, tool, arguments = asked[at % len(asked)]
            body = json.dumps(message("tools/call", {"name": tool, "arguments": arguments})).encode()
            began = time.monotonic()
            connection.sendall(up.bytes_of("POST", path, body, "bob"))
            answer = read(connection)
            spent.append(time.monotonic() - began)
            assert answer.status == 200 and answer.json["result"]["isError"] is False, answer.body[:300]
    return statistics.quantiles(spent, n=20)[-1]


def test_attack_all_of_them_at_once_leave_another_principal_its_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """95 of 100 calls take at most half a second, more where other programs run; and the desk ends in 5 s."""
    monkeypatch.setattr(gateways, "OPENBELL", ["bash", "-c", 'ulimit -n 1024 && exec "$@"', "-", *OPENBELL])
    home = tmp_path / "home"
    home.mkdir()
    with Up(home) as up, Service(home, workers=1) as backtester:
        _p95(up)  # loads what the calls use
        load = slowdown()
        with _attacked(up, backtester):
            found = _p95(up)
        with _attacked(up, backtester):
            began = time.monotonic()
            assert up.stop() == 0
            assert time.monotonic() - began < 5
    # Only now: before, the desk itself had work left, which would raise the limit.
    load = max(load, slowdown())
    text = f"{found * 1000:.0f} ms; the machine is {load:.1f} times slower than alone"
    print(text)
    assert found <= LONGEST * load, text
