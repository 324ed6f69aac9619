"""How much of the best result of many tries is luck: two statistics.

The deflated Sharpe ratio (Bailey and López de Prado, Journal of Portfolio Management, 2014) compares the best Sharpe with
the one that the best of as many tries without an edge would have. The probability of backtest overfitting (Bailey, Borwein,
López de Prado and Zhu, Journal of Computational Finance, 2017) is the share of splits of the bars into halves in which the
best try on one half is below the median on the other half.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import e, isfinite, sqrt
from statistics import NormalDist

import numpy as np

from openbell.backtest.curve import NOISE
from openbell.backtest.edge import Edge, share
from openbell.market.bars import Values
from openbell.market.errors import InvalidParameter
from openbell.market.plural import counted

_EULER = 0.5772156649015329
_NORMAL = NormalDist()
_BLOCKS = ((16, 300), (12, 5_000), (8, 1_000_000))
"""Blocks, and the most tries for which the bars are divided into so many: 12,870, 924 or 70 splits in 0.2 s and 100 MB."""
_FEWEST_BARS = 10
"""In a block."""


@dataclass(frozen=True, slots=True)
class Overfitting:
    """The statistics of the tries of a sweep."""

    tries: int
    sharpe: float | None
    """The highest annual Sharpe. None if no try has one."""
    sharpe_of_luck: float | None
    """The expected highest annual Sharpe of as many tries without an edge. None if no try has a Sharpe."""
    deflated_sharpe: float | None
    """From 0 to 1; see the function of that name. None if no try has a Sharpe."""
    probability: float | None
    """The probability of backtest overfitting. None with one try, or with fewer than 80 bars."""
    splits: int
    """The splits of the bars that it was counted in."""
    edge: Edge | None = None
    """Of the best try, after all of them. None if no try has a Sharpe."""

    def sentences(self) -> tuple[str, ...]:
        """Returns one sentence for each statistic, in plain words."""
        found = []
        if self.deflated_sharpe is not None:
            found.append(
                f"The best Sharpe of {counted(self.tries, 'try', 'tries')} is {self.sharpe:.2f}, and the best of as many "
                f"without any gain would be about {self.sharpe_of_luck:.2f}: its true Sharpe is above 0 with a probability "
                f"of {share(self.deflated_sharpe)} (deflated Sharpe ratio). A rising price is enough for that."
            )
        if self.edge is not None:
            found.append(f"Timing of that try: {self.edge.sentence()}.")
        if self.probability is not None:
            found.append(
                f"The probability of overfitting is {share(self.probability)}: in that share of {self.splits:,} splits of "
                "the time, the best try on one half was below the median on the other half. This compares the tries with "
                "each other: it can be low although none of them has an edge."
            )
        return tuple(found)


def deflated_sharpe(
    sharpe_per_bar: float, tries: int, variance_of_tries: float, skew: float, kurtosis: float, bars: int
) -> float:
    """Returns the probability that the best of several tries has a true Sharpe above the one that luck explains.

    Args:
        sharpe_per_bar: Mean return of a bar divided by its deviation, of the best try: an annual Sharpe divided by the root
            of the bars in a year.
        tries: How many strategies or combinations of parameters were tried, all of them counted. Similar tries count fully,
            which makes the result too low rather than too high.
        variance_of_tries: The sample variance of the Sharpe per bar over the tries; 0 with one try.
        skew: Of the bar returns of the best try; 0 for normal ones.
        kurtosis: Of the same returns, not the excess: 3 for normal ones.
        bars: The number of those returns.

    Returns:
        A number from 0 to 1. 0.95 and more is strong evidence of an edge; 0.5 is what luck gives.

    Raises:
        InvalidParameter: If a number is not finite, there is no try, the variance is negative or there are under two bars.
    """
    if not all(map(isfinite, (sharpe_per_bar, variance_of_tries, skew, kurtosis))):
        raise InvalidParameter("the Sharpe ratio, its variance, the skew and the kurtosis must be finite numbers")
    if bars < 2:
        raise InvalidParameter(f"a deflated Sharpe ratio needs at least 2 bars, not {bars}")
    above = sharpe_per_bar - luckiest_sharpe(tries, variance_of_tries)
    # Of the estimate, times the bars. It is 0 at least, because the kurtosis is more than the square of the skew.
    variance = 1.0 - skew * sharpe_per_bar + (kurtosis - 1.0) / 4.0 * sharpe_per_bar**2
    if variance <= 0.0:
        return 0.5 if above == 0.0 else float(above > 0.0)
    return _NORMAL.cdf(above * sqrt(bars - 1) / sqrt(variance))


def luckiest_sharpe(tries: int, variance_of_tries: float) -> float:
    """Returns the expected highest Sharpe of tries whose true Sharpe is 0; 0 with one try. Raises `InvalidParameter`."""
    if tries < 1 or variance_of_tries < 0.0:
        raise InvalidParameter(f"there must be a try and no negative variance, not {tries} and {variance_of_tries}")
    if tries == 1:
        return 0.0
    quantile = _NORMAL.inv_cdf
    most = (1.0 - _EULER) * quantile(1.0 - 1.0 / tries) + _EULER * quantile(1.0 - 1.0 / (tries * e))
    return sqrt(variance_of_tries) * most


def skew_and_kurtosis(returns: Values) -> tuple[float, float]:
    """Returns the skew and the kurtosis of returns, not the excess; those of a normal distribution if all are equal."""
    moved = returns - returns.mean()
    variance = float(np.square(moved).mean())
    if variance <= 0.0:
        return 0.0, 3.0
    scaled = moved / sqrt(variance)
    return float((scaled**3).mean()), float((scaled**4).mean())


def blocks_for(tries: int, bars: int) -> int:
    """Returns the blocks into which the bars of a sweep are divided: 16, 12 or 8; 0 if there are too few bars or tries."""
    possible = [blocks for blocks, most in _BLOCKS if tries <= most and bars >= blocks * _FEWEST_BARS]
    return possible[0] if tries > 1 and possible else 0


def overfitting_probability(sums: Values, squares: Values, lengths: Values) -> tuple[float, int]:
    """Returns the probability of backtest overfitting, and the number of splits, by cross-validation.

    `sums` and `squares` have a row for each try and a column for each block of bars: the sums of its returns and of their
    squares; `lengths` are the bars of each block. The blocks are split into two halves in every way. In each split, the try
    with the best Sharpe on one half is ranked on the other half. Rows with NaN are the worst everywhere. A rank at the
    median counts half.
    """
    half = sums.shape[1] // 2
    left, right = (
        _Subsets(sums[:, part], squares[:, part], lengths[part]) for part in (slice(half), slice(half, None))
    )
    overfitted, splits, rest = 0.0, 0, (1 << half) - 1
    # The bits of `first` and of each of `second` are the blocks of one half; the other half is their complement.
    for first in range(1 << (half - 1)):
        second = right.of_size[half - first.bit_count()]
        one = _sharpes(left, first, right, second)
        other = _sharpes(left, rest - first, right, [rest - each for each in second])
        overfitted += _below_median(one, other) + _below_median(other, one)
        splits += 2 * len(second)
    return overfitted / splits, splits


def _below_median(chosen: Values, tested: Values) -> float:
    """Returns in how many rows the column with the highest number of `chosen` is below the median of `tested`."""
    rows, tries = chosen.shape
    best = tested[np.arange(rows), chosen.argmax(axis=1)][:, None]
    ranks = (tested < best).sum(axis=1) + ((tested == best).sum(axis=1) + 1) / 2
    return float((2 * ranks < tries + 1).sum()) + 0.5 * float((2 * ranks == tries + 1).sum())


class _Subsets:
    """The sums over every subset of some blocks. The bits of an index are the blocks of a subset."""

    def __init__(self, sums: Values, squares: Values, lengths: Values) -> None:
        blocks = sums.shape[1]
        self.sums, self.squares, self.lengths = (_subset_sums(each.T) for each in (sums, squares, lengths[None, :]))
        self.of_size = [
            [sum(1 << each for each in chosen) for chosen in combinations(range(blocks), size)]
            for size in range(blocks + 1)
        ]


def _subset_sums(rows: Values) -> Values:
    found = np.zeros((1, rows.shape[1]))
    for row in rows:
        found = np.concatenate((found, found + row))
    return found


def _sharpes(left: _Subsets, first: int, right: _Subsets, second: list[int]) -> Values:
    """Returns the Sharpe of each try over subsets of both sides, up to a factor that is the same for all tries."""
    sums = left.sums[first] + right.sums[second]
    squares = left.squares[first] + right.squares[second]
    spread = squares - sums * sums / (left.lengths[first] + right.lengths[second])
    flat = spread <= NOISE * squares
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.where(flat, 0.0, sums / np.sqrt(spread))
    return np.where(np.isnan(squares), -np.inf, found)
