"""How processes end: SIGHUP as SIGTERM does, and within 5 s while a database hangs."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.client import OPENBELL, PATIENCE, Client, environment, run
from tests.gateway.streamable.gateways import Client as HttpClient
from tests.gateway.streamable.gateways import Up, add_tokens, message, notification
from tests.prefork import Process
from tests.stalling import StallingProxy
from tests.stores.influx_server import close_shared
from tests.stores.influx_server import shared as influx
from tests.waiting import wait_for

OPENING = (
    message(
        "initialize",
        {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
        0,
    ),
    notification("notifications/initialized"),
)


def health(home: Path, **settings: str) -> dict[str, Any]:
    """What `openbell health` prints."""
    found: dict[str, Any] = json.loads(run(home, "health", **settings).stdout)
    return found


def part_fails(home: Path, part: str) -> Callable[[], bool]:
    return lambda: health(home)["parts"][part]["state"] == "failing"


@pytest.fixture
def stalling(database: str) -> Iterator[tuple[StallingProxy, str]]:
    """A proxy to PostgreSQL, and the URL of a database behind it."""
    head, _, rest = database.rpartition("@127.0.0.1:")
    port, _, name = rest.partition("/")
    with StallingProxy(int(port)) as proxy:
        yield proxy, f"{head}@127.0.0.1:{proxy.port}/{name}"


@pytest.mark.parametrize("known", [True, False], ids=["outage known", "outage not known yet"])
def test_a_desk_ends_in_five_seconds_while_its_database_hangs(
    tmp_path: Path, stalling: tuple[StallingProxy, str], known: bool
) -> None:
    proxy, url = stalling
    with Up(tmp_path, tokens={}, DATABASE_URL=url) as up:
        wait_for(lambda: health(tmp_path)["parts"]["engine"]["text"] == "working", "the engine")
        proxy.stall()
        if known:
            wait_for(part_fails(tmp_path, "records"), "the outage")
        began = time.monotonic()
        assert up.stop() == 0
        took = time.monotonic() - began
        assert took < 5, took
        assert not (tmp_path / "gateway.json").exists()
        assert "stopped without waiting for records" in up.log()


def test_a_desk_that_is_stopped_frees_all_leases(tmp_path: Path) -> None:
    """The next one need not wait until they expire."""
    with Up(tmp_path, tokens={}) as up:
        for part in ("engine", "collector"):
            wait_for(lambda part=part: bool(holders(tmp_path).get(part)), part)  # type: ignore[misc]
        assert up.stop() == 0
    assert set(holders(tmp_path).values()) == {""}


def holders(home: Path) -> dict[str, str]:
    """The holders of the leases of a simulated desk, by the first word of their names."""
    found: dict[str, str] = {}
    for file in (home / "simulated" / "records.sqlite", home / "simulated" / "data" / "buffer.sqlite"):
        if file.exists():
            with closing(sqlite3.connect(file)) as db, suppress(sqlite3.OperationalError):
                found |= {name.split()[0]: holder for name, holder in db.execute("SELECT name, holder FROM leases")}
    return found


@pytest.fixture(scope="module", autouse=True)
def no_server_is_left() -> Iterator[None]:
    yield
    close_shared()


@pytest.mark.parametrize("known", [True, False], ids=["outage known", "outage not known yet"])
def test_a_desk_ends_in_five_seconds_while_the_database_of_its_bars_hangs(tmp_path: Path, known: bool) -> None:
    port = int(influx().url.rpartition(":")[2])
    with (
        StallingProxy(port) as proxy,
        Up(tmp_path, tokens={}, INFLUX_URL=f"http://127.0.0.1:{proxy.port}", INFLUX_DATABASE=f"stop_{known}") as up,
    ):
        wait_for(lambda: health(tmp_path)["parts"]["engine"]["text"] == "working", "the engine")
        proxy.stall()
        if known:
            wait_for(part_fails(tmp_path, "bars"), "the outage")
        began = time.monotonic()
        assert up.stop() == 0
        took = time.monotonic() - began
        assert took < 5, took


def test_a_server_on_standard_input_ends_in_five_seconds_while_its_database_hangs(
    tmp_path: Path, stalling: tuple[StallingProxy, str]
) -> None:
    proxy, url = stalling
    with Client(tmp_path, command=[*OPENBELL, "mcp", "portfolio", "--trade"], DATABASE_URL=url) as client:
        client.initialize()
        client.call("get_positions", {})
        proxy.stall()
        began = time.monotonic()
        client.process.send_signal(signal.SIGTERM)
        assert client.process.wait(PATIENCE) == 0
        took = time.monotonic() - began
        assert took < 5, took


_BUSY = """
import asyncio, re, sys, time
from openbell.cli.entry import main
from openbell.protocol.service import Runner

