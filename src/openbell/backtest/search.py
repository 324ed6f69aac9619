"""The search for implementations: the parameters of each spec that suit a series, and whether they pass walk-forward.

Each spec is tested walk-forward with a few combinations of its parameters. The parameters of the last window, which were
chosen on bars before its test part, become the implementation. Whether it is VALIDATED depends on what its timing adds to
holding (`edge`), and on how many specs were tried on the same series: the best of many looks good by luck. Bars that the
author of a spec may have seen when it was submitted are no evidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from time import process_time

from openbell.backtest.edge import Edge, RunTiming, timing_of
from openbell.backtest.grids import grid
from openbell.backtest.rules import Setup
from openbell.backtest.walk_forward import usual_windows, walk_forward
from openbell.market.bars import Bars
from openbell.market.errors import DataError, InvalidParameter
from openbell.strategies.compiled import compiled
from openbell.strategies.evaluation import Known, evaluate
from openbell.strategies.implementations import Promotion, ValidationFigures, validation
from openbell.strategies.spec import Number, Spec

COMBINATIONS = 8
"""Combinations of parameters that are tried of each spec."""
FEWEST_BARS = 300
"""A series with fewer is not searched."""
_SLOWEST = 1.0
"""Seconds of computing that one evaluation may take; a spec that takes longer is not tried, so that others are."""


@dataclass(frozen=True, slots=True)
class SearchedSpec:
    """The result of one spec on one series."""

    parameters: Mapping[str, Number]
    trained_until: int
    """Open time of the first bar that was not used to choose them."""
    why_not: str
    """Why the walk-forward test refused it; empty if it passed."""
    trades: int
    sharpe: float | None
    drawdown: float | None
    in_sample_sharpe: float
    timing: RunTiming
    """Of the test parts, as far as they are evidence."""


def search(
    specs: Sequence[Spec], bars: Bars, setup: Setup, regular: Bars | None = None, unseen: Sequence[float] | None = None
) -> list[SearchedSpec | None]:
    """Returns the result of each spec; None if it cannot be computed from these bars.

    `unseen` has for each spec the time from which its author cannot have seen the bars; without it all bars are evidence.
    Raises `InvalidParameter` if there are fewer than `FEWEST_BARS`.
    """
    if len(bars) < FEWEST_BARS:
        raise InvalidParameter(f"{len(bars)} bars are too few to search, {FEWEST_BARS} are needed")
    known: Known = {}
    return [
        _searched(spec, bars, setup, regular, known, since)
        for spec, since in zip(specs, [-inf] * len(specs) if unseen is None else unseen, strict=True)
    ]


def judged(found: SearchedSpec, tries: int) -> tuple[Promotion, Edge]:
    """Returns the status of a result, and its edge after all specs that were tried on the series."""
    edge = found.timing.edge(tries)
    figures = ValidationFigures(
        not found.why_not, found.why_not, found.trades, edge.trades, edge.proven, edge.sentence()
    )
    return validation(figures), edge


def _searched(
    spec: Spec, bars: Bars, setup: Setup, regular: Bars | None, known: Known, unseen: float
) -> SearchedSpec | None:
    try:
        strategy = compiled(spec)  # loads the modules of indicators
        began = process_time()
        evaluate(strategy, bars, regular, known)
        if process_time() - began > _SLOWEST:
            return None

        found = walk_forward(
            spec,
            bars,
            grid(spec, most=COMBINATIONS).combinations,
            setup,
            usual_windows(len(bars)),
            regular=regular,
            known=known,
        )
    except DataError:  # for example, there are no minutes from which regular hours could be computed
        return None
    tested, last = found.out_of_sample, found.windows[-1]
    metrics = tested.metrics
    return SearchedSpec(
        last.parameters,
        int(bars.time[last.test.start]),
        "; ".join(found.reasons),
        metrics.trades,
        metrics.sharpe,
        metrics.max_drawdown,
        found.in_sample_sharpe,
        timing_of(
            tested.run, tested.bars, replace(setup, closes_at_end=True), int(tested.bars.time.searchsorted(unseen))
        ),
    )
