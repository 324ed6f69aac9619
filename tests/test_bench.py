"""The bench holds on any machine: orders keep below the desk's limit, and no process outlives the run."""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from openbell.desk.orders.service import MOST_PER_SECOND
from tests.client import OPENBELL, PATIENCE, Client, environment

BENCH = Path(__file__).resolve().parents[1] / "bench"

# A script as those of the bench are: it starts a process of its own, names it in a file, and then does as it is told.
SCRIPT = """
import pathlib, subprocess, sys, time
child = subprocess.Popen(["sleep", "600"])
pathlib.Path(sys.argv[1]).write_text(str(child.pid) + "\\n")
{end}
"""
RUN = """
import os, sys
sys.path.insert(0, {bench!r})
from guard import guarded
sys.exit(guarded([sys.executable, {script!r}, {pids!r}], dict(os.environ), {longest}))
"""


def gone(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def until_gone(pid: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while not gone(pid):
        assert time.monotonic() < deadline, f"process {pid} goes on"
        time.sleep(0.02)


class Guarded:
    """A runner, its script, and the script's own process."""

    def __init__(self, folder: Path, end: str, longest: float = PATIENCE) -> None:
        script, pids = folder / "script.py", folder / "pids"
        script.write_text(SCRIPT.format(end=end))
        run = RUN.format(bench=str(BENCH), script=str(script), pids=str(pids), longest=longest)
        self.runner = subprocess.Popen([sys.executable, "-c", run], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE
        while not (pids.exists() and pids.read_text().endswith("\n")):
            assert time.monotonic() < deadline, "the script does not start"
            time.sleep(0.01)
        self.grandchild = int(pids.read_text())

    def close(self) -> None:
        self.runner.kill()
        self.runner.wait()
        if not gone(self.grandchild):
            os.kill(self.grandchild, signal.SIGKILL)


@pytest.mark.parametrize(("end", "code"), [("", 0), ("sys.exit(3)", 3), ("raise RuntimeError", 1)])
def test_what_a_script_leaves_behind_ends_with_it(tmp_path: Path, end: str, code: int) -> None:
    run = Guarded(tmp_path, end)
    try:
        assert run.runner.wait(PATIENCE) == code
        until_gone(run.grandchild)
    finally:
        run.close()


def test_a_script_that_hangs_is_ended(tmp_path: Path) -> None:
    run = Guarded(tmp_path, "time.sleep(600)", longest=2.0)
    try:
        assert run.runner.wait(PATIENCE) == 1
        until_gone(run.grandchild)
    finally:
        run.close()


def test_everything_ends_with_a_runner_that_is_killed(tmp_path: Path) -> None:
    run = Guarded(tmp_path, "time.sleep(600)")
    try:
        script = psutil.Process(run.grandchild).ppid()
        run.runner.kill()
        until_gone(run.grandchild)
        until_gone(script)
    finally:
        run.close()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home with an account to read."""
    order = {"symbol": "BTC/USD", "side": "buy", "type": "limit", "quantity": "0.00001", "price": "130000"}
    with Client(tmp_path, command=[*OPENBELL, "mcp", "chartgen", "--trade"], AS_OF="1763046000") as client:
        client.initialize()
        answer = client.call("place_order", order)["result"]
        assert not answer["isError"], answer
        yield tmp_path


def test_readers_end_when_their_parent_is_killed(home: Path) -> None:
    """Without a guard too, and though nobody tells them to stop."""
    command = [sys.executable, str(BENCH / "trading.py"), "readers", str(home), "3"]
    # Not with the parent's output, whose end the test waits for.
    child = f"subprocess.Popen({command!r}, stdout=subprocess.DEVNULL)"
    start = f"import subprocess; print({child}.pid, flush=True); input()"
    parent = subprocess.Popen(
        [sys.executable, "-c", start], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(home)
    )
    assert parent.stdout
    readers = int(parent.stdout.readline())
    try:
        deadline = time.monotonic() + PATIENCE
        while not (home / "ready").exists():
            assert time.monotonic() < deadline and not gone(readers), "the readers do not start"
            time.sleep(0.02)
        parent.kill()
        parent.communicate()
        until_gone(readers)
    finally:
        parent.kill()
        parent.communicate()
        if not gone(readers):
            os.kill(readers, signal.SIGKILL)


def test_the_orders_of_the_bench_stay_below_the_limit_on_a_machine_that_needs_no_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    sent: list[float] = []

    class Quick:
        @staticmethod
        def call(_tool: str, _arguments: object) -> object:
            sent.append(now)
            return {"result": {"isError": False}}

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.syspath_prepend(str(BENCH))
    placed = runpy.run_path(str(BENCH / "trading.py"))["placed"]
    with monkeypatch.context() as machine:
        machine.setattr(time, "monotonic", lambda: now)
        machine.setattr(time, "sleep", sleep)
        placed(Quick(), 400)
    within = [sum(turn <= other < turn + 1.0 for other in sent) for turn in sent]
    assert len(sent) == 400
    assert max(within) < MOST_PER_SECOND


def test_every_script_runs_under_the_guard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    main = runpy.run_path(str(BENCH / "run.py"))["main"]
    (tmp_path / "locked").write_bytes((BENCH.parent / "requirements-run.lock").read_bytes())
    started: list[str] = []

    def guarded(command: list[str], _environment: dict[str, str], longest: float) -> int:
        assert longest > 0
        started.append(Path(command[1]).name)
        return 3 if len(started) == 2 else 0

    monkeypatch.setitem(main.__globals__, "HOME", tmp_path)
    monkeypatch.setitem(main.__globals__, "PYTHON", tmp_path / "bin" / "python")
    monkeypatch.setitem(main.__globals__, "guarded", guarded)
    monkeypatch.setattr(subprocess, "Popen", lambda *_given, **_named: pytest.fail("started without the guard"))
    monkeypatch.setattr(sys, "argv", ["run.py"])
    assert main() == 3, "one script that fails does not keep the others from running"
    scripts = {path.name for path in BENCH.glob("*.py") if "__main__" in path.read_text(encoding="utf-8")}
    assert sorted(started) == sorted(scripts - {"run.py"})
