"""Sweeps: one strategy with many combinations of parameters on the same bars, and how much of the best result is luck.

Combinations are run in chunks: here one after the other, or by an executor in other processes or on other machines. The rows
are the same, to the bit and in the same order, whatever the executor and the size of the chunks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from math import inf, sqrt
from queue import SimpleQueue

import numpy as np

from openbell.backtest.curve import bar_returns
from openbell.backtest.edge import timing_of
from openbell.backtest.grids import Combination
from openbell.backtest.metrics import RunMetrics, bars_per_year
from openbell.backtest.overfitting import (
    Overfitting,
    blocks_for,
    deflated_sharpe,
    luckiest_sharpe,
    overfitting_probability,
    skew_and_kurtosis,
)
from openbell.backtest.rules import Setup
from openbell.backtest.runs import Progress, backtest
from openbell.backtest.sweep_runs import SweepRunner, SweepRuns, SweepWork, block_edges, run_chunk
from openbell.market.bars import Bars
from openbell.market.errors import InvalidParameter
from openbell.market.nearest import did_you_mean
from openbell.strategies.compiled import compiled
from openbell.strategies.spec import Spec

RANKED_BY = {"sharpe": "sharpe", "return": "total_return", "rating": "score", "calmar": "calmar"}
"""Names of the figures by which rows can be ranked, and the fields of `RunMetrics`."""
_CHUNK_BARS = 10_000_000
"""Bars times combinations of a chunk that an executor runs: 0.1 s of compiled code."""
_CHUNKS = (10, 100)
"""The fewest and the most combinations of such a chunk."""
_NUMBA_FROM, _NUMBA_FROM_WITH_STOPS = 100_000_000, 5_000_000
"""Bars times combinations from which the second that numba takes to load is won back."""


@dataclass(frozen=True, slots=True)
class SweepRow:
    """A combination of parameters and the figures of its run."""

    parameters: Combination
    metrics: RunMetrics


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """The result of a sweep."""

    spec: Spec
    bars: Bars
    """Those of the range."""
    rows: tuple[SweepRow, ...]
    """In the order of the combinations."""
    overfitting: Overfitting
    note: str = ""
    """What a reader must know about the data that the conditions need; empty if there is nothing."""

    def best(self, by: str = "sharpe", count: int | None = None) -> list[SweepRow]:
        """Returns the rows with the highest figure, best first; those without it last. Raises `InvalidParameter`."""
        figure = ranking(by)

        def key(row: SweepRow) -> float:
            value: float | None = getattr(row.metrics, figure)
            return -inf if value is None else value

        return sorted(self.rows, key=key, reverse=True)[:count]


def ranking(by: str) -> str:
    """Returns the field of `RunMetrics` by which rows are ranked. Raises `InvalidParameter`."""
    if by not in RANKED_BY:
        advice = did_you_mean(by, RANKED_BY) or f": use {', '.join(RANKED_BY)}"
        raise InvalidParameter(f"rows cannot be ranked by {by[:40]!r}{advice}")
    return RANKED_BY[by]


def sweep(
    spec: Spec,
    bars: Bars,
    combinations: Sequence[Combination],
    setup: Setup,
    start: float = -inf,
    end: float = inf,
    *,
    regular: Bars | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    chunk: int | None = None,
) -> Sweep:
    """Trade every combination on the bars that open in [start, end).

    Parameters that a combination leaves out keep their defaults. Earlier bars warm up indicators; `regular` is as in
    `evaluate`. Without an executor the combinations run in this thread. `chunk` is how many an executor runs at a time; the
    result does not depend on it. If `progress` raises, or the wait is interrupted, chunks that have not begun are cancelled.
    Raises `InvalidParameter`.
    """
    chosen = [compiled(spec, each).parameters for each in combinations]
    if not chosen:
        raise InvalidParameter("a sweep needs at least one combination of parameters")
    first, last = (int(each) for each in bars.time.searchsorted((start, end)))
    upto = slice(0, max(first, last))
    blocks = blocks_for(len(chosen), upto.stop - first)
    enough = _NUMBA_FROM_WITH_STOPS if spec.stops else _NUMBA_FROM
    numba = upto.stop * len(chosen) >= enough
    work = SweepWork(spec, bars.take(upto), regular.take(upto) if regular else None, setup, first, blocks, numba)
    size = chunk or (1 if executor is None else min(max(_CHUNK_BARS // max(upto.stop, 1), _CHUNKS[0]), _CHUNKS[1]))
    chunks = [chosen[at : at + size] for at in range(0, len(chosen), size)]
    found: dict[int, SweepRuns] = {}
    done = 0
    for at, runs in _here(work, chunks) if executor is None else _elsewhere(work, chunks, executor):
        found[at] = runs
        done += len(runs.metrics)
        if progress:
            progress(done, len(chosen))
    ordered = [found[at] for at in range(len(chunks))]
    metrics = [each for runs in ordered for each in runs.metrics]
    rows = tuple(SweepRow(*pair) for pair in zip(chosen, metrics, strict=True))
    return Sweep(spec, work.bars.take(slice(first, None)), rows, _overfitting(work, rows, ordered))


def _here(work: SweepWork, chunks: list[list[Combination]]) -> Iterator[tuple[int, SweepRuns]]:
    runner = SweepRunner(work)
    for at, each in enumerate(chunks):
        yield at, runner.run(each)


def _elsewhere(work: SweepWork, chunks: list[list[Combination]], executor: Executor) -> Iterator[tuple[int, SweepRuns]]:
    finished: SimpleQueue[tuple[int, Future[SweepRuns]]] = SimpleQueue()
    futures = []
    try:
        for at, each in enumerate(chunks):
            future = executor.submit(run_chunk, work, each)
            futures.append(future)
            # Not with `as_completed`: it waits for ever for futures that an executor cancels when it is shut down.
            future.add_done_callback(lambda done, at=at: finished.put((at, done)))  # type: ignore[misc]
        for _ in chunks:
            at, future = finished.get()
            yield at, future.result()
    finally:
        for future in futures:
            future.cancel()


def _overfitting(work: SweepWork, rows: tuple[SweepRow, ...], chunks: list[SweepRuns]) -> Overfitting:
    bars = work.bars.take(slice(work.first, None))
    probability, splits = None, 0
    if work.blocks:
        sums, squares = (np.concatenate([getattr(each, name) for each in chunks]) for name in ("sums", "squares"))
        lengths = np.diff(block_edges(len(bars), work.blocks)).astype(float)
        probability, splits = overfitting_probability(sums, squares, lengths)
    # A run that does not trade has returns of 0, and a Sharpe of 0; one that lost everything has no Sharpe at all.
    sharpes = [each.metrics.sharpe if each.metrics.trades else 0.0 for each in rows]
    known = [each for each in sharpes if each is not None]
    best = max(rows, key=lambda row: -inf if row.metrics.sharpe is None else row.metrics.sharpe)
    if best.metrics.sharpe is None or len(bars) < 2:
        return Overfitting(len(rows), None, None, None, probability, splits)
    root = sqrt(bars_per_year(bars))
    variance = float(np.var([each / root for each in known], ddof=1)) if len(known) > 1 else 0.0
    run = backtest(
        compiled(work.spec, best.parameters), work.bars, work.setup, float(bars.time[0]), regular=work.regular
    ).run
    returns = bar_returns(run.equity)
    assert returns is not None, "a run with a Sharpe has returns"
    sharpe = best.metrics.sharpe
    deflated = deflated_sharpe(sharpe / root, len(rows), variance, *skew_and_kurtosis(returns), len(bars))
    luck = luckiest_sharpe(len(rows), variance) * root
    edge = timing_of(run, bars, work.setup).edge(len(rows))
    return Overfitting(len(rows), sharpe, luck, deflated, probability, splits, edge)
