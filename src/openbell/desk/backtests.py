"""Backtests of strategies on bars of the desk, fetched as needed, by the backtester that the settings name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from openbell.backtest.jobs import BacktestJob, MonteCarloJob, PortfolioJob, WalkForwardJob
from openbell.backtest.monte_carlo import USUAL_SIMULATIONS, MonteCarlo, trade_returns
from openbell.backtest.portfolio import Part, Portfolio
from openbell.backtest.rules import Setup
from openbell.backtest.runs import Backtest
from openbell.backtest.walk_forward import (
    USUAL_TEST_SHARE,
    USUAL_WINDOWS,
    By,
    Progress,
    WalkForward,
    usual_windows,
)
from openbell.desk.backtester import Backtester
from openbell.desk.bar_facts import stored_instead
from openbell.desk.bars import BarService
from openbell.desk.regular_parts import RegularPart, regular_part_of
from openbell.indicators.regular_hours import partly_regular
from openbell.market.bars import Bars, closed_at
from openbell.market.errors import InsufficientData, InvalidParameter, NoData
from openbell.market.lookback import lookback_start
from openbell.market.series import Series
from openbell.market.timeframes import SHORT, name_of
from openbell.stores.port import Span
from openbell.strategies.compiled import Compiled, compiled
from openbell.strategies.spec import Number, Spec

_USUAL_BARS = 1250
"""The bars of a backtest without a start: five years of days of a stock."""
_FEWEST = 2
_WARM_UP = 800
"""The fewest bars before the first one that is traded."""
_SESSIONS = 5 * 86400
"""Seconds that hold two sessions, also over a long weekend: nothing that needs regular hours looks further back."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The bars of a run, with those before them that warm up its indicators."""

    bars: Bars
    first: int
    """The time from which it trades."""
    part: RegularPart | None
    """What was traded of them in regular hours, if an indicator needs it and the bars hold more than that."""
    titles: str
    """The titles of those indicators."""

    @property
    def count(self) -> int:
        """The bars that are traded."""
        return len(self.bars) - int(self.bars.time.searchsorted(self.first))

    @property
    def regular(self) -> Bars | None:
        """The bars of `part`."""
        return self.part.bars if self.part else None

    @property
    def note(self) -> str:
        """Says how many bars have no minutes; empty if none lacks them."""
        note = self.part.note(self.count) if self.part else None
        return f"{self.titles}: {note}" if note else ""


class BacktestService:
    """Runs strategies over closed bars of a series."""

    def __init__(self, bars: BarService, backtester: Backtester) -> None:
        self._bars = bars
        self._backtester = backtester

    async def run(
        self, strategy: Compiled, series: Series, setup: Setup, start: int | None = None, end: int | None = None
    ) -> Backtest:
        """Trade a strategy on the bars that open in [start, end); by default on the newest 1,250.

        Bars before `start` warm up its indicators. Raises `InsufficientData` if there are fewer than two bars, `NoData` if
        an indicator needs minutes and there are none, and as `Backtester` does.
        """
        found = await self.fetched([strategy], series, start, end)
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
        found = await self.fetched([compiled(spec, each) for each in combinations], series, start, end)
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
        found = [await self.fetched([strategy], series, start, end) for strategy, series, _ in parts]
        first = max((each.first for each in found), default=0)
        made = [
            Part(strategy, each.bars, share, regular=each.regular)
            for (strategy, _, share), each in zip(parts, found, strict=True)
        ]
        return await self._backtester.run(PortfolioJob(made, setup, first, inf if end is None else end), progress)

    async def fetched(
        self, strategies: Sequence[Compiled], series: Series, start: int | None, end: int | None
    ) -> Stretch:
        """Returns the bars for runs of strategies, fetched as needed. Raises as `run` does."""
        until = self._bars.closed_until() if end is None else end
        first = lookback_start(series.instrument, series.timeframe, _USUAL_BARS, until) if start is None else start
        if first >= until:
            raise InvalidParameter("the start must be before the end")
        warm = lookback_start(series.instrument, series.timeframe, _warm_up(strategies), first)
        bars = await self._bars.span(series, warm, until)
        found = Stretch(bars, first, None, _regular_titles(strategies))
        if found.count < _FEWEST:
            hint = await stored_instead(self._bars, series.instrument)
            raise InsufficientData(series.instrument.symbol, found.count, _FEWEST, hint)
        return replace(found, part=await self._regular(found))

    async def _regular(self, found: Stretch) -> RegularPart | None:
        """Returns the regular-hours part of the bars if an indicator needs it and the bars hold more than that."""
        bars = found.bars
        if not found.titles or not partly_regular(bars).any():
            return None
        since = max(int(bars.time[0]), found.first - _SESSIONS)
        part = await regular_part_of(self._bars, bars, Span(since, closed_at(bars)))
        missing, overlapping = part.missing(found.count)
        if overlapping and missing == overlapping:
            what = f"{found.titles} on {name_of(bars.timeframe, SHORT)} bars of {bars.instrument}"
            raise NoData(
                f"{what} is computed from minutes of regular hours, and there are none in this time; use bars of 30 minutes "
                "or less, or import minutes",
                symbol=bars.instrument.symbol,
            )
        return part


def _warm_up(strategies: Sequence[Compiled]) -> int:
    """Returns the number of bars before the first one that is traded, as charts use them: later trades then hardly depend
    on where the bars begin.
    """
    return max([_WARM_UP, *(24 * each.warmup for each in strategies)])


def _regular_titles(strategies: Sequence[Compiled]) -> str:
    """Returns the titles of the indicators that are computed on regular hours; empty if none is."""
    used = (step.indicator for strategy in strategies for step in strategy.steps)
    return ", ".join(dict.fromkeys(each.title for each in used if each.regular))
