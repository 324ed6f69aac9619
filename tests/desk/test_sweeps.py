"""Sweeps of the desk: in this process, in processes and on a real Dask scheduler; stopped, killed and unreachable."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

from openbell.backtest.grids import grid
from openbell.backtest.rules import Setup
from openbell.backtest.sweeps import Sweep, sweep
from openbell.desk.desk import Desk
from openbell.desk.research.backtest_bars import BacktestBars
from openbell.desk.research.backtests import SweepRun
from openbell.desk.research.workers import DaskWorkers, ProcessWorkers, WorkersFailed
from openbell.desk.settings import load
from openbell.market.errors import InvalidParameter, SettingsError
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.strategies.compiled import compiled
from openbell.strategies.library import canonical
from tests.client import PATIENCE
from tests.strategies.specs import walk

SPEC = canonical()["SMA_EMA_CROSSOVER"]
GRID = grid(SPEC, {"emaPeriod": range(5, 15), "smaPeriod": (30, 40, 50)}).combinations
OTHER = canonical()["MACD_CROSSOVER"]
SLOW = canonical()["VOLUME_PROFILE"]
LONG = BacktestBars(walk(1, 3000), 0, None, "")
"""Minutes of work with all combinations of the slow strategy."""
BARS = walk(3, 1500)
AS_OF = "2026-03-02T15:00:00Z"

needs_dask = pytest.mark.skipif(find_spec("distributed") is None, reason="pip install 'openbell[dask]'")


def image(found: Sweep) -> bytes:
    return pickle.dumps([[(dict(row.parameters), row.metrics) for row in found.rows], found.overfitting])


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def children() -> set[int]:
    """The workers of this process: descendants that are neither a server of processes nor one of resources."""
    found = psutil.Process().children(recursive=True)
    return {each.pid for each in found if each.is_running() and each.status() != psutil.STATUS_ZOMBIE}


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Dask scheduler with two workers, each a process."""
    folder = tmp_path_factory.mktemp("dask")
    with DaskCluster(folder, workers=2) as address:
        yield address


class DaskCluster:
    """A scheduler on loopback and its workers."""

    def __init__(self, folder: Path, workers: int) -> None:
        self._folder, self._workers = folder, workers
        self.processes: list[subprocess.Popen[bytes]] = []

    def _start(self, *words: str) -> None:
        command = [sys.executable, "-m", "dask", *words, "--no-dashboard"]
        log = (self._folder / f"{len(self.processes)}.log").open("wb")
        with log:
            self.processes.append(subprocess.Popen(command, cwd=self._folder, stdout=log, stderr=log, env=_paths()))

    def __enter__(self) -> str:
        file = self._folder / "scheduler.json"
        self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
        until(lambda: file.exists() and file.read_text().rstrip().endswith("}"), "the scheduler does not start")
        address = str(json.loads(file.read_text())["address"])
        for _ in range(self._workers):
            self._start("worker", address, "--nthreads", "1", "--no-nanny", "--local-directory", str(self._folder))
        return address

    def __exit__(self, *_error: object) -> None:
        # They have nothing to save, and a worker that is told to end waits for its scheduler.
        for each in self.processes:
            each.kill()
            each.wait(PATIENCE)


