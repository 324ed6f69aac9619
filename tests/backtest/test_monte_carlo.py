"""Monte Carlo simulations: worked out by hand, compared with a plain loop, and equal to the bit for equal seeds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.backtest.engine import simulate
from openbell.backtest.monte_carlo import MonteCarlo, monte_carlo, trade_returns
from openbell.backtest.rules import Setup
from openbell.backtest.runs import backtest
from openbell.market.bars import Values
from openbell.market.errors import InvalidParameter
from openbell.strategies.compiled import compiled
from openbell.strategies.reading import read_spec
from tests.backtest.masks import Case, cases
from tests.strategies.specs import crossover, walk


def plainly(returns: Values, simulations: int, seed: int, limit: float) -> MonteCarlo:
    """The same, one simulation and one trade at a time."""
    count = len(returns)
    chance = np.random.default_rng(seed)
    drawn = np.array([chance.integers(count, size=simulations) for _ in range(count)])
    ends, falls = [], []
    for at in range(simulations):
        money = highest = 1.0
        fall = 0.0
        for trade in drawn[:, at]:
            if money > 0:
                money *= 1 + returns[trade]
            highest = max(highest, money)
            fall = max(fall, 1 - money / highest)
        ends.append(money - 1)
        falls.append(fall)
    levels = (5, 25, 50, 75, 95)
    return MonteCarlo(
        simulations,
        count,
        seed,
        tuple(float(each) for each in np.percentile(ends, levels)),  # type: ignore[arg-type]
        tuple(float(each) for each in np.percentile(falls, levels)),  # type: ignore[arg-type]
        sum(each < 0 for each in ends) / simulations,
        limit,
        sum(each > limit for each in falls) / simulations,
    )


def test_equal_trades_leave_nothing_to_chance() -> None:
    found = monte_carlo(np.full(3, 0.1))
    assert found.simulations == 1000
    assert found.total_return == pytest.approx([1.1**3 - 1] * 5)
    assert found.max_drawdown == (0, 0, 0, 0, 0)
    assert (found.loss_probability, found.drawdown_probability) == (0, 0)
    lost = monte_carlo(np.full(2, -0.1), drawdown_limit=0.15)
    assert lost.total_return == pytest.approx([0.81 - 1] * 5)
    assert lost.max_drawdown == pytest.approx([0.19] * 5)
    assert (lost.loss_probability, lost.drawdown_probability) == (1, 1)


def test_two_trades_have_the_probabilities_of_four_orders() -> None:
    # +50 % and −50 %: of the four draws, ++ gains, the others lose; +−, −+ and −− fall by half or more.
    found = monte_carlo(np.array([0.5, -0.5]), simulations=100_000, seed=3, drawdown_limit=0.6)
    assert found.loss_probability == pytest.approx(0.75, abs=0.01)
    assert found.drawdown_probability == pytest.approx(0.25, abs=0.01)  # only −− falls by 75 %
    percentiles = found.total_return
    assert (percentiles.p5, percentiles.p50, percentiles.p95) == pytest.approx((-0.75, -0.25, 1.25))
    assert found.max_drawdown.p50 == pytest.approx(0.5)


@settings(max_examples=40, deadline=None)
@given(
    returns=st.lists(st.floats(-1.5, 3.0), min_size=2, max_size=12),
    simulations=st.integers(1, 40),
    seed=st.integers(0, 2**63 - 1),
    limit=st.floats(0, 1),
)
def test_it_is_the_plain_loop_and_the_same_seed_gives_the_same_bytes(
    returns: list[float], simulations: int, seed: int, limit: float
) -> None:
    given = np.array(returns)
    found = monte_carlo(given, simulations=simulations, seed=seed, drawdown_limit=limit)
    assert found == plainly(given, simulations, seed, limit)
    assert found == monte_carlo(given, simulations=simulations, seed=seed, drawdown_limit=limit)


def test_another_seed_gives_other_figures() -> None:
    returns = np.random.default_rng(0).normal(0.01, 0.05, 50)
    assert monte_carlo(returns, seed=1) != monte_carlo(returns, seed=2)


def test_percentiles_rise_and_agree_with_the_theory_of_many_small_trades() -> None:
    returns = np.random.default_rng(0).normal(0.002, 0.01, 200)
    found = monte_carlo(returns, simulations=20_000)
    assert list(found.total_return) == sorted(found.total_return)
    assert list(found.max_drawdown) == sorted(found.max_drawdown)
    # The logarithm of the growth is nearly normal, with 200 times the mean and the variance of one trade's.
    logs = np.log1p(returns)
    expected = np.exp(200 * logs.mean() + np.sqrt(200) * logs.std() * np.array([-1.645, -0.674, 0, 0.674, 1.645])) - 1
    assert found.total_return == pytest.approx(expected, abs=0.02)


def test_nothing_is_traded_after_all_is_lost() -> None:
    found = monte_carlo(np.array([-1.2, -1.2, 0.5]), simulations=2000)
    # Two gains and then a loss of 120 %, which is the worst, have a probability of 7 %.
    assert found.total_return.p5 == pytest.approx(1.5**2 * -0.2 - 1)
    assert found.loss_probability == pytest.approx(1 - (1 / 3) ** 3, abs=0.03)
    assert found.max_drawdown.p95 == pytest.approx(1.2)


def test_huge_returns_stay_finite() -> None:
    found = monte_carlo(np.full(10, 1e99))
    assert np.isfinite([*found.total_return, *found.max_drawdown]).all()


@settings(max_examples=100, deadline=None)
@given(cases())
def test_returns_of_trades_compound_to_the_equity(case: Case) -> None:
    bars, conditions, side, stops, setup = case
    run = simulate(bars, conditions, side, stops, setup)
    returns = trade_returns(run.trades, setup.cash)
    assert len(returns) == len(run.trades)
    if len(run.trades):
        assert setup.cash * np.prod(1 + returns) == pytest.approx(run.equity[-1], rel=1e-9, abs=1e-6)


def test_the_trades_of_a_backtest() -> None:
    found = backtest(compiled(read_spec(crossover())), walk(11, 2000), Setup())
    simulated = monte_carlo(trade_returns(found.run.trades, 10_000.0))
    assert simulated.trades == found.metrics.trades
    assert simulated.total_return.p5 < (found.metrics.total_return or 0) < simulated.total_return.p95


@pytest.mark.parametrize(
    "wrong",
    [
        {"returns": np.array([0.1])},
        {"returns": np.array([])},
        {"returns": np.array([0.1, np.nan])},
        {"returns": np.array([0.1, np.inf])},
        {"simulations": 0},
        {"simulations": 1_000_001},
        {"seed": -1},
        {"seed": 2**63},
        {"drawdown_limit": 1.5},
        {"drawdown_limit": float("nan")},
    ],
    ids=str,
)
def test_what_cannot_be_simulated_is_refused(wrong: dict[str, object]) -> None:
    returns = wrong.pop("returns", np.array([0.1, -0.1]))
    with pytest.raises(InvalidParameter):
        monte_carlo(returns, **wrong)  # type: ignore[arg-type]


def test_progress_can_stop_the_work() -> None:
    seen: list[tuple[int, int]] = []
    monte_carlo(np.full(130, 0.01), progress=lambda *each: seen.append(each))
    assert seen == [(64, 130), (128, 130), (130, 130)]
