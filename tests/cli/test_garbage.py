"""Garbage is collected in every command, and a desk with many resting orders stays level in memory.

The interpreter itself tells when it collects: a `sitecustomize` in the process notes each collection and how it ended.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.client import OPENBELL, PATIENCE, Client, environment
from tests.counts import SOAK, runs
from tests.waiting import Pace

ORDERS = runs(50, soak=1000)
SYMBOLS = ("BTC/USD", "ETH/USD", "SOL/USDT")
MINUTES = 4
MOST_PER_MINUTE = 1.0
"""Megabytes. With the collector off, 1,000 orders grow by 5 to 27 a minute."""

WATCHED = """
import atexit, gc, os
_notes = os.open(os.environ["COLLECTIONS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def _note(phase, info):
    if phase == "stop":
        os.write(_notes, b"%d\\n" % info["collected"])
gc.callbacks.append(_note)
atexit.register(lambda: os.write(_notes, b"end %d\\n" % gc.isenabled()))
"""


class Watched(NamedTuple):
    """An environment in which a process notes its collections, and where."""

    variables: dict[str, str]
    notes: Path

    def lines(self) -> list[str]:
        return self.notes.read_text().splitlines() if self.notes.exists() else []


def watched(folder: Path, home: Path, **settings: str) -> Watched:
    site = folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(WATCHED)
    paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
    notes = folder / "collections"
    more = {"PYTHONPATH": os.pathsep.join(paths), "COLLECTIONS": str(notes)}
    return Watched({**environment(home, **settings), **more}, notes)


def wait(condition: Callable[[], bool], patience: float, what: str) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"gave up waiting for {what}"
        time.sleep(0.02)


@pytest.mark.parametrize(
    "words",
    [
        ["call", "chart-signals", "check_market_status"],
        ["mcp", "chart-signals"],
        ["mcp", "chartgen", "--trade"],
        ["doctor"],
        ["verify"],
        ["--version"],
    ],
    ids=" ".join,
)
def test_the_collector_is_on_when_a_command_ends(tmp_path: Path, words: list[str]) -> None:
    process = watched(tmp_path, tmp_path / "home")
    command = [*OPENBELL, *words]
    subprocess.run(
        command, env=process.variables, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False
    )
    assert "end 1" in process.lines()


QUICK_CLOCK = {"OPENBELL_AS_OF": "2026-03-02T15:00:00Z", "OPENBELL_REPLAY_SPEED": "60"}
"""A minute each second: nothing waits for the next minute of the machine's clock."""


@pytest.mark.parametrize("command", ["up", "collect"])
def test_the_collector_is_on_while_a_command_runs_until_it_is_stopped(tmp_path: Path, command: str) -> None:
    process, log = watched(tmp_path, tmp_path / "home"), tmp_path / "log"
    with log.open("wb") as output:
        running = subprocess.Popen(
            [*OPENBELL, command], env={**process.variables, **QUICK_CLOCK}, stdout=output, stderr=subprocess.DEVNULL
        )
    try:
        wait(lambda: b"stored" in log.read_bytes(), PATIENCE, "the first bars")
        running.terminate()
        assert running.wait(PATIENCE) == 0
    finally:
        running.kill()
        running.wait()
    assert "end 1" in process.lines()


def rest(home: Path, count: int, **settings: str) -> None:
    """Orders that never fill: far below the market."""
    pace = Pace(80)
    with Client(home, command=[*OPENBELL, "mcp", "chartgen", "--trade"], **settings) as client:
        client.initialize()
        for number in range(count):
            time.sleep(pace.delay())
            order = {"symbol": SYMBOLS[number % len(SYMBOLS)], "side": "buy", "type": "limit", "quantity": "0.0001"}
            answer = client.call("place_order", {**order, "price": "1", "client_order_id": f"rest-{number}"})
            assert not answer["result"]["isError"], answer


@contextmanager
def desk(process: Watched, log: Path) -> Iterator[int]:
    """`openbell up --trade` whose engine works: its process id."""
    with log.open("wb") as output:
        running = subprocess.Popen(
            [*OPENBELL, "up", "--trade"], env=process.variables, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        wait(lambda: "engine: working" in log.read_text(), PATIENCE, "the engine")
        yield running.pid
        assert running.poll() is None, log.read_text()
    finally:
        running.kill()
        running.wait()


def resident(pid: int) -> float:
    """Megabytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def minute_of(pid: int) -> float:
    """The median of what a process holds during a minute, in megabytes."""
    samples = []
    for _ in range(60):
        samples.append(resident(pid))
        time.sleep(1.0)
    return statistics.median(samples)


def test_a_desk_with_resting_orders_on_postgresql_stays_level(tmp_path: Path, database: str) -> None:
    home = tmp_path / "home"
    settings = {"DATABASE_URL": database, "RISK_COLLAR": "0", "RISK_POSITIONS": "0"}
    rest(home, ORDERS, **settings)
    process = watched(tmp_path, home, **settings)
    with desk(process, tmp_path / "log") as pid:
        before = len(process.lines())
        # The engine steps once a second: what that allocates makes the collector run, if it is on.
        wait(lambda: len(process.lines()) > before, PATIENCE, "a collection")
        if SOAK:
            minute_of(pid)  # caches fill
            used = [minute_of(pid) for _ in range(MINUTES)]
            assert used[-1] - used[0] <= MOST_PER_MINUTE * (MINUTES - 1), used
