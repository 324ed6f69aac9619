"""How implementations stand at the last closed bar of a series, and how they stood at each close since they were found.

One run over all bars gives everything: the position at the end decides the signal; the part after training gives the figures
of the ranking; the part after the implementation was found is its forward performance. The rules of promotion are applied to
every close in turn, so that the result does not depend on when they are applied.

A strategy advises BUY from the close at which it decides to enter until it decides to leave, and SELL for a few bars after
that; then it holds. A strategy that sells short has both the other way round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from openbell.backtest.curve import NOISE
from openbell.backtest.engine import Run, simulate
from openbell.backtest.metrics import RunMetrics, bars_per_year, measure
from openbell.backtest.rules import END, SIGNAL, Setup
from openbell.backtest.trades import Trades
from openbell.market.bars import Bars, Values, bucket_bounds, closed_at
from openbell.market.errors import DataError
from openbell.strategies.compiled import compiled
from openbell.strategies.consensus import Action
from openbell.strategies.evaluation import Conditions, Known, evaluate
from openbell.strategies.implementations import Forward
from openbell.strategies.spec import Number, PositionSide, Spec
from openbell.trading.evidence import bar_hash

LEAVING_BARS = 5
"""For so many bars after a strategy has left, it advises against the position; then it holds."""
Course = list[tuple[int, Forward]]
"""When each bar closed, and the figures up to it, oldest first."""


@dataclass(frozen=True, slots=True)
class ImplementationOnSeries:
    """A strategy whose parameters were chosen at some time."""

    spec: Spec
    parameters: Mapping[str, Number]
    trained_until: int
    found_at: float


@dataclass(frozen=True, slots=True)
class RunPart:
    """The figures of a part of a run."""

    metrics: RunMetrics
    closed: int
    """Trades that were closed."""
    right: int
    """Those of them with a profit."""

    @property
    def accuracy(self) -> float | None:
        """The share of closed trades with a profit; None without any."""
        return self.right / self.closed if self.closed else None

    @property
    def confidence(self) -> float:
        """See `confidence_of`."""
        return confidence_of(self.right, self.closed)


@dataclass(frozen=True, slots=True)
class CurrentSignal:
    """How an implementation stands at the last closed bar."""

    until: int
    """When that bar closed."""
    signal: CurrentAdvice | None
    signal_bar: str
    """The hash of the bar at whose close the signal was decided; empty without a signal."""
    untrained: RunPart
    """Since its parameters were chosen."""
    before: RunPart
    """Of that, until it was found."""
    forward: RunPart
    """Since it was found."""


def current_signals(
    placed: Sequence[ImplementationOnSeries], bars: Bars, setup: Setup, regular: Bars | None = None
) -> list[CurrentSignal | None]:
    """Returns the standing of each strategy on the closed bars of one series; None if it cannot be computed from them."""
    known: Known = {}
    return [_current_signal(each, bars, setup, regular, known) if len(bars) else None for each in placed]


def _current_signal(
    placed: ImplementationOnSeries, bars: Bars, setup: Setup, regular: Bars | None, known: Known
) -> CurrentSignal | None:
    strategy = compiled(placed.spec, placed.parameters)
    try:
        conditions = evaluate(strategy, bars, regular, known)
    except DataError:  # for example, there are no minutes from which regular hours could be computed
        return None
    run = simulate(bars, conditions, strategy.side, strategy.stops, setup)
    signal = signal_of(run, conditions, bars, strategy.side)
    trained = int(bars.time.searchsorted(placed.trained_until))
    found = max(trained, int(bars.time.searchsorted(placed.found_at)))
    return CurrentSignal(
        closed_at(bars),
        signal,
        bar_hash(bars, signal.index) if signal else "",
        part_of(run, bars, trained, len(bars)),
        part_of(run, bars, trained, found),
        part_of(run, bars, found, len(bars)),
    )


def part_of(run: Run, bars: Bars, start: int, end: int) -> RunPart:
    """Returns the figures of the bars [start, end) of a run, with the trades that were entered there."""
    some = slice(start, max(start, end))
    trades = _between(run.trades, start, end)
    closed = trades.reason != END
    profitable = trades.profit > 0.0
    metrics = measure(Run(trades, run.equity[some]), bars.take(some))
    return RunPart(metrics, int(closed.sum()), int((closed & profitable).sum()))


def _between(trades: Trades, start: int, end: int) -> Trades:
    """Returns the trades that were entered in [start, end), with indexes counted from `start`."""
    first, last = (int(each) for each in trades.entry_index.searchsorted((start, max(start, end))))
    kept = slice(first, last)
    return Trades(
        trades.side,
        trades.entry_index[kept] - start,
        trades.exit_index[kept] - start,
        trades.reason[kept],
        trades.entry_price[kept],
        trades.exit_price[kept],
        trades.quantity[kept],
        trades.entry_fee[kept],
        trades.exit_fee[kept],
        trades.profit[kept],
    )


@dataclass(frozen=True, slots=True)
class CurrentAdvice:
    """What a strategy advises at the last closed bar."""

    action: Action
    index: int
    """The bar at whose close it was decided."""
    at: int
    """When that bar closed."""


def signal_of(run: Run, conditions: Conditions, bars: Bars, side: PositionSide) -> CurrentAdvice | None:
    """Returns the signal after a run over all closed bars of a series; None if it has never traded."""
    enter, leave = (Action.BUY, Action.SELL) if side is PositionSide.LONG else (Action.SELL, Action.BUY)
    last, trades = len(bars) - 1, run.trades
    if last < 0:
        return None
    holding = len(trades) > 0 and int(trades.reason[-1]) == END
    if holding:
        if conditions.exit[last]:
            return _at(leave, last, bars)
        return _at(enter, int(trades.entry_index[-1]) - 1, bars)
    if conditions.entry[last]:
        return _at(enter, last, bars)
    if not len(trades):
        return None
    # A signal is decided one bar before its order fills; a stop fills in its own bar.
    left = int(trades.exit_index[-1]) - int(trades.reason[-1] == SIGNAL)
    return _at(leave if last - left < LEAVING_BARS else Action.HOLD, left, bars)


def confidence_of(right: int, closed: int) -> float:
    """Returns (right + 1) / (closed + 2): the share of profitable trades, drawn towards one half while there are few."""
    return (right + 1) / (closed + 2)


def _at(action: Action, index: int, bars: Bars) -> CurrentAdvice:
    end = bucket_bounds(bars.instrument, bars.timeframe, np.asarray(bars.time[index : index + 1]))[1]
    return CurrentAdvice(action, index, int(end[0]))


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
