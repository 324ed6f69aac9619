"""More connections than the process has handles: idle ones are closed first, health is answered, no halt is invented."""

from __future__ import annotations

import json
import selectors
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from resource import RLIM_INFINITY
from typing import Any

import pytest

from openbell.gateway.guard.connections import FOR_HEALTH, most_connections
from tests.client import OPENBELL, run
from tests.gateway.streamable import gateways
from tests.gateway.streamable.gateways import Up, message
from tests.waiting import wait_for

ROOT = Path(__file__).resolve().parents[3]
PRICE = message("tools/call", {"name": "get_current_price", "arguments": {"symbol": "BTC/USD"}})


@pytest.fixture
def limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Up]:
    """`openbell up --trade` with 1,024 handles."""
    shell = ["bash", "-c", 'ulimit -n 1024 && exec "$@"', "-", *OPENBELL]
    monkeypatch.setattr(gateways, "OPENBELL", shell)
    with Up(tmp_path) as up:
        yield up


def test_attack_1100_idle_connections_take_no_handle_of_the_desk(limited: Up) -> None:
    """Idle connections are closed, the oldest first; requests, health and the engine work on, and nothing is halted."""
    with ExitStack() as stack:
        held = [stack.enter_context(limited.connect()) for _ in range(1_100)]
        for _ in range(3):
            assert limited.request("GET", "/healthz", None).status == 200
            assert limited.post(PRICE, path="/market-data/mcp").status == 200
        held[0].settimeout(30)
        assert held[0].recv(1) == b""
        report = json.loads(run(limited.home, "health").stdout)
        assert report["figures"]["halted"] is None
        assert report["parts"]["records"]["state"] == "working"
    limited.stop()
    log = limited.log()
    assert "Too many open files" not in log and "Traceback" not in log


def test_a_new_connection_closes_one_idle_connection_and_only_at_the_limit(limited: Up) -> None:
    """A process with 1,024 handles holds 752 connections."""
    with ExitStack() as stack:

        def closed() -> int:
            assert limited.request("GET", "/healthz", None).status == 200  # all others were accepted before
            return len([each for each, _ in gone.select(0)])

        gone = stack.enter_context(selectors.DefaultSelector())
        for _ in range(740):
            gone.register(stack.enter_context(limited.connect()), selectors.EVENT_READ)
        assert closed() == 0
        for _ in range(20):
            gone.register(stack.enter_context(limited.connect()), selectors.EVENT_READ)
        assert 8 <= closed() <= 10


def test_attack_connections_that_are_all_busy_leave_health_reachable(limited: Up) -> None:
    """Requests whose bodies do not arrive are not idle: further connections are answered with 503, but health is not."""
    head = limited.bytes_of("POST", "/mcp", b"x" * 10, "alice")[:-10]
    with ExitStack() as stack:
        for _ in range(900):
            connection = stack.enter_context(limited.connect())
            connection.settimeout(60)
            connection.sendall(head)

        def answered() -> bool:
            with limited.connect() as connection:
                connection.settimeout(10)
                connection.sendall(limited.bytes_of("GET", "/healthz", None, None))
                try:
                    return b" 200 " in connection.recv(100)
                except (TimeoutError, ConnectionResetError):
                    return False

        wait_for(answered, "health to be answered")
    wait_for(lambda: _calls(limited), "calls to be answered")


def test_attack_requests_that_are_refused_before_their_bodies_arrive_hold_no_connection(limited: Up) -> None:
    """Nobody reads the rest of such a request: its connection is closed as an idle one is, whoever has sent it."""
    refused = limited.bytes_of("POST", "/mcp", b"x" * 100, None)[:-99]
    with ExitStack() as stack:
        for _ in range(1_100):
            connection = stack.enter_context(limited.connect())
            with suppress(ConnectionError):
                connection.sendall(refused)
        began = time.monotonic()
        wait_for(lambda: _calls(limited), "calls to be answered")
        assert time.monotonic() - began < 10, "they were closed only when their time was over"


