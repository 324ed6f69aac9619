"""How implementations stand at the last closed bar of a series: their signal, and figures since training ended.

One run over all bars gives everything: the position at the end decides the signal; the part after training gives the figures
of the ranking; the part after the implementation was found is its forward performance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from openbell.backtest.engine import Run, simulate
from openbell.backtest.metrics import Metrics, measure
from openbell.backtest.rules import END, Setup
from openbell.backtest.signals import Signal, confidence_of, signal_of
from openbell.backtest.trades import Trades
from openbell.market.bars import Bars, closed_at
from openbell.market.errors import DataError
from openbell.strategies.compiled import compiled
from openbell.strategies.evaluation import Known, evaluate
from openbell.strategies.spec import Number, Spec
from openbell.trading.evidence import bar_hash


@dataclass(frozen=True, slots=True)
class Placed:
    """A strategy whose parameters were chosen at some time."""

    spec: Spec
    parameters: Mapping[str, Number]
    trained_until: int
    found_at: float


@dataclass(frozen=True, slots=True)
class RunPart:
    """The figures of a part of a run."""

    metrics: Metrics
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
    signal: Signal | None
    signal_bar: str
    """The hash of the bar at whose close the signal was decided; empty without a signal."""
    untrained: RunPart
    """Since its parameters were chosen."""
    before: RunPart
    """Of that, until it was found."""
    forward: RunPart
    """Since it was found."""


def current_signals(
    placed: Sequence[Placed], bars: Bars, setup: Setup, regular: Bars | None = None
) -> list[CurrentSignal | None]:
    """Returns the standing of each strategy on the closed bars of one series; None if it cannot be computed from them."""
    known: Known = {}
    return [_current_signal(each, bars, setup, regular, known) if len(bars) else None for each in placed]


def _current_signal(
    placed: Placed, bars: Bars, setup: Setup, regular: Bars | None, known: Known
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
