"""The search for implementations: the parameters of each spec that suit a series, and whether they pass walk-forward.

Each spec is tested walk-forward with a few combinations of its parameters. The parameters of the last window, which were
chosen on bars before its test part, become the implementation. Whether it is VALIDATED depends on how many specs were tried
on the same series: the best of many looks good by luck.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import process_time

import numpy as np

from openbell.backtest.grids import grid
from openbell.backtest.overfitting import deflated_sharpe
from openbell.backtest.rules import Setup
from openbell.backtest.walk_forward import WalkForward, usual_windows, walk_forward
from openbell.market.bars import Bars, Values
from openbell.market.errors import DataError, InvalidParameter
from openbell.strategies.compiled import compiled
from openbell.strategies.evaluation import Known, evaluate
from openbell.strategies.implementations import Promotion, ValidationFigures, validation
from openbell.strategies.spec import Number, Spec

COMBINATIONS = 8
"""Combinations of parameters that are tried of each spec."""
FEWEST_BARS = 300
"""A series with fewer is not searched."""
_FEWEST_RETURNS = 30
_SLOWEST = 1.0
"""Seconds of computing that one evaluation may take; a spec that takes longer is not tried, so that others are."""


@dataclass(frozen=True, slots=True)
class Moments:
    """What is known about the walk-forward returns, one for each bar."""

    sharpe: float
    """Mean divided by the deviation; not annual."""
    skew: float
    kurtosis: float
    """3 for a normal distribution."""
    bars: int


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
    moments: Moments | None
    """None if the returns are too few, or do not differ."""


def search(specs: Sequence[Spec], bars: Bars, setup: Setup, regular: Bars | None = None) -> list[SearchedSpec | None]:
    """Returns the result of each spec; None if it cannot be computed from these bars.

    Raises `InvalidParameter` if there are fewer than `FEWEST_BARS`.
    """
    if len(bars) < FEWEST_BARS:
        raise InvalidParameter(f"{len(bars)} bars are too few to search, {FEWEST_BARS} are needed")
    known: Known = {}
    return [_searched(spec, bars, setup, regular, known) for spec in specs]


def judged(found: SearchedSpec, tries: int) -> tuple[Promotion, float | None]:
    """Returns the status of a result and its deflated Sharpe ratio against all specs that were tried on the series.

    Without skill, the Sharpe ratio of T returns deviates by 1 / √T. The deviation over the tries themselves is not used:
    specs with real gains and losses differ by more than luck, and would make each other look like luck.
    """
    deflated = None
    if (moments := found.moments) is not None:
        luck = 1.0 / moments.bars
        deflated = deflated_sharpe(moments.sharpe, tries, luck, moments.skew, moments.kurtosis, moments.bars)
    return validation(
        ValidationFigures(not found.why_not, found.why_not, found.trades, found.sharpe, deflated, tries)
    ), deflated


def _searched(spec: Spec, bars: Bars, setup: Setup, regular: Bars | None, known: Known) -> SearchedSpec | None:
    try:
        began = process_time()
        evaluate(compiled(spec), bars, regular, known)
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
    metrics, last = found.out_of_sample.metrics, found.windows[-1]
    return SearchedSpec(
        last.parameters,
        int(bars.time[last.test.start]),
        "; ".join(found.reasons),
        metrics.trades,
        metrics.sharpe,
        metrics.max_drawdown,
        found.in_sample_sharpe,
        _moments(found),
    )


def _moments(found: WalkForward) -> Moments | None:
    equity = found.out_of_sample.run.equity
    if len(equity) <= _FEWEST_RETURNS or float(equity.min()) <= 0.0:
        return None
    returns: Values = np.diff(equity) / equity[:-1]
    deviation = float(returns.std(ddof=1))
    if not deviation > 0.0:
        return None
    scaled = (returns - returns.mean()) / float(returns.std())
    return Moments(
        float(returns.mean()) / deviation,
        float(np.mean(scaled**3)),
        float(np.mean(scaled**4)),
        len(returns),
    )
