"""The overfitting statistics: values worked out by hand and published ones, a plain second calculation, and simulations."""

from __future__ import annotations

from itertools import combinations
from math import nan, sqrt

import numpy as np
import pytest

from openbell.backtest.edge import Edge
from openbell.backtest.overfitting import (
    Overfitting,
    blocks_for,
    deflated_sharpe,
    luckiest_sharpe,
    overfitting_probability,
    skew_and_kurtosis,
)
from openbell.backtest.sweep_runs import block_edges, block_sums
from openbell.market.bars import Values
from openbell.market.errors import InvalidParameter


def in_blocks(returns: Values, blocks: int) -> tuple[Values, Values, Values]:
    """The sums of a matrix with a row of bar returns for each try."""
    edges = block_edges(returns.shape[1], blocks)
    found = [block_sums(row, edges) for row in returns]
    sums, squares = (np.array([each[at] for each in found]) for at in (0, 1))
    return sums, squares, np.diff(edges).astype(float)


def noise(seed: int, tries: int, bars: int) -> Values:
    return np.random.default_rng(seed).normal(0, 0.01, (tries, bars))


def deflated(returns: Values) -> float:
    """The deflated Sharpe of the best row of a matrix of bar returns."""
    sharpes = returns.mean(axis=1) / returns.std(axis=1, ddof=1)
    best = int(sharpes.argmax())
    return deflated_sharpe(
        float(sharpes[best]),
        len(returns),
        float(sharpes.var(ddof=1)),
        *skew_and_kurtosis(returns[best]),
        returns.shape[1],
    )


# The deflated Sharpe ratio


def test_one_try_is_compared_with_zero() -> None:
    # z = 0.1 × √100 / √(1 + 0.5 × 0.1²) = 0.99751
    assert deflated_sharpe(0.1, 1, 0.0, 0.0, 3.0, 101) == pytest.approx(0.8407413, abs=1e-7)
    assert deflated_sharpe(0.0, 1, 0.0, 0.0, 3.0, 101) == 0.5


def test_the_example_of_its_authors() -> None:
    # An annual Sharpe of 2.5 in 5 years of 250 days; 100 tries whose annual Sharpes have a variance of 1/2.
    variance = 0.5 / 250
    assert luckiest_sharpe(100, variance) == pytest.approx(0.1132, abs=5e-5)
    assert deflated_sharpe(2.5 / sqrt(250), 100, variance, -3.0, 10.0, 1250) == pytest.approx(0.9004, abs=5e-5)


def test_more_tries_a_fat_tail_and_a_negative_skew_lower_it_and_more_bars_raise_it() -> None:
    usual = deflated_sharpe(0.15, 50, 0.001, 0.0, 3.0, 1000)
    assert deflated_sharpe(0.15, 500, 0.001, 0.0, 3.0, 1000) < usual
    assert deflated_sharpe(0.15, 50, 0.002, 0.0, 3.0, 1000) < usual
    assert deflated_sharpe(0.15, 50, 0.001, -2.0, 3.0, 1000) < usual
    assert deflated_sharpe(0.15, 50, 0.001, 0.0, 30.0, 1000) < usual
    assert deflated_sharpe(0.15, 50, 0.001, 0.0, 3.0, 4000) > usual


def test_the_luckiest_of_tries_without_an_edge_is_as_expected() -> None:
    sharpes = np.random.default_rng(5).normal(0, 0.03, (4000, 200))
    assert sharpes.max(axis=1).mean() == pytest.approx(luckiest_sharpe(200, 0.03**2), rel=0.01)
    assert luckiest_sharpe(1, 0.03**2) == 0.0


@pytest.mark.parametrize(
    "arguments",
    [
        (nan, 1, 0.0, 0.0, 3.0, 100),
        (0.1, 0, 0.0, 0.0, 3.0, 100),
        (0.1, 1, -0.1, 0.0, 3.0, 100),
        (0.1, 1, 0.0, nan, 3.0, 100),
        (0.1, 1, 0.0, 0.0, float("inf"), 100),
        (0.1, 1, 0.0, 0.0, 3.0, 1),
    ],
)
def test_numbers_without_a_meaning_are_refused(arguments: tuple[float, int, float, float, float, int]) -> None:
    with pytest.raises(InvalidParameter):
        deflated_sharpe(*arguments)


def test_a_variance_of_zero_decides_by_the_sign() -> None:
    # Two values at the same distance from 0 have a skew of −2 / a and so on: 1 − skew × SR + (kurtosis − 1) / 4 × SR² = 0.
    assert deflated_sharpe(1.0, 1, 0.0, 2.0, 5.0, 100) == 1.0
    assert deflated_sharpe(1.0, 2, 100.0, 2.0, 5.0, 100) == 0.0


def test_skew_and_kurtosis_by_hand() -> None:
    # Deviations −1, −1, 2 from the mean: variance 2, third moment 2, fourth moment 6.
    assert skew_and_kurtosis(np.array([0.0, 0.0, 3.0])) == pytest.approx((2 / 2**1.5, 6 / 4))
    assert skew_and_kurtosis(np.full(9, 0.25)) == (0.0, 3.0)


