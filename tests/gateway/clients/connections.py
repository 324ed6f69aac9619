"""What a client is told of each server: how to connect over stdio and over HTTP, and the calls to make."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any, TypedDict, TypeVar

import pytest

from openbell.servers import NAMES, load
from tests.client import OPENBELL, environment, run
from tests.launching import loaded
from tests.npm import programs
from tests.prefork import Process
from tests.waiting import wait_for

ERAS = {"legacy": "2025-11-25", "modern": "2026-07-28"}
"""The newest revision of each era."""
FIRST = "first"
"""Version 1 of the TypeScript SDK, which speaks the revisions with handshake."""
FEED = "none"
"""Without a feed there is no search for strategies in the background, which takes both cores for some seconds."""
PATIENCE = 120.0
LONGEST_WALK = 300.0
"""Seconds for all calls of a script: hundreds, of which some wait for a feed that does not respond."""
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


T = TypeVar("T")


class Asked(TypedDict):
    """One call."""

    tool: str
    arguments: dict[str, Any]


class Connection(TypedDict):
    """One server."""

    name: str
    command: list[str]
    environment: dict[str, str]
    url: str
    token: str
    routes: list[tuple[str, str]]
    """The transports and eras in which a script connects."""
    calls: list[Asked]


class Answered(TypedDict):
    """What a client's user sees of one call."""

    is_error: bool
    text: str
    structured: bool
    """True if the server has sent structuredContent, whether or not the client shows it."""
    code: int | None
    """The code of a JSON-RPC error."""


class Seen(TypedDict):
    """What a client has seen of one server."""

    name: str
    transport: str
    era: str
    revision: str | None
    tools: list[str]
    answers: list[Answered]


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
def gateway(
    home: Path, flags: Sequence[str] = ("--trade",), vendor: Mapping[str, str] | None = None, **settings: str
) -> Iterator[Gateway]:
    """`openbell up` with every server over HTTP. `vendor` are variables that are no settings of the desk."""
    added = run(home, "token", "add", "robot", "--scopes", "read,trade")
    assert added.returncode == 0, added.stderr
    command = [*OPENBELL, "up", *flags, "--port", "0"]
    variables = environment(home, **{"FEED": FEED, "CHART_SIGNALS_HTTP": "true", **settings}) | dict(vendor or {})
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


def on_stdio(name: str, home: Path, **settings: str) -> tuple[list[str], dict[str, str]]:
    """The command that starts a server, and the settings in its environment."""
    variables = environment(home, **{"FEED": FEED, **settings})
    handed = {key: value for key, value in variables.items() if key.startswith(("OPENBELL_", "PYTHON"))}
    return [*OPENBELL, "mcp", name, "--trade"], handed


def connections(up: Gateway, eras: Sequence[str]) -> list[Connection]:
    """Every server at its address, in all eras; some of them also as a command on the home of the gateway.

    One server starts from nothing, as a user's does; the others are loaded already, because each start would take a second
    of the processor.
    """
    turns = cycle(eras)
    seen = list(NAMES)[:STDIO_SERVERS] if eras[0] != "modern" else list(NAMES)[-STDIO_SERVERS:]
    found = []
    for name in NAMES:
        command, handed = on_stdio(name, up.home)
        routes = [("http", era) for era in eras]
        if name in seen:
            routes.append(("stdio", next(turns)))
        tool, arguments, _ = CALLS[name]
        found.append(
            Connection(
                name=name,
                command=command if name == seen[0] else loaded(command),
                environment=handed,
                url=up.url(name),
                token=up.token,
                routes=routes,
                calls=[Asked(tool=tool, arguments=arguments)],
            )
        )
    return found


def here(install: Callable[..., T], *given: Any) -> T:
    """A program; without it a test says what is not tested."""
    try:
        return install(*given)
    except programs.NotHere as missing:
        pytest.skip(f"NOT TESTED: {missing}")


def ask(command: list[str], servers: list[Connection], variables: dict[str, str]) -> list[Seen]:
    """What a script prints that gets the servers on its standard input."""
    done = subprocess.run(
        command,
        input=json.dumps(servers),
        env=variables,
        capture_output=True,
        text=True,
        timeout=LONGEST_WALK,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: list[Seen] = json.loads(done.stdout)
    return found


def check(found: list[Seen], servers: list[Connection]) -> None:
    """Every server on each of its routes: all of its tools, and the result of one."""
    wanted = {(each["name"], *route) for each in servers for route in each["routes"]}
    assert {(each["name"], each["transport"], each["era"]) for each in found} == wanted
    for each in found:
        assert each["revision"] == ERAS.get(each["era"]), each
        assert each["tools"] == list(load(each["name"]).by_name), each
        (answer,) = each["answers"]
        assert answer["is_error"] is CALLS[each["name"]][2], each
        assert answer["structured"] is not answer["is_error"], each
        assert json.loads(answer["text"]), each


def alone(home: Path, **more: str) -> dict[str, str]:
    """The environment of a program that has no account and no network: nothing of this machine's but its path."""
    nowhere = "http://127.0.0.1:9"
    proxies = {
        name: nowhere for each in ("http", "https", "all") for name in (f"{each}_proxy", f"{each}_proxy".upper())
    }
    direct = dict.fromkeys(("no_proxy", "NO_PROXY"), "127.0.0.1,localhost")
    return {"HOME": str(home), "PATH": "/usr/bin:/bin", **proxies, **direct, "npm_config_registry": nowhere, **more}
