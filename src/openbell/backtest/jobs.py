"""Jobs: everything that one run of the backtester needs, as a value. A job runs in this process or in another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Protocol, TypeVar

from openbell.backtest.monte_carlo import USUAL_SIMULATIONS, MonteCarlo, monte_carlo
from openbell.backtest.portfolio import Portfolio, PortfolioPart, portfolio
from openbell.backtest.rules import Setup
from openbell.backtest.runs import Backtest, Progress, backtest
from openbell.backtest.walk_forward import By, WalkForward, Windows, walk_forward
from openbell.market.bars import Bars, Values
from openbell.strategies.compiled import Compiled
from openbell.strategies.spec import Number, Spec

Result_co = TypeVar("Result_co", covariant=True)


class Job(Protocol[Result_co]):
    """Work for the backtester."""

    def run(self, progress: Progress | None = None) -> Result_co:
        """Do the work. Raises `OpenbellError`."""


@dataclass(frozen=True, slots=True, eq=False)
class BacktestJob:
    """One strategy. The fields are as in `backtest`."""

    strategy: Compiled
    bars: Bars
    setup: Setup = field(default_factory=Setup)
    start: float = -inf
    end: float = inf
    regular: Bars | None = None

    def run(self, progress: Progress | None = None) -> Backtest:
        """Implements `Job`: each indicator is a step, and trading the last one."""
        steps = len(self.strategy.steps) + 1

        def report(done: int) -> None:
            if progress:
                progress(done, steps)

        found = backtest(
            self.strategy, self.bars, self.setup, self.start, self.end, regular=self.regular, on_step=report
        )
        report(steps)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class WalkForwardJob:
    """A walk-forward test. The fields are as in `walk_forward`."""

    spec: Spec
    bars: Bars
    combinations: Sequence[Mapping[str, Number]]
    setup: Setup
    windows: Windows
    by: By = By.SHARPE
    regular: Bars | None = None

    def run(self, progress: Progress | None = None) -> WalkForward:
        """Implements `Job`."""
        given = (self.spec, self.bars, self.combinations, self.setup, self.windows)
        return walk_forward(*given, by=self.by, regular=self.regular, progress=progress)


@dataclass(frozen=True, slots=True, eq=False)
class MonteCarloJob:
    """Simulations. The fields are as in `monte_carlo`."""

    returns: Values
    simulations: int = USUAL_SIMULATIONS
    seed: int = 0
    drawdown_limit: float = 0.2

    def run(self, progress: Progress | None = None) -> MonteCarlo:
        """Implements `Job`."""
        return monte_carlo(
            self.returns,
            simulations=self.simulations,
            seed=self.seed,
            drawdown_limit=self.drawdown_limit,
            progress=progress,
        )


@dataclass(frozen=True, slots=True, eq=False)
class PortfolioJob:
    """A portfolio. The fields are as in `portfolio`."""

    parts: Sequence[PortfolioPart]
    setup: Setup = field(default_factory=Setup)
    start: float = -inf
    end: float = inf

    def run(self, progress: Progress | None = None) -> Portfolio:
        """Implements `Job`."""
        return portfolio(self.parts, self.setup, self.start, self.end, progress=progress)
