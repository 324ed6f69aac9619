"""What a client is told of each server: how to connect over stdio and over HTTP, and a tool to call."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any, TypedDict

from openbell.servers import NAMES, load
from tests.client import OPENBELL, environment, run
from tests.launching import loaded
from tests.prefork import Process
from tests.waiting import wait_for

ERAS = {"legacy": "2025-11-25", "modern": "2026-07-28"}
"""The newest revision of each era."""
FEED = "none"
"""Without a feed there is no search for strategies in the background, which takes both cores for some seconds."""
PATIENCE = 120.0
STDIO_SERVERS = 2
"""Servers that a script connects to over stdio."""
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+(?=/mcp)")
BARS = "Date,Open,High,Low,Close,Volume\n2025-09-18,239,241,236,238,44249600\n2025-09-19,241,246,240,245,163741300\n"

CALLS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "chart-signals": ("check_market_status", {}, False),
    "strategy": ("get_strategy_signal", {"strategy_id": "NO_SUCH", "symbol": "AAPL"}, True),
    "market-data": ("get_candles", {"symbol": "AAPL", "timeframe": "1d"}, False),
    "portfolio": ("get_balance", {}, False),
    "backtest": ("get_historical_performance", {"strategy_id": "NO_SUCH"}, True),
    "decisions": ("get_recent_decisions", {"limit": 1}, False),
    "strategy-db": ("get_top_specs", {"limit": 1}, False),
    "arche": (
        "quotes.historical",
        {"tickers": ["AAPL"], "from": "2025-09-18", "to": "2025-09-19", "interval": "1d"},
        False,
    ),
    "chart-image": ("get_exchanges", {}, False),
    "chartgen": ("list_indicators", {}, False),
}
"""A tool of each server, its arguments, and True if the result is an error."""


class Connection(TypedDict):
    """One server."""

    name: str
    command: list[str]
    stdio_era: str | None
    """The era in which a script connects over stdio; None if it does not."""
    environment: dict[str, str]
    url: str
    token: str
    tool: str
    arguments: dict[str, Any]


class Seen(TypedDict):
    """What a client has seen of one server."""

    name: str
    transport: str
    era: str
    revision: str
    tools: list[str]
    is_error: bool
    text: str


def import_bars(home: Path) -> None:
    """Store two days of AAPL."""
    file = home / "AAPL.csv"
    file.write_text(BARS)
    done = run(home, "import", str(file), "--symbol", "AAPL", FEED=FEED)
    assert done.returncode == 0, done.stderr


@dataclass(frozen=True)
class Gateway:
    """A desk that is up, and a token for it."""

    home: Path
    base: str
    token: str

    def url(self, server: str) -> str:
        """The address of a server."""
        return f"{self.base}/mcp" if server == "chartgen" else f"{self.base}/{server}/mcp"


@contextmanager
def gateway(home: Path) -> Iterator[Gateway]:
    """`openbell up` with every server over HTTP."""
    added = run(home, "token", "add", "robot", "--scopes", "read,trade")
    assert added.returncode == 0, added.stderr
    command = [*OPENBELL, "up", "--trade", "--port", "0"]
    variables = environment(home, FEED=FEED, CHART_SIGNALS_HTTP="true")
    log = home / "up.log"
    with log.open("w") as file:
        process = Process(command, env=variables, stdout=file, stderr=file)
    with process:
        try:
            wait_for(lambda: process.poll() is not None or _ADDRESS.search(log.read_text()) is not None, "the gateway")
            found = _ADDRESS.search(log.read_text())
            assert found, log.read_text()
            yield Gateway(home, found[0], added.stdout.split()[-1])
        finally:
            process.kill()


def connections(up: Gateway, first_era: str = "legacy") -> list[Connection]:
    """Every server: as a command on the home of a gateway, and at its address.

    Over stdio a script sees some servers, each in one era, in turns. One server starts from nothing, as a user's does;
    the others are loaded already, because each start would take a second of the processor.
    """
    eras = cycle(ERAS if first_era == "legacy" else reversed(ERAS))
    seen = list(NAMES)[:STDIO_SERVERS] if first_era == "legacy" else list(NAMES)[-STDIO_SERVERS:]
    variables = environment(up.home, FEED=FEED)
    handed = {key: value for key, value in variables.items() if key.startswith(("OPENBELL_", "PYTHON"))}
    commands = {name: [*OPENBELL, "mcp", name, "--trade"] for name in NAMES}
    return [
        Connection(
            name=name,
            command=command if name == seen[0] else loaded(command),
            stdio_era=next(eras) if name in seen else None,
            environment=handed,
            url=up.url(name),
            token=up.token,
            tool=CALLS[name][0],
            arguments=CALLS[name][1],
        )
        for name, command in commands.items()
    ]


def ask(command: list[str], servers: list[Connection], variables: dict[str, str]) -> list[Seen]:
    """What a script prints that gets the servers on its standard input."""
    done = subprocess.run(
        command,
        input=json.dumps(servers),
        env=variables,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: list[Seen] = json.loads(done.stdout)
    return found


def check(found: list[Seen], servers: list[Connection]) -> None:
    """Every server, over both transports and over HTTP in both eras: all of its tools, and the result of one."""
    wanted = {(name, "http", era) for name in NAMES for era in ERAS}
    wanted |= {(each["name"], "stdio", each["stdio_era"]) for each in servers if each["stdio_era"] is not None}
    assert {(each["name"], each["transport"], each["era"]) for each in found} == wanted
    for each in found:
        assert each["revision"] == ERAS[each["era"]], each
        assert each["tools"] == list(load(each["name"]).by_name), each
        assert each["is_error"] is CALLS[each["name"]][2], each
        assert json.loads(each["text"]), each


def alone(home: Path, **more: str) -> dict[str, str]:
    """The environment of a program that has no account and no network: nothing of this machine's but its path."""
    nowhere = "http://127.0.0.1:9"
    proxies = {
        name: nowhere for each in ("http", "https", "all") for name in (f"{each}_proxy", f"{each}_proxy".upper())
    }
    direct = dict.fromkeys(("no_proxy", "NO_PROXY"), "127.0.0.1,localhost")
    return {"HOME": str(home), "PATH": "/usr/bin:/bin", **proxies, **direct, "npm_config_registry": nowhere, **more}
