"""The runs of a sweep: backtests of one strategy on the same bars, of which only figures and sums of returns are kept.

They share indicator lines, conditions and everything that depends on the bars alone. A row has the bits of `backtest`. Sums
of returns over blocks of consecutive bars are all that cross-validation needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from openbell.backtest.curve import bar_returns, curve_of, drawdown_of, holding_of, returns_of
from openbell.backtest.engine import equity_of, trades_of
from openbell.backtest.grids import Combination
from openbell.backtest.kernel import Kernel, walk
from openbell.backtest.metrics import RunMetrics, bars_per_year, dealings, figures_of, held_bars, measure
from openbell.backtest.rules import Setup
from openbell.backtest.runs import backtest, keep_freed_memory
from openbell.backtest.trades import EquityFacts, Trades
from openbell.market.bars import Bars, Values
from openbell.strategies.compiled import compiled
from openbell.strategies.evaluation import Conditions, evaluate
from openbell.strategies.spec import Spec

Arrays = tuple[npt.NDArray[Any], ...]

_CACHE = 128 * 1024 * 1024
"""Bytes of shared lines and conditions: 160 lines of 100,000 bars."""


class LineCache(MutableMapping[object, Arrays]):
    """A mapping for `evaluate` that removes the arrays that were not read for the longest time. The newest always stay."""

    def __init__(self, most: int) -> None:
        self._most, self._bytes = most, 0
        self._arrays: dict[object, Arrays] = {}

    def __getitem__(self, key: object) -> Arrays:
        # A dictionary keeps the order of insertion: what is read is put last.
        found = self._arrays[key] = self._arrays.pop(key)
        return found

    def __setitem__(self, key: object, arrays: Arrays) -> None:
        self.pop(key, None)
        self._arrays[key] = arrays
        self._bytes += _size(arrays)
        while self._bytes > self._most and len(self._arrays) > 1:
            del self[next(iter(self._arrays))]

    def __delitem__(self, key: object) -> None:
        self._bytes -= _size(self._arrays.pop(key))

    def __iter__(self) -> Iterator[object]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    @property
    def bytes(self) -> int:
        """The size of all arrays."""
        return self._bytes


def _size(arrays: Arrays) -> int:
    return sum(each.nbytes for each in arrays)


@dataclass(frozen=True, slots=True, eq=False)
class SweepWork:
    """What all runs of a sweep have in common. It can be pickled, to be sent to other processes."""

    spec: Spec
    bars: Bars
    """None later than the range."""
    regular: Bars | None
    setup: Setup
    first: int
    """The index of the first bar that is traded."""
    blocks: int
    numba: bool
    """Use compiled code, if numba is installed. The result is the same; it pays for long bars or many runs."""


@dataclass(frozen=True, slots=True, eq=False)
class SweepRuns:
    """The results of some runs, in their order."""

    metrics: list[RunMetrics]
    sums: Values
    """A row for each run, a column for each block; see `BlockSums`."""
    squares: Values


def run_chunk(work: SweepWork, combinations: Sequence[Combination]) -> SweepRuns:
    """Run some combinations. This is the function that a sweep sends to other processes."""
    return SweepRunner(work).run(combinations)


class SweepRunner:
    """Runs combinations one after the other. Not for several threads at a time."""

    def __init__(self, work: SweepWork) -> None:
        keep_freed_memory()
        self._work, self._known = work, LineCache(_CACHE)
        self._traded = bars = work.bars.take(slice(work.first, None))
        if not len(bars):
            return
        self.yearly, self.edges = bars_per_year(bars), block_edges(len(bars), work.blocks)
        self._close = np.ascontiguousarray(bars.close)
        self._holding = holding_of(returns_of(bars.close, float(bars.open[0])))
        self._walk, self._curve = _fastest(numba=work.numba or bool(work.spec.stops))

    def run(self, combinations: Sequence[Combination]) -> SweepRuns:
        """Returns the figures of each combination."""
        found = [self._run(each) for each in combinations]
        sums, squares = (np.array([each[1][at] for each in found]).reshape(len(found), -1) for at in (0, 1))
        return SweepRuns([each[0] for each in found], sums, squares)

    def _run(self, combination: Combination) -> tuple[RunMetrics, BlockSums]:
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
            self._walk,
        )
        equity, returns, fall = self._curve(trades, cash, self._close)
        curve, blocks = curve_of(equity, returns, self._holding, fall), block_sums(returns, self.edges)
        exposure = held_bars(trades) / len(bars)
        return figures_of(curve, self.yearly, dealings(trades), exposure, self._holding), blocks


def _fastest(*, numba: bool) -> tuple[Kernel, Callable[[Trades, Values, Values], EquityFacts]]:
    """Returns the functions that find trades and compute their equity: compiled ones, if numba is wanted and installed."""
    if numba:
        with suppress(ImportError):
            from openbell.backtest import kernel_numba

            return kernel_numba.walk, kernel_numba.curve
    return walk, _curve


def _curve(trades: Trades, cash: Values, close: Values) -> EquityFacts:
    equity = equity_of(trades, cash, close)
    return equity, bar_returns(equity), drawdown_of(equity)


class BlockSums(NamedTuple):
    """One value per block; NaN if the run has no returns because its equity was 0 or less."""

    sums: Values
    squares: Values
    """Sums of the squares of the returns."""


def block_edges(bars: int, blocks: int) -> list[int]:
    """Returns the first bar of each block, and the number of bars; lengths differ by at most one bar."""
    return [bars * at // blocks for at in range(blocks + 1)] if blocks else [0]


def block_sums(returns: Values | None, edges: list[int]) -> BlockSums:
    """Returns the sums over the blocks between edges."""
    if returns is None:
        return undefined(len(edges) - 1)
    parts = [returns[first:end] for first, end in pairwise(edges)]
    return BlockSums(np.array([each.sum() for each in parts]), np.array([np.square(each).sum() for each in parts]))


def undefined(blocks: int) -> BlockSums:
    """Returns the sums of a run without returns."""
    return BlockSums(np.full(blocks, np.nan), np.full(blocks, np.nan))
