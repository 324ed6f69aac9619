"""Commands whose output cannot be written say so in one line and by their exit code; a desk that runs goes on."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.client import OPENBELL, PATIENCE, environment, run
from tests.prefork import Process
from tests.waiting import wait_for

FULL = Path("/dev/full")
PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
DOWN = 2


def into_full_disk(home: Path, *words: str, typed: str = "", **settings: str) -> subprocess.CompletedProcess[str]:
    with FULL.open("wb") as full:
        return subprocess.run(
            [*OPENBELL, *words],
            env=environment(home, **settings),
            input=typed,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            check=False,
        )


@contextmanager
def running(home: Path, log: Path, *words: str, **settings: str) -> Iterator[subprocess.Popen[str]]:
    """A command that runs until it is stopped, with its log in a file and its output on a full disk."""
    with FULL.open("wb") as full, log.open("wb") as errors:
        process = Process([*OPENBELL, *words], env=environment(home, **settings), text=True, stdout=full, stderr=errors)
    with process:
        try:
            yield process
        finally:
            process.kill()


def test_health_reports_the_state_by_its_exit_code_all_the_same(tmp_path: Path) -> None:
    down = into_full_disk(tmp_path, "health")
    assert down.returncode == DOWN, down.stderr
    assert down.stderr.startswith("openbell: No space left on device; "), down.stderr
    assert down.stderr.count("\n") == 1


def test_health_of_a_working_desk_that_cannot_be_written_is_not_taken_for_a_degraded_one(tmp_path: Path) -> None:
    with running(tmp_path, tmp_path / "log", "up"):
        wait_for(lambda: run(tmp_path, "health").returncode == 0, "a desk that works")
        done = into_full_disk(tmp_path, "health")
    assert done.returncode == 3, done.stderr
    assert "No space left on device" in done.stderr


@pytest.mark.parametrize(
    ("command", "settings"),
    [("up", {}), ("collect", {"AS_OF": "2026-01-07T15:00:00Z", "REPLAY_SPEED": "600"})],
    ids=["up", "collect"],
)
def test_a_desk_goes_on_if_its_lines_cannot_be_written(tmp_path: Path, command: str, settings: dict[str, str]) -> None:
    log = tmp_path / "log"
    with running(tmp_path / "home", log, command, **settings) as process:
        wait_for(lambda: "on standard output: No space left on device" in log.read_text(), "the warning")
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0, log.read_text()
    assert "Traceback" not in log.read_text()


def test_a_server_whose_answers_cannot_be_written_ends_with_one_line(tmp_path: Path) -> None:
    done = into_full_disk(tmp_path, "mcp", "market-data", typed=PING * 3)
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("openbell: No space left on device; "), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


def test_a_halt_is_done_and_says_that_its_output_is_lost(tmp_path: Path) -> None:
    done = into_full_disk(tmp_path, "halt", "--reason", "panic")
    assert done.returncode == 1
    assert "was not written to standard output: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    order = json.dumps({"symbol": "BTC/USD", "side": "buy", "type": "market", "quantity": "0.01"})
    assert "panic" in run(tmp_path, "call", "chartgen", "place_order", order, "--trade").stdout
