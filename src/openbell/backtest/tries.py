"""Tries of a sweep: backtests of one strategy on the same bars, of which only figures and sums of returns are kept.

Tries share indicator lines, conditions and everything that depends on the bars alone. A row has the bits of `backtest`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from openbell.backtest.annual import bars_per_year
from openbell.backtest.blocks import BlockSums, block_edges, block_sums, undefined
from openbell.backtest.curve import Curve, Holding, bar_returns, curve_of, holding_of, returns_of
from openbell.backtest.engine import equity_of, trades_of
from openbell.backtest.grids import Combination
from openbell.backtest.kernel import fastest
from openbell.backtest.line_cache import LineCache
from openbell.backtest.memory import keep_freed_memory
from openbell.backtest.metrics import Metrics, dealings, figures_of, held_bars, measure
from openbell.backtest.rules import SIGNAL, Setup
from openbell.backtest.runs import backtest
from openbell.backtest.trades import Trades
from openbell.market.bars import Bars, Values
from openbell.strategies.compiled import compiled
from openbell.strategies.evaluation import Conditions, evaluate
from openbell.strategies.spec import Side, Spec

_CACHE = 128 * 1024 * 1024
"""Bytes of shared lines and conditions: 160 lines of 100,000 bars."""

Curves = Callable[[Trades, Values], tuple[Curve, BlockSums]]
"""Returns the curve of trades and of the cash before each of them and after the last, and the sums of its blocks."""


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """What all tries of a sweep have in common. It can be pickled, to be sent to other processes."""

    spec: Spec
    bars: Bars
    """None later than the range."""
    regular: Bars | None
    setup: Setup
    first: int
    """The index of the first bar that is traded."""
    blocks: int
    numba: bool
    """Use compiled code, if numba is installed. The result is the same; it pays for long bars or many tries."""


@dataclass(frozen=True, slots=True, eq=False)
class Tried:
    """The results of some tries, in their order."""

    metrics: list[Metrics]
    sums: Values
    """A row for each try, a column for each block; see `BlockSums`."""
    squares: Values


def run_chunk(work: Work, combinations: Sequence[Combination]) -> Tried:
    """Run some tries. This is the function that a sweep sends to other processes."""
    return Tries(work).run(combinations)


class Tries:
    """Runs tries one after the other. Not for several threads at a time."""

    def __init__(self, work: Work) -> None:
        keep_freed_memory()
        self._work, self._known = work, LineCache(_CACHE)
        self._traded = bars = work.bars.take(slice(work.first, None))
        if not len(bars):
            return
        self.yearly, self.edges = bars_per_year(bars), block_edges(len(bars), work.blocks)
        self._holding = holding_of(returns_of(bars.close, float(bars.open[0])))
        curves = (compiled_curves() if work.numba else None) or NumpyCurves
        self._curves: Curves = curves(bars.close, self._holding, self.edges)

    def run(self, combinations: Sequence[Combination]) -> Tried:
        """Returns the figures of each combination."""
        found = [self._run(each) for each in combinations]
        sums, squares = (np.array([each[1][at] for each in found]).reshape(len(found), -1) for at in (0, 1))
        return Tried([each[0] for each in found], sums, squares)

    def _run(self, combination: Combination) -> tuple[Metrics, BlockSums]:
        work, bars = self._work, self._traded
        strategy = compiled(work.spec, combination)
        if not len(bars):
            run = backtest(strategy, bars, work.setup).run
            return measure(run, bars), undefined(work.blocks)
        held = evaluate(strategy, work.bars, work.regular, self._known)
        chosen = slice(work.first, None)
        trades, cash = trades_of(
            bars,
            Conditions(held.entry[chosen], held.exit[chosen]),
            strategy.side,
            strategy.stops,
            work.setup,
            fastest(stops=work.numba or bool(strategy.stops)),
        )
        curve, blocks = self._curves(trades, cash)
        exposure = held_bars(trades) / len(bars)
        return figures_of(curve, self.yearly, dealings(trades), exposure, self._holding), blocks


class NumpyCurves:
    """Computes the curves of runs over the same bars with numpy; `curve_numba` has the same in compiled code."""

    def __init__(self, close: Values, holding: Holding | None, edges: list[int]) -> None:
        self._close, self._holding, self._edges = close, holding, edges

    def __call__(self, trades: Trades, cash: Values) -> tuple[Curve, BlockSums]:
        """Returns the curve of these trades and the sums of its blocks."""
        equity = equity_of(trades, cash, self._close)
        returns = bar_returns(equity)
        return curve_of(equity, returns, self._holding), block_sums(returns, self._edges)


@lru_cache(maxsize=1)
def compiled_curves() -> Callable[[Values, Holding | None, list[int]], Curves] | None:
    """Returns the class of compiled curves; None if numba is not installed, or adds numbers in another order than numpy."""
    with suppress(ImportError):
        from openbell.backtest.curve_numba import NumbaCurves

        close = 100.0 + 10.0 * np.sin(np.arange(3001.0) ** 1.1)
        entered, price = np.array([7, 1500]), close[[6, 1499]]
        trades = Trades(
            Side.LONG,
            entered,
            entered + 1100,
            np.full(2, SIGNAL),
            price,
            price,
            np.array([10.0, 9.0]),
            *np.zeros((3, 2)),
        )
        holding, edges = holding_of(returns_of(close, 100.0)), block_edges(len(close), 8)
        cash = np.array([1000.0, 997.0, 1003.0])
        one, other = (kind(close, holding, edges)(trades, cash) for kind in (NumpyCurves, NumbaCurves))
        if repr(one[0]) == repr(other[0]) and all(map(np.array_equal, one[1], other[1])):
            return NumbaCurves
    return None
