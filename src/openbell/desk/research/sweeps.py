"""One sweep in a thread of its own, and in the processes or on the machines that the settings name."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import suppress

from openbell.backtest.grids import Combination
from openbell.backtest.rules import Setup
from openbell.backtest.runs import backtest
from openbell.backtest.sweeps import Progress, Sweep, sweep
from openbell.desk.research.backtest_bars import BacktestBars
from openbell.desk.research.workers import DaskWorkers, ProcessWorkers
from openbell.market.errors import InvalidParameter
from openbell.strategies.compiled import compiled
from openbell.strategies.spec import Spec

MOST_JOBS = 256
_WORTH_PROCESSES = 15.0
"""Seconds that all combinations would take one by one. Shared lines and compiled code make a sweep about five times faster
than that, and processes need 2 s to start."""
_CHUNK = 0.5
"""Seconds after which a chunk ends, so that progress is seen."""
_MOST_IN_CHUNK = 100


class _Stopped(Exception):
    """The caller was cancelled."""


class SweepRun:
    """A sweep that can be stopped from another thread."""

    def __init__(
        self,
        spec: Spec,
        found: BacktestBars,
        combinations: Sequence[Combination],
        setup: Setup,
        dask: str,
        jobs: int | None,
        progress: Progress | None,
    ) -> None:
        if jobs is not None and not 1 <= jobs <= MOST_JOBS:
            raise InvalidParameter(f"the number of jobs must be between 1 and {MOST_JOBS}, not {jobs}")
        self._spec, self._found, self._combinations, self._setup = spec, found, combinations, setup
        self._dask, self._jobs, self._progress = dask, jobs, progress
        self._stopping = threading.Event()
        self._workers: DaskWorkers | ProcessWorkers | None = None
        self._chunk: int | None = None

    async def result(self) -> Sweep:
        """Returns the result. If the caller is cancelled, the work is stopped first. Raises `WorkersFailed`."""
        work = asyncio.ensure_future(asyncio.to_thread(self._run))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            self._stop()
            # Whatever the work raises now, such as for a pipe that was closed, is because it was stopped.
            with suppress(Exception):
                await work
            raise

    def _stop(self) -> None:
        self._stopping.set()
        if self._workers:
            with suppress(OSError):
                self._workers.stop()

    def _run(self) -> Sweep:
        seconds = self._seconds_of_one()
        self._workers = self._chosen_workers(seconds)
        self._chunk = min(max(int(_CHUNK / seconds), 1), _MOST_IN_CHUNK) if self._workers else None
        if self._workers is None:
            return self._sweep()
        with self._workers:
            try:
                return self._sweep()
            except (BrokenExecutor, CancelledError, OSError) as error:
                if self._stopping.is_set():
                    raise _Stopped from None
                raise self._workers.failure(error) from error

    def _seconds_of_one(self) -> float:
        """Returns how long the backtest of one combination takes, more than 0."""
        began, found = time.monotonic(), self._found
        one = compiled(self._spec, self._combinations[len(self._combinations) // 2])
        backtest(one, found.bars, self._setup, found.first, regular=found.regular)
        return max(time.monotonic() - began, 1e-6)

    def _chosen_workers(self, seconds: float) -> DaskWorkers | ProcessWorkers | None:
        """Returns what runs the combinations, of which one takes so many seconds; None for this thread."""
        if self._dask:
            return DaskWorkers(self._dask)
        jobs = self._jobs
        if jobs is None:
            jobs = _processors() if seconds * len(self._combinations) > _WORTH_PROCESSES else 1
        return ProcessWorkers(jobs) if jobs > 1 else None

    def _sweep(self) -> Sweep:
        found = self._found
        self._step(0, len(self._combinations))
        return sweep(
            self._spec,
            found.bars,
            self._combinations,
            self._setup,
            found.first,
            regular=found.regular,
            executor=self._workers,
            progress=self._step,
            chunk=self._chunk,
        )

    def _step(self, done: int, total: int) -> None:
        if self._stopping.is_set():
            raise _Stopped
        if self._progress:
            self._progress(done, total)


def _processors() -> int:
    """Returns the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
