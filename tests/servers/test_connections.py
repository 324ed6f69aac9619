"""Clients over real pipes: each gets every notification once and in order, and what did not reach one waits for the next."""

from __future__ import annotations

import asyncio
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from openbell.market.errors import InvalidParameter
from openbell.market.timeframes import Timeframe
from openbell.signals.crossing_alerts import CrossingAlert, CrossingRequest, CrossingSubscription
from tests.client import OPENBELL, PATIENCE, Client, environment, run
from tests.prefork import Process
from tests.servers.desks import awaited, bench_as_found

PUSH = "notifications/alert_triggered"
SET, FIRED = "2026-01-07T15:00:00Z", "2026-01-07T15:30:00Z"
LEVELS = (1.0, 2.0, 3.0)
"""Prices that the next minute is above, one alert each; they fire in the order in which they were set."""


def call(home: Path, at: str, tool: str, **arguments: Any) -> Any:
    done = run(home, "call", "chartgen", tool, json.dumps(arguments), "--trade", "--as-of", at)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def levels(notifications: list[dict[str, Any]]) -> list[float]:
    return [each["condition"]["threshold"] for each in notifications]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A scenario whose principal has subscribed, and alerts that wait for the next minute."""
    call(tmp_path, SET, "subscribe_notifications")
    for level in LEVELS:
        call(tmp_path, SET, "set_alert", symbol="BTC/USD", condition={"price_above": level})
    return tmp_path


@contextmanager
def server(home: Path, at: str = FIRED, **settings: str) -> Iterator[Client]:
    command = [*OPENBELL, "mcp", "chartgen", "--trade", "--as-of", at]
    with Client(home, command=command, TIMEOUT="60", **settings) as client:
        client.initialize()
        yield client


def result(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = client.call(tool, arguments)["result"]
    assert answer["isError"] is False, answer
    found: dict[str, Any] = answer["structuredContent"]
    return found


def pushes(client: Client, count: int) -> list[dict[str, Any]]:
    """The first so many pushes, those before an answer included."""
    while sum(message.get("method") == PUSH for message in client.aside) < count:
        client.aside.append(client.receive())
    found = [dict(message["params"]) for message in client.aside if message.get("method") == PUSH]
    assert all(each.pop("_meta")["openbell/truth"]["data"] == "simulated" for each in found)
    return found


def inbox(client: Client) -> list[dict[str, Any]]:
    """Everything that is in the inbox, in its order, once it is there; nothing is taken out."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found = result(client, "get_notifications", cursor=0, wait_s=5)["notifications"]
        if len(found) == len(LEVELS):
            assert sorted(levels(found)) == list(LEVELS)
            return list(found)
        assert time.monotonic() < deadline, found


def test_calls_at_the_same_time_on_one_connection_return_each_notification_once(home: Path) -> None:
    with server(home) as client:
        for number in ("a", "b", "c", "d"):
            params = {"name": "get_notifications", "arguments": {"limit": 1, "wait_s": 0 if number == "d" else 5}}
            client.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
        answers: dict[str, Any] = {}
        while len(answers) < 4:
            message = client.receive()
            if "id" in message:
                answers[message["id"]] = message["result"]["structuredContent"]["notifications"]
        left = result(client, "get_notifications")["notifications"]
        told = [each for number in answers for each in answers[number]] + left
        assert told == inbox(client), "each once, and in the order in which they left"


def test_two_clients_each_get_every_notification_once_and_in_order(tmp_path: Path) -> None:
    """A replay, so that alerts fire while both are there: one process fires them, and both tell their clients."""
    with server(tmp_path, SET, REPLAY_SPEED="30") as one, server(tmp_path, SET, REPLAY_SPEED="30") as two:
        assert result(two, "get_notifications")["notifications"] == []
        assert result(one, "get_notifications")["notifications"] == []
        result(one, "subscribe_notifications")
        for level in LEVELS:
            result(one, "set_alert", symbol="BTC/USD", condition={"price_above": level})
        everything = inbox(one)
        assert inbox(two) == everything, "its clock comes to it later"
        for client in (one, two):
            assert pushes(client, len(LEVELS)) == everything
            assert result(client, "get_notifications")["notifications"] == everything
            assert result(client, "get_notifications")["notifications"] == []
            assert pushes(client, len(LEVELS)) == everything, "none came twice"


