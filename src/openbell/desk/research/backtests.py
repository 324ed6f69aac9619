"""Backtests and sweeps of strategies on bars of the desk, fetched as needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf

from openbell.backtest.grids import Combination
from openbell.backtest.jobs import BacktestJob, MonteCarloJob, PortfolioJob, WalkForwardJob
from openbell.backtest.monte_carlo import USUAL_SIMULATIONS, MonteCarlo, trade_returns
from openbell.backtest.portfolio import Portfolio, PortfolioPart
from openbell.backtest.rules import Setup
from openbell.backtest.runs import Backtest
from openbell.backtest.sweeps import Sweep
from openbell.backtest.walk_forward import (
    USUAL_TEST_SHARE,
    USUAL_WINDOWS,
    By,
    Progress,
    WalkForward,
    usual_windows,
)
from openbell.desk.bars.service import BarService
from openbell.desk.research.backtest_bars import BacktestBars, backtest_bars
from openbell.desk.research.backtester import Backtester
from openbell.desk.research.sweeps import SweepRun
from openbell.market.errors import InvalidParameter
from openbell.market.series import Series
from openbell.strategies.compiled import Compiled, compiled
from openbell.strategies.spec import Number, Spec


class BacktestService:
    """Runs strategies over closed bars of a series."""

    def __init__(self, bars: BarService, backtester: Backtester, dask: str = "") -> None:
        """`dask` is the address of the scheduler for sweeps; empty if there is none."""
        self._bars = bars
        self._backtester = backtester
        self._dask = dask

    async def run(
        self, strategy: Compiled, series: Series, setup: Setup, start: int | None = None, end: int | None = None
    ) -> Backtest:
        """Trade a strategy on the bars that open in [start, end); by default on the newest 1,250.

        Bars before `start` warm up its indicators. Raises `InsufficientData` if there are fewer than two bars, `NoData` if
        an indicator needs minutes and there are none, and as `Backtester` does.
        """
        found = await self._fetched([strategy], series, start, end)
        job = BacktestJob(strategy, found.bars, setup, found.first, inf if end is None else end, found.regular)
        return replace(await self._backtester.run(job), note=found.note)

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
