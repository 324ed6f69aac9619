"""A backtest of a strategy: its conditions, its trades and its figures, over all bars or a range of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import inf

import numpy as np

from openbell.backtest.edge import RunTiming
from openbell.backtest.engine import Run, simulate
from openbell.backtest.metrics import RunMetrics, measure
from openbell.backtest.rules import Setup
from openbell.market.bars import Bars
from openbell.strategies.compiled import Compiled
from openbell.strategies.evaluation import Conditions, Known, evaluate

Progress = Callable[[int, int], None]
"""Called with the number of finished steps and of all steps. It may raise an exception to stop the work."""
_VALUES = 3_900_000
"""Of 8 bytes: just below the 32 MB at which glibc stops raising its thresholds."""


@lru_cache(maxsize=1)
def keep_freed_memory() -> None:
    """Make glibc return at most 64 MB less of freed memory to the system; other allocators are not changed.

    glibc raises its threshold for separate mappings to the largest mapping that was freed, and trims its heap at twice that.
    The pages of this array are never touched, so that it takes no memory. It halves the time of a backtest of 100,000 bars.
    """
    np.empty(_VALUES)


@dataclass(frozen=True, slots=True, eq=False)
class Backtest:
    """The result of a backtest."""

    bars: Bars
    """Those of the range. Indexes of trades refer to them."""
    run: Run
    metrics: RunMetrics
    note: str = ""
    """What a reader must know about the data that the conditions need; empty if there is nothing."""
    timing: RunTiming | None = None
    """How far its timing is above luck. None where nobody asks."""


def backtest(
    strategy: Compiled,
    bars: Bars,
    setup: Setup,
    start: float = -inf,
    end: float = inf,
    *,
    regular: Bars | None = None,
    known: Known | None = None,
    on_step: Callable[[int], None] | None = None,
) -> Backtest:
    """Trade a strategy on the bars that open in [start, end).

    Earlier bars warm up its indicators, and later ones are not used. The first decision is at the close of the first bar of
    the range. `regular`, `known` and `on_step` are as in `evaluate`; `known` must be of bars that end where the range does.
    """
    keep_freed_memory()
    first = int(bars.time.searchsorted(start))
    part = range(first, first + len(traded_bars(bars, start, end)))
    upto = slice(0, part.stop)
    conditions = evaluate(strategy, bars.take(upto), None if regular is None else regular.take(upto), known, on_step)
    return traded(strategy, conditions, bars, setup, part)


def traded_bars(bars: Bars, start: float, end: float) -> Bars:
    """Returns the bars that open in [start, end)."""
    first, last = (int(each) for each in bars.time.searchsorted((start, end)))
    return bars.take(slice(first, max(first, last)))


def traded(strategy: Compiled, conditions: Conditions, bars: Bars, setup: Setup, part: range) -> Backtest:
    """Trade a part of the bars that the conditions of a strategy were evaluated on.

    The result is that of `backtest`, because the conditions at a bar depend on that bar and earlier ones only.
    """
    some = slice(part.start, part.stop)
    chosen = bars.take(some)
    run = simulate(
        chosen, Conditions(conditions.entry[some], conditions.exit[some]), strategy.side, strategy.stops, setup
    )
    return Backtest(chosen, run, measure(run, chosen))