def test_a_connection_that_has_not_read_yet_gets_what_another_one_has_read(tmp_path: Path) -> None:
    with server(tmp_path, SET, REPLAY_SPEED="30") as one, server(tmp_path, SET, REPLAY_SPEED="30") as two:
        assert result(two, "list_alerts")["alerts"] == []
        for level in LEVELS:
            result(one, "set_alert", symbol="BTC/USD", condition={"price_above": level})
        everything = inbox(one)
        assert result(one, "get_notifications")["notifications"] == everything
        assert inbox(two) == everything, "its clock comes to it later"
        assert result(two, "get_notifications")["notifications"] == everything


def test_what_a_connection_has_acknowledged_is_not_returned_to_it_again(home: Path) -> None:
    with server(home) as client:
        everything = inbox(client)
        two = result(client, "get_notifications", cursor=0, limit=2)["cursor"]
        assert result(client, "get_notifications", cursor=two)["notifications"] == everything[2:]
        assert result(client, "get_notifications")["notifications"] == everything[2:], "two were acknowledged"
        assert result(client, "get_notifications")["notifications"] == []
        assert result(client, "get_notifications", cursor=0)["notifications"] == everything, "asked for by a cursor"


class DeafClient:
    """A client that stops reading: its end of the pipe is closed while the server lives on."""

    def __init__(self, home: Path, **settings: str) -> None:
        self._read, write = os.pipe()
        self.process = Process(
            [*OPENBELL, "mcp", "chartgen", "--trade", "--as-of", SET],
            stdin=subprocess.PIPE,
            stdout=write,
            stderr=subprocess.PIPE,
            env=environment(home, LOG_LEVEL="info", **settings),
        )
        os.close(write)
        self._buffer = b""

    def ask(self, number: int, method: str, params: Any) -> dict[str, Any]:
        assert self.process.stdin
        line = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        while True:
            message = json.loads(self._line())
            if message.get("id") == number:
                return dict(message)

    def _line(self) -> bytes:
        deadline = time.monotonic() + PATIENCE
        while b"\n" not in self._buffer:
            ready = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))[0]
            assert ready, "no answer"
            self._buffer += os.read(self._read, 65536)
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def stop_reading(self) -> None:
        os.close(self._read)

    def until_logged(self, words: bytes) -> None:
        """Wait until the server has written these words to its log."""
        assert self.process.stderr
        found = b""
        deadline = time.monotonic() + PATIENCE
        while words not in found:
            ready = select.select([self.process.stderr], [], [], max(0.0, deadline - time.monotonic()))[0]
            assert ready, found
            chunk = os.read(self.process.stderr.fileno(), 65536)
            assert chunk, found
            found += chunk

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stderr):
            if pipe:
                pipe.close()


def test_a_push_to_a_client_that_no_longer_reads_waits_for_the_next_client(tmp_path: Path) -> None:
    deaf = DeafClient(tmp_path, REPLAY_SPEED="30")
    try:
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        deaf.ask(1, "initialize", hello)
        deaf.ask(2, "tools/call", {"name": "subscribe_notifications", "arguments": {}})
        alert = {"symbol": "BTC/USD", "condition": {"price_above": 1.0}}
        deaf.ask(3, "tools/call", {"name": "set_alert", "arguments": alert})
        deaf.stop_reading()
        deaf.until_logged(b"pushes to a client end")
    finally:
        deaf.kill()
    with server(tmp_path, "2026-01-08T15:00:00Z") as client:
        assert levels(pushes(client, 1)) == [1.0]


def test_a_subscription_to_signals_ends_when_its_client_is_gone(tmp_path: Path) -> None:
    """Its task does not die with an error that nobody looks at, and the ended subscription counts against nobody."""
    sent: list[CrossingAlert] = []

    @awaited
    async def play() -> None:
        async def gone(_subscription: CrossingSubscription, alert: CrossingAlert) -> None:
            sent.append(alert)
            raise BrokenPipeError("nobody reads")

        async with bench_as_found(tmp_path, SET, REPLAY_SPEED="3000") as desk:
            alerts = desk.desk.connection_subscriptions
            asked = CrossingRequest("local", "BTC/USD", Timeframe.M1, "1min", (("macd_cross", None),), 0)
            found = await alerts.subscribe(asked, gone)
            (task,) = (each for each in asyncio.all_tasks() if each.get_name() == "subscriptions")
            await asyncio.wait_for(asyncio.wait([task]), PATIENCE)
            assert task.exception() is None
            with pytest.raises(InvalidParameter, match="no subscription"):
                alerts.unsubscribe("local", found.id)

    play()
    assert len(sent) == 1