def test_the_best_of_noise_is_near_or_below_one_half() -> None:
    found = [deflated(noise(seed, 100, 1000)) for seed in range(40)]
    assert 0.35 < np.mean(found) < 0.6
    assert np.mean([each > 0.95 for each in found]) <= 0.1


def test_an_edge_is_found() -> None:
    for seed in range(10):
        returns = noise(seed, 100, 1000)
        returns[seed] += 0.0025  # a Sharpe of 0.25 a bar
        assert deflated(returns) > 0.95


# The probability of backtest overfitting


def plain_probability(returns: Values, blocks: int) -> float:
    """The definition, written out: every split, every Sharpe from the returns themselves."""
    edges, tries = block_edges(returns.shape[1], blocks), len(returns)
    parts = [returns[:, edges[at] : edges[at + 1]] for at in range(blocks)]
    counted = []
    for chosen in combinations(range(blocks), blocks // 2):
        halves = [
            np.concatenate([parts[at] for at in range(blocks) if (at in chosen) is wanted], axis=1)
            for wanted in (True, False)
        ]
        one, other = ([row.mean() / row.std(ddof=1) for row in half] for half in halves)
        best = other[int(np.argmax(one))]
        rank = sum(each < best for each in other) + (sum(each == best for each in other) + 1) / 2
        share = rank / (tries + 1)
        counted.append(1.0 if share < 0.5 else 0.5 if share == 0.5 else 0.0)
    return float(np.mean(counted))


@pytest.mark.parametrize("blocks", [2, 4, 6, 8])
def test_it_is_the_definition(blocks: int) -> None:
    for seed in range(3):
        returns = noise(seed, 7 + seed, 101)
        found, splits = overfitting_probability(*in_blocks(returns, blocks))
        assert found == pytest.approx(plain_probability(returns, blocks), abs=1e-12)
        assert splits == len(list(combinations(range(blocks), blocks // 2)))


def test_by_hand() -> None:
    # Two tries, two blocks: each is the best of one block and the worst of the other.
    returns = np.array([[0.01, 0.02, -0.01, -0.02], [-0.01, -0.02, 0.01, 0.02]])
    assert overfitting_probability(*in_blocks(returns, 2)) == (1.0, 2)
    # The same one is the best in both.
    returns = np.array([[0.01, 0.02, 0.01, 0.02], [-0.01, -0.02, -0.01, -0.02]])
    assert overfitting_probability(*in_blocks(returns, 2)) == (0.0, 2)
    # Equal tries: nothing is known.
    assert overfitting_probability(*in_blocks(np.tile(noise(1, 1, 100), (5, 1)), 8)) == (0.5, 70)
    assert overfitting_probability(*in_blocks(np.zeros((5, 100)), 8)) == (0.5, 70)


def test_noise_is_near_one_half_and_an_edge_near_zero() -> None:
    found = [overfitting_probability(*in_blocks(noise(seed, 40, 800), 12))[0] for seed in range(30)]
    assert 0.4 < np.mean(found) < 0.6
    returns = noise(3, 40, 800)
    returns[17] += 0.003
    assert overfitting_probability(*in_blocks(returns, 12))[0] < 0.05


def test_a_try_that_lost_everything_is_the_worst() -> None:
    returns = noise(2, 20, 400)
    returns[4] += 0.01
    sums, squares, lengths = in_blocks(returns, 8)
    sums[9], squares[9] = nan, nan
    found, _ = overfitting_probability(sums, squares, lengths)
    assert found == 0.0


def test_blocks_get_fewer_with_more_tries_and_there_are_none_without_enough_bars() -> None:
    assert [blocks_for(tries, 5000) for tries in (1, 2, 300, 301, 5000, 5001, 100_000)] == [0, 16, 16, 12, 12, 8, 8]
    assert [blocks_for(100, bars) for bars in (79, 80, 119, 120, 159, 160)] == [0, 8, 8, 12, 12, 16]


# In plain words


def test_each_is_said_in_a_sentence() -> None:
    sharpe, timing, luck = Overfitting(1000, 1.904, 1.7, 0.634, 0.581, 924, Edge(12, 1000, None, None)).sentences()
    assert sharpe == (
        "The best Sharpe of 1,000 tries is 1.90, and the best of as many without any gain would be about 1.70: its true "
        "Sharpe is above 0 with a probability of 63 % (deflated Sharpe ratio). A rising price is enough for that."
    )
    assert timing == "Timing of that try: 12 trades cannot tell timing from luck: at least 20 are needed."
    assert luck == (
        "The probability of overfitting is 58 %: in that share of 924 splits of the time, the best try on one half was "
        "below the median on the other half. This compares the tries with each other: it can be low although none of them "
        "has an edge."
    )
    sharpe, luck = Overfitting(1000, 1.904, 0.7, 0.9999, 0.0, 924).sentences()
    assert "more than 99 % (deflated Sharpe ratio)" in sharpe
    assert "less than 1 %" in luck
    assert Overfitting(1000, None, None, None, None, 0).sentences() == ()
