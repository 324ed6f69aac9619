"""Backtests and sweeps of strategies on bars of the desk, fetched as needed."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import suppress
from dataclasses import replace
from math import inf

from openbell.backtest.edge import timing_of
from openbell.backtest.grids import Combination
from openbell.backtest.jobs import BacktestJob, MonteCarloJob, PortfolioJob, WalkForwardJob
from openbell.backtest.monte_carlo import USUAL_SIMULATIONS, MonteCarlo, trade_returns
from openbell.backtest.portfolio import Portfolio, PortfolioPart
from openbell.backtest.rules import Setup
from openbell.backtest.runs import Backtest, Progress, backtest
from openbell.backtest.sweeps import Sweep, sweep
from openbell.backtest.walk_forward import (
    USUAL_TEST_SHARE,
    USUAL_WINDOWS,
    By,
    WalkForward,
    usual_windows,
)
from openbell.desk.bars.service import BarService
from openbell.desk.research.backtest_bars import BacktestBars, backtest_bars
from openbell.desk.research.backtester import Backtester
from openbell.desk.research.workers import DaskWorkers, ProcessWorkers
from openbell.market.errors import InvalidParameter
from openbell.market.series import Series
from openbell.strategies.compiled import Compiled, compiled
from openbell.strategies.spec import Number, Spec

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


class BacktestService:
    """Runs strategies over closed bars of a series."""

    def __init__(self, bars: BarService, backtester: Backtester, dask: str = "") -> None:
        """`dask` is the address of the scheduler for sweeps; empty if there is none."""
        self._bars = bars
        self._backtester = backtester
        self._dask = dask

    async def run(
        self,
        strategy: Compiled,
        series: Series,
        setup: Setup,
        start: int | None = None,
        end: int | None = None,
        *,
        unseen_from: float = -inf,
    ) -> Backtest:
        """Trade a strategy on the bars that open in [start, end), by default on the newest 1,250, and test its timing.

        Bars before `start` warm up its indicators. Only trades since `unseen_from` test its timing. Raises
        `InsufficientData` if there are fewer than two bars, `NoData` if an indicator needs minutes and there are none, and
        as `Backtester` does.
        """
        found = await self._fetched([strategy], series, start, end)
        job = BacktestJob(strategy, found.bars, setup, found.first, inf if end is None else end, found.regular)
        run = await self._backtester.run(job)
        first = int(run.bars.time.searchsorted(unseen_from))
        timing = await self._bars.threads.run(timing_of, run.run, run.bars, setup, first)
        return replace(run, note=found.note, timing=timing)

    async def walk_forward(
        self,
        spec: Spec,
        series: Series,
        combinations: Sequence[Mapping[str, Number]],
        setup: Setup,
        start: int | None = None,
        end: int | None = None,
        *,
        windows: int = USUAL_WINDOWS,
        test_share: float = USUAL_TEST_SHARE,
        anchored: bool = False,
        by: By = By.SHARPE,
        progress: Progress | None = None,
    ) -> WalkForward:
        """Test a strategy walk-forward on the bars that `run` trades, in windows of equal length.

        Raises `InvalidParameter`, also if there are too few bars, and as `run` does.
        """
        found = await self._fetched([compiled(spec, each) for each in combinations], series, start, end)
        index = int(found.bars.time.searchsorted(found.first))
        divided = usual_windows(len(found.bars), windows, test_share, anchored=anchored, first=index)
        job = WalkForwardJob(spec, found.bars, combinations, setup, divided, by, found.regular)
        return await self._backtester.run(job, progress)

    async def monte_carlo(
        self, run: Backtest, cash: float, simulations: int = USUAL_SIMULATIONS, seed: int = 0, drawdown: float = 0.2
    ) -> MonteCarlo:
        """Draw the trades of a run that began with `cash` at random, again and again. Raises as `Backtester` does."""
        returns = trade_returns(run.run.trades, cash)
        return await self._backtester.run(MonteCarloJob(returns, simulations, seed, drawdown))

    async def portfolio(
        self,
        parts: Sequence[tuple[Compiled, Series, float]],
        setup: Setup,
        start: int | None = None,
        end: int | None = None,
        progress: Progress | None = None,
    ) -> Portfolio:
        """Trade strategies, each on a series and with a share of the cash, on bars that open in [start, end).

        Without a start, they begin where the last of them would begin alone. Raises `InvalidParameter`, also if one has no
        bars in that time, and as `run` does.
        """
        found = [await self._fetched([strategy], series, start, end) for strategy, series, _ in parts]
        first = max((each.first for each in found), default=0)
        made = [
            PortfolioPart(strategy, each.bars, share, regular=each.regular)
            for (strategy, _, share), each in zip(parts, found, strict=True)
        ]
        return await self._backtester.run(PortfolioJob(made, setup, first, inf if end is None else end), progress)

    async def sweep(
        self,
        spec: Spec,
        series: Series,
        combinations: Sequence[Combination],
        setup: Setup,
        start: int | None = None,
        end: int | None = None,
        *,
        jobs: int | None = None,
        progress: Progress | None = None,
    ) -> Sweep:
        """Trade every combination of parameters on the bars that `run` trades.

        It runs on the Dask scheduler of the settings. Without one it runs in `jobs` processes; by default in this process,
        or in one process for each processor if it takes long enough to win back their start. `progress` is called in
        another thread. If the caller is cancelled, the work ends. Raises as `run` does, and `WorkersFailed`.
        """
        if not combinations:
            raise InvalidParameter("a sweep needs at least one combination of parameters")
        found = await self._fetched([compiled(spec, each) for each in combinations], series, start, end)
        swept = await SweepRun(spec, found, combinations, setup, self._dask, jobs, progress).result()
        return replace(swept, note=found.note)

    async def _fetched(
        self, strategies: Sequence[Compiled], series: Series, start: int | None, end: int | None
    ) -> BacktestBars:
        return await backtest_bars(self._bars, strategies, series, start, end)