def spin():
    while True:
        pass

def match():
    re.fullmatch("(a|aa)*b", "a" * 90)

async def run(self, name, arguments, session, request=None):
    print("busy", file=sys.stderr, flush=True)
    if {kind!r} == "thread":
        await asyncio.to_thread(spin)
    (spin if {kind!r} == "loop" else match)()

Runner.run = run
main()
"""
"""Runs the command line with tools that compute for ever."""


@pytest.mark.parametrize("kind", ["loop", "thread", "regular expression"])
@pytest.mark.parametrize("words", [["mcp", "market-data"], ["up", "--port", "0"]], ids=["mcp", "up"])
def test_attack_a_process_that_computes_for_ever_ends_in_five_seconds(
    tmp_path: Path, kind: str, words: list[str]
) -> None:
    """A signal ends the process also while the event loop or a thread computes, and nothing else runs."""
    tokens, pipe = add_tokens(tmp_path), subprocess.PIPE
    command = [sys.executable, "-c", _BUSY.format(kind=kind), *words]
    with Process(command, env=environment(tmp_path), stdin=pipe, stdout=pipe, stderr=pipe, text=True) as ran:
        assert ran.stdin and ran.stderr
        call = message("tools/call", {"name": "get_current_price", "arguments": {"symbol": "AAPL"}})
        if words[0] == "mcp":
            ran.stdin.write("".join(json.dumps(each) + "\n" for each in (*OPENING, call)))
            ran.stdin.flush()
        else:
            line = next(line for line in ran.stderr if line.startswith("MCP over HTTP: "))
            client = HttpClient(int(line.split()[3].removesuffix("/mcp").rpartition(":")[2]), tokens)
            connection = client.connect()
            connection.sendall(client.bytes_of("POST", "/market-data/mcp", json.dumps(call).encode()))
        assert any(line == "busy\n" for line in ran.stderr)
        began = time.monotonic()
        ran.send_signal(signal.SIGTERM)
        code = ran.wait(PATIENCE)
        took = time.monotonic() - began
        assert took < 5, took
        assert code in {0, -signal.SIGALRM}
        if words[0] == "up":
            connection.close()
            assert kind == "regular expression" or not (tmp_path / "gateway.json").exists()


@pytest.mark.parametrize("words", [["up"], ["collect"], ["backtester", "--port", "0"], ["mcp", "market-data"]])
def test_a_hang_up_ends_a_process_as_a_termination_does(tmp_path: Path, words: list[str]) -> None:
    outputs = []
    for number in (signal.SIGTERM, signal.SIGHUP):
        home, pipe = tmp_path / number.name, subprocess.PIPE
        with Process(
            [*OPENBELL, *words], env=environment(home), stdin=pipe, stdout=pipe, stderr=pipe, text=True
        ) as ran:
            # They are set one after the other.
            wait_for(lambda pid=ran.pid, own=number: own in signals(pid, "SigCgt"), "its handler")  # type: ignore[misc]
            ran.send_signal(number)
            assert ran.wait(PATIENCE) == 0
            assert ran.stderr
            # What `up` has stored by then differs.
            lines = ran.stderr.read().replace(str(home), "HOME").splitlines()[-1:]
            outputs.append([line.partition(";")[0] for line in lines])
        assert not (home / "gateway.json").exists()
    assert outputs[0] == outputs[1]


def test_a_process_that_nohup_has_started_ignores_a_hang_up(tmp_path: Path) -> None:
    command, null = ["nohup", *OPENBELL, "collect"], subprocess.DEVNULL
    with subprocess.Popen(command, env=environment(tmp_path), stdout=null, stderr=null) as ran:
        try:
            wait_for(lambda: signal.SIGTERM in signals(ran.pid, "SigCgt"), "its handlers")
            assert signal.SIGHUP in signals(ran.pid, "SigIgn")
        finally:
            ran.kill()


def signals(pid: int, kind: str) -> set[signal.Signals]:
    """The signals that a process handles (`SigCgt`) or ignores (`SigIgn`)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    mask = int(next(line.split()[1] for line in lines if line.startswith(f"{kind}:")), 16)
    return {each for each in signal.Signals if mask >> (each - 1) & 1}