def _paths() -> dict[str, str]:
    """The environment, in which workers find the package that is tested."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


# The same bytes everywhere


def test_the_bars_are_those_of_a_backtest(tmp_path: Path) -> None:
    async def run() -> None:
        async with Desk(load({}, home=tmp_path, as_of=AS_OF)) as desk:
            series = Series(await desk.bars.find("BTC/USD"), Timeframe.D1)
            found = await desk.backtests.sweep(SPEC, series, GRID, Setup())
            assert len(found.bars) == 1250
            for row in (found.rows[0], found.rows[17]):
                one = await desk.backtests.run(compiled(SPEC, row.parameters), series, Setup())
                assert one.bars.same_as(found.bars)
                # The longest warm-up is that of all combinations: later values of averages differ in their last digits.
                assert (one.metrics.trades, one.metrics.sharpe) == pytest.approx(
                    (row.metrics.trades, row.metrics.sharpe)
                )
            with pytest.raises(InvalidParameter):
                await desk.backtests.sweep(SPEC, series, [], Setup())
            for jobs in (0, 1000):
                with pytest.raises(InvalidParameter, match="jobs"):
                    await desk.backtests.sweep(SPEC, series, GRID, Setup(), jobs=jobs)

    asyncio.run(run())


def test_processes_give_the_same_bytes_and_end(tmp_path: Path) -> None:
    expected, before = image(sweep(SPEC, BARS, GRID, Setup())), children()
    with ProcessWorkers(2) as workers:
        assert image(sweep(SPEC, BARS, GRID, Setup(), executor=workers, chunk=5)) == expected
    # A server that forks and one that tracks resources stay until this process ends.
    until(lambda: len(children() - before) <= 2, "a process goes on")


@needs_dask
def test_dask_gives_the_same_bytes(scheduler: str) -> None:
    with DaskWorkers(scheduler) as workers:
        for spec, chosen, chunk in ((SPEC, GRID, 4), (OTHER, grid(OTHER, most=20).combinations, 3)):
            expected = image(sweep(spec, BARS, chosen, Setup()))
            assert image(sweep(spec, BARS, chosen, Setup(), executor=workers, chunk=chunk)) == expected


@needs_dask
def test_a_desk_with_a_scheduler_uses_it(tmp_path: Path, scheduler: str) -> None:
    seen: list[tuple[int, int]] = []

    async def run(dask: str) -> Sweep:
        async with Desk(load({"OPENBELL_DASK": dask}, home=tmp_path, as_of=AS_OF)) as desk:
            series = Series(await desk.bars.find("BTC/USD"), Timeframe.D1)
            return await desk.backtests.sweep(SPEC, series, GRID, Setup(), progress=lambda *each: seen.append(each))

    assert image(asyncio.run(run(scheduler))) == image(asyncio.run(run("")))
    assert seen[0] == (0, 30)
    assert seen.count((30, 30)) == 2


# Work that is stopped


def stopped(run: SweepRun, begun: threading.Event) -> None:
    """Cancel a sweep after its first chunk, and wait until it has ended."""

    async def cancel() -> None:
        task = asyncio.ensure_future(run.result())
        await asyncio.to_thread(begun.wait, PATIENCE)
        assert begun.is_set()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(asyncio.shield(task), PATIENCE)

    asyncio.run(cancel())


@pytest.mark.parametrize("where", ["here", "processes", pytest.param("dask", marks=needs_dask)])
def test_a_cancelled_sweep_stops_its_work(where: str, request: pytest.FixtureRequest) -> None:
    dask = request.getfixturevalue("scheduler") if where == "dask" else ""
    begun, before = threading.Event(), children()
    done: list[int] = []

    def progress(now: int, _all: int) -> None:
        done.append(now)
        if now:
            begun.set()

    chosen = grid(SLOW, most=1300).combinations
    stopped(SweepRun(SLOW, LONG, chosen, Setup(), dask, {"here": 1, "processes": 2}.get(where), progress), begun)
    assert done[-1] < 300
    until(lambda: len(children() - before) <= 2, "a process goes on")


# Failures


def test_a_process_that_is_killed_is_an_error_and_no_hang() -> None:
    before = children()

    def kill(done: int, _all: int) -> None:
        if done:
            for pid in children() - before:
                if "resource_tracker" not in " ".join(psutil.Process(pid).cmdline()):
                    os.kill(pid, signal.SIGKILL)

    run = SweepRun(SLOW, LONG, grid(SLOW, most=1300).combinations, Setup(), "", 2, kill)
    with pytest.raises(WorkersFailed, match="--jobs"):
        asyncio.run(run.result())


@needs_dask
def test_a_scheduler_that_ends_is_an_error_and_no_hang(tmp_path: Path) -> None:
    cluster = DaskCluster(tmp_path, workers=1)

    def kill(done: int, _all: int) -> None:
        if done:
            cluster.processes[0].kill()

    with cluster as address:
        run = SweepRun(SLOW, LONG, grid(SLOW, most=1300).combinations, Setup(), address, None, kill)
        with pytest.raises(WorkersFailed, match="Dask"):
            asyncio.run(asyncio.wait_for(run.result(), 2 * PATIENCE))


@needs_dask
def test_a_scheduler_that_is_not_there_or_has_no_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openbell.desk.research.workers._CONNECT", 0.5)
    with pytest.raises(WorkersFailed, match=r"tcp://127\.0\.0\.1:9 \(OPENBELL_DASK\) cannot be reached"):
        DaskWorkers("tcp://127.0.0.1:9")
    with pytest.raises(WorkersFailed, match=r"127\.0\.0\.1:9 \(OPENBELL_DASK\) cannot be reached") as refused:
        DaskWorkers("tcp://desk:hunter2@127.0.0.1:9")
    assert "hunter2" not in str(refused.value)
    with (
        DaskCluster(tmp_path, workers=0) as address,
        pytest.raises(WorkersFailed, match="has no workers: start some with: dask worker"),
    ):
        DaskWorkers(address)


@needs_dask
def test_a_worker_with_another_version_is_refused(scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openbell.desk.research.workers.__version__", "99.0")
    with pytest.raises(WorkersFailed, match=r"has openbell .*: install 99\.0 there"):
        DaskWorkers(scheduler)


def test_without_dask_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SettingsError, match=r"pip install 'openbell\[dask\]'"):
        DaskWorkers("tcp://127.0.0.1:8786")


@pytest.mark.parametrize("address", ["127.0.0.1:8786", "http://127.0.0.1:8786", "tcp://127.0.0.1", "tcp://a b:1"])
def test_an_address_that_is_none_is_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(SettingsError, match="OPENBELL_DASK must be like tcp://HOST:8786"):
        load({"OPENBELL_DASK": address}, home=tmp_path)


def test_what_takes_long_runs_in_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    run = SweepRun(SPEC, BacktestBars(BARS, 0, None, ""), GRID, Setup(), "", None, None)
    monkeypatch.setattr("openbell.desk.research.backtests._processors", lambda: 3)
    assert run._chosen_workers(0.01) is None
    chosen = run._chosen_workers(1.0)
    assert isinstance(chosen, ProcessWorkers)
    chosen.shutdown()
