"""The forward performance of a strategy as it was known at each close since it was found.

The rules of promotion are applied to every close in turn, so that the result does not depend on when they are applied.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from openbell.backtest.current_signals import ImplementationOnSeries
from openbell.backtest.curve import NOISE
from openbell.backtest.engine import Run, simulate
from openbell.backtest.metrics import bars_per_year
from openbell.backtest.rules import END, Setup
from openbell.market.bars import Bars, Values, bucket_bounds
from openbell.market.errors import DataError
from openbell.strategies.compiled import compiled
from openbell.strategies.evaluation import Known, evaluate
from openbell.strategies.implementations import Forward

Course = list[tuple[int, Forward]]
"""When each bar closed, and the figures up to it, oldest first."""


def courses(
    placed: Sequence[ImplementationOnSeries],
    drawdowns: Sequence[float | None],
    bars: Bars,
    setup: Setup,
    regular: Bars | None = None,
) -> list[Course]:
    """Returns the course of each strategy on the closed bars of one series; empty if it cannot be computed from them.

    `drawdowns` are the largest ones before the strategies were found.
    """
    known: Known = {}
    return [_course(each, before, bars, setup, regular, known) for each, before in zip(placed, drawdowns, strict=True)]


def _course(
    placed: ImplementationOnSeries, before: float | None, bars: Bars, setup: Setup, regular: Bars | None, known: Known
) -> Course:
    strategy = compiled(placed.spec, placed.parameters)
    try:
        conditions = evaluate(strategy, bars, regular, known)
    except DataError:
        return []
    run = simulate(bars, conditions, strategy.side, strategy.stops, setup)
    first = max(int(bars.time.searchsorted(each)) for each in (placed.trained_until, placed.found_at))
    return course_of(run, bars, first, before)


def course_of(run: Run, bars: Bars, first: int, before: float | None) -> Course:
    """Returns the figures of a run at each close from the bar `first` on, with the trades that were entered since then."""
    some = bars.take(slice(first, None))
    if not len(some):
        return []
    equity = run.equity[first:]
    trades = run.trades
    counted = (trades.entry_index >= first) & (trades.reason != END)
    left = np.sort(trades.exit_index[counted] - first)
    closed = np.searchsorted(left, np.arange(len(some)), side="right")
    drawdown = np.maximum.accumulate(1.0 - equity / np.maximum.accumulate(equity))
    sharpe = _sharpes(equity, sqrt(bars_per_year(some)))
    ends = bucket_bounds(bars.instrument, bars.timeframe, some.time)[1]
    rows = zip(ends.tolist(), closed.tolist(), sharpe.tolist(), drawdown.tolist(), strict=True)
    return [(int(at), Forward(int(n), None if s != s else s, fall, before)) for at, n, s, fall in rows]  # noqa: PLR0124


def _sharpes(equity: Values, yearly: float) -> Values:
    """Returns the annual Sharpe ratio of the returns up to each bar, the first of which is 0; NaN where it is undefined."""
    if float(equity.min()) <= 0.0:
        return np.full(len(equity), np.nan)
    returns = np.concatenate(([0.0], np.diff(equity) / equity[:-1]))
    count = np.arange(1, len(returns) + 1)
    mean = np.cumsum(returns) / count
    squares = np.cumsum(returns * returns)
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = (squares - count * mean * mean) / (count - 1)
        found = mean / np.sqrt(variance) * yearly
    # Equal returns differ by rounding only.
    return np.asarray(np.where(variance * count > NOISE * squares, found, np.nan))
