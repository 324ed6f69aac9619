"""Portfolios: several strategies, each on bars of its own, that trade fixed shares of one account.

Each part starts with its share of the cash and keeps what it earns: nothing is moved between parts later. The equity of the
account is the sum over all parts at every close of any of them. A part is worth its cash before its first bar, and its last
equity between its bars and after the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from openbell.backtest.curve import deviation, returns_of
from openbell.backtest.metrics import Dealings, RunMetrics, bars_per_year, dealings, figures, ratio
from openbell.backtest.rules import SIGNAL, Setup
from openbell.backtest.runs import Backtest, backtest
from openbell.market.bars import Bars, Values, bucket_bounds
from openbell.market.errors import InvalidParameter
from openbell.market.session_table import Times
from openbell.strategies.compiled import Compiled

MOST_PARTS = 100
_YEAR = 365.25 * 86400
_ROUNDING = 1e-9
"""Weights may add up to so much more than 1."""


@dataclass(frozen=True, slots=True, eq=False)
class PortfolioPart:
    """A strategy, the bars that it trades, and its share of the cash."""

    strategy: Compiled
    bars: Bars
    weight: float
    regular: Bars | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Portfolio:
    """The result of a portfolio."""

    parts: tuple[Backtest, ...]
    time: Times
    """The closes of all parts, each once, oldest first."""
    equity: Values
    """Of the account, at these times."""
    metrics: RunMetrics
    """Of the account. Bars are counted in `time`, but the average length of trades in bars of their parts. Exposure is the
    share of times at which any part held a position. Alpha and beta are None."""
    correlation: tuple[tuple[float | None, ...], ...]
    """Of the returns of each part with each other, at the times that both were traded. None if one of them does not move,
    or if there are fewer than three such times."""


def portfolio(
    parts: Sequence[PortfolioPart],
    setup: Setup,
    start: float = -inf,
    end: float = inf,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Portfolio:
    """Trade each part on its bars that open in [start, end), as `backtest` does. `progress` is as in `walk_forward`.

    Weights are more than 0 and add up to at most 1; the remaining cash is not invested. Raises `InvalidParameter`, also if
    a part has no bar in that time.
    """
    _check(parts)
    runs = []
    for done, part in enumerate(parts, start=1):
        own = replace(setup, cash=setup.cash * part.weight)
        runs.append(backtest(part.strategy, part.bars, own, start, end, regular=part.regular))
        if not len(runs[-1].bars):
            raise InvalidParameter(f"part {done}, {part.bars.series}, has no bars in that time")
        if progress:
            progress(done, len(parts))
    closes = [_closes(each.bars) for each in runs]
    time = np.unique(np.concatenate(closes))
    # Each part's equity at all times, with its cash before its first close.
    rows = [
        np.append(setup.cash * part.weight, run.run.equity)[close.searchsorted(time, side="right")]
        for part, run, close in zip(parts, runs, closes, strict=True)
    ]
    spare = setup.cash * max(0.0, 1.0 - sum(part.weight for part in parts))
    equity = np.sum(rows, axis=0) + spare
    made = Dealings(*(sum(column) for column in zip(*(dealings(each.run.trades) for each in runs), strict=True)))
    metrics = figures(equity, _per_year(runs, time), made, _exposure(runs, closes, time), None)
    return Portfolio(tuple(runs), time, equity, metrics, _correlations(runs, closes))


def _check(parts: Sequence[PortfolioPart]) -> None:
    if not 1 <= len(parts) <= MOST_PARTS:
        raise InvalidParameter(f"a portfolio has from 1 to {MOST_PARTS} parts, not {len(parts)}")
    for at, part in enumerate(parts, start=1):
        if not 0 < part.weight <= 1:
            raise InvalidParameter(f"the weight of part {at} must be more than 0 and at most 1, not {part.weight}")
    total = sum(part.weight for part in parts)
    if total > 1 + _ROUNDING:
        raise InvalidParameter(f"the weights add up to {total:g}: use at most 1")


def _closes(bars: Bars) -> Times:
    """Returns when each bar closed."""
    _, ends = bucket_bounds(bars.instrument, bars.timeframe, bars.time)
    # A bar outside all sessions, as files may have them, ends after its nominal length.
    ends = np.where(ends < 0, bars.time + bars.timeframe.seconds, ends)
    return np.maximum.accumulate(ends)


def _per_year(runs: Sequence[Backtest], time: Times) -> float:
    """Returns how many of the times make a year: as for one series if all are alike, else by the calendar."""
    kinds = {(each.bars.instrument.asset_class, each.bars.timeframe) for each in runs}
    if len(kinds) == 1:
        opens = np.unique(np.concatenate([each.bars.time for each in runs]))
        return bars_per_year(Bars(runs[0].bars.instrument, runs[0].bars.timeframe, opens, *(opens.astype(float),) * 5))
    shortest = min(each.bars.timeframe.seconds for each in runs)
    return len(time) / ((int(time[-1] - time[0]) + shortest) / _YEAR)


def _exposure(runs: Sequence[Backtest], closes: Sequence[Times], time: Times) -> float:
    """Returns the share of times at which any part held a position, or had held one in the bar that closed."""
    changes = np.zeros(len(time) + 1, np.int64)
    for each, close in zip(runs, closes, strict=True):
        trades, at = each.run.trades, time.searchsorted(close)
        # As in the figures of one run: a signal leaves at the open, so the position was not held in that bar.
        np.add.at(changes, at[trades.entry_index], 1)
        np.add.at(changes, at[trades.exit_index] + (trades.reason != SIGNAL), -1)
    return float((np.cumsum(changes[:-1]) > 0).mean())


def _correlations(runs: Sequence[Backtest], closes: Sequence[Times]) -> tuple[tuple[float | None, ...], ...]:
    count = len(runs)
    found: list[list[float | None]] = [[None] * count for _ in range(count)]
    for one in range(count):
        for other in range(one, count):
            _, left, right = np.intersect1d(closes[one], closes[other], return_indices=True)
            value = _correlation(runs[one].run.equity[left], runs[other].run.equity[right])
            found[one][other] = found[other][one] = value
    return tuple(tuple(row) for row in found)


def _correlation(one: Values, other: Values) -> float | None:
    if len(one) < 3 or one.min() <= 0.0 or other.min() <= 0.0:
        return None
    left, right = (returns_of(each[1:], float(each[0])) for each in (one, other))
    if deviation(left) == 0.0 or deviation(right) == 0.0:
        return None
    left, right = left - left.mean(), right - right.mean()
    # Not with `np.corrcoef`: BLAS starts threads, and the last digits of its result depend on how many.
    both = float(np.sqrt(np.square(left).sum() * np.square(right).sum()))
    found = ratio(float((left * right).sum()), both)
    return None if found is None else min(max(found, -1.0), 1.0)