def test_attack_bodies_without_a_token_that_stop_arriving_hold_no_connection(limited: Up) -> None:
    """Anybody may send forms and registrations: if the gateway is full, those that have stopped are closed first."""
    form = limited.bytes_of("POST", "/register", b"x" * 16_000, None)[:-1_000]  # may take 15 s at its size
    with ExitStack() as stack:
        for _ in range(1_100):
            connection = stack.enter_context(limited.connect())
            with suppress(ConnectionError):
                connection.sendall(form)
        began = time.monotonic()
        wait_for(lambda: _calls(limited), "calls to be answered")
        assert time.monotonic() - began < 8, "they were closed only when their time was over"


def test_attack_streams_of_one_principal_leave_connections_for_others(limited: Up) -> None:
    """One principal opens at most a quarter of the 752 connections as streams."""
    stream = limited.bytes_of("GET", "/mcp", None, "bob", Accept="text/event-stream")
    with ExitStack() as stack:
        held = [stack.enter_context(limited.connect()) for _ in range(700)]
        for connection in held:
            connection.sendall(stream)
        heads = [connection.recv(20) for connection in held]
        assert sum(b" 200 " in head for head in heads) == 188
        assert sum(b" 429 " in head for head in heads) == 512
        for connection in (stack.enter_context(limited.connect()) for _ in range(400)):
            connection.sendall(stream)
        wait_for(lambda: _calls(limited), "calls to be answered")


def _calls(up: Up) -> bool:
    try:
        return up.post(PRICE, path="/market-data/mcp").status == 200
    except (TimeoutError, OSError, ValueError, AssertionError):
        return False


@pytest.mark.parametrize("content", [b"\xff\xfe", None], ids=["not text", "a folder"])
def test_attack_a_halt_file_that_cannot_be_read_opens_no_position_and_is_no_halt(
    tmp_path: Path, content: bytes | None
) -> None:
    """Nobody can tell whether trading is halted: nothing is opened, nothing is recorded, and every view says unknown."""
    file = tmp_path / "halted"
    with Up(tmp_path) as up:
        price = float(up.ask("get_current_price", path="/market-data/mcp", symbol="BTC/USD")["data"]["price"])
        order: dict[str, Any] = {
            "symbol": "BTC/USD",
            "side": "buy",
            "type": "limit",
            "price": round(price * 0.97),
            "quantity": 0.01,
        }
        resting = up.call("place_order", **order)
        assert resting["isError"] is False, resting
        if content is None:
            file.mkdir()
        else:
            file.write_bytes(content)
        refused = up.call("place_order", **{**order, "quantity": 0.02})
        assert refused["isError"] is True
        assert "halt unknown: no new positions" in refused["content"][0]["text"]

        def health() -> str:
            return str(json.loads(run(tmp_path, "health").stdout)["figures"]["halted"])

        wait_for(lambda: health().startswith("unknown: no new positions"), "the report")
        assert "halt unknown" in run(tmp_path, "doctor").stdout
        file.rmdir() if content is None else file.unlink()
        wait_for(lambda: health() == "None", "the end of it")
        assert up.call("place_order", **{**order, "quantity": 0.03})["isError"] is False
        assert len(up.ask("get_orders")["orders"]) >= 2, "resting orders were not cancelled"


def test_units_of_the_documentation_give_handles_for_the_usual_limit_of_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A unit that leaves LimitNOFILE out gets 1,024 handles of systemd, which are 752 connections."""
    units = [
        text
        for file in sorted((ROOT / "docs").rglob("*.md"))
        for text in file.read_text().split("```")[1::2]
        if "[Service]" in text and "ExecStart=" in text
    ]
    assert units
    for unit in units:
        (handles,) = (int(line.partition("=")[2]) for line in unit.splitlines() if line.startswith("LimitNOFILE="))
        monkeypatch.setattr("resource.getrlimit", lambda _kind, handles=handles: (handles, handles))
        most = most_connections()
        monkeypatch.setattr("resource.getrlimit", lambda _kind: (RLIM_INFINITY, RLIM_INFINITY))
        assert most == most_connections(), "the handles limit the connections, not the default"
        assert handles - most - FOR_HEALTH >= handles // 4, "the stores and the engine keep a quarter"
