"""Edges: timing is told from exposure, and luck from skill."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest

from openbell.backtest.curve import returns_of
from openbell.backtest.edge import DRAWS, Edge, RunTiming, confidence, random_sums, share, timing_of
from openbell.backtest.engine import Run, simulate
from openbell.backtest.rules import Setup
from openbell.market.bars import Bars, Values, make
from openbell.market.instruments import parse
from openbell.market.timeframes import Timeframe
from openbell.strategies.evaluation import Conditions
from openbell.strategies.spec import ConditionType, PositionSide
from tests.counts import runs

FREE = Setup(fee=0.0)
SERIES = runs(150, soak=2000)
_STEPS = 200
"""Of a day: its lows are hardly missed."""


def drifting(seed: int, sharpe: float, count: int = 1500) -> Bars:
    """Days of a coin whose returns are independent, with a yearly Sharpe and a volatility that comes in clusters.

    Each day has a path of its own: with lows only where a day closes low, every stop would be filled too well.
    """
    chance = np.random.default_rng(seed)
    level = np.zeros(count)
    for at in range(1, count):
        level[at] = 0.97 * level[at - 1] + 0.15 * chance.standard_normal()
    deviation = 0.4 / sqrt(365 * _STEPS)
    steps = chance.standard_normal((count, _STEPS)) * np.exp(level)[:, None] + sharpe / sqrt(365 * _STEPS)
    path = 100 * np.exp(deviation * np.cumsum(steps)).reshape(count, _STEPS)
    close = path[:, -1]
    opened = np.concatenate(([100.0], close[:-1]))
    high, low = np.maximum(path.max(axis=1), opened), np.minimum(path.min(axis=1), opened)
    times = 1_577_836_800 + 86400 * np.arange(count)
    return make(parse("BTC/USD"), Timeframe.D1, times, opened, high, low, close, np.full(count, 1000.0))


def ran(
    bars: Bars, inside: Values, setup: Setup = FREE, side: PositionSide = PositionSide.LONG, stop: float | None = None
) -> Run:
    """The run of a strategy that wants a position after the closes where `inside` is not 0."""
    wanted = inside != 0
    stops = {} if stop is None else {ConditionType.STOP_LOSS: stop}
    return simulate(bars, Conditions(wanted, ~wanted), side, stops, setup)


def coin(seed: int, count: int, stay: float = 0.9) -> Values:
    """Whether a coin wants a position: it changes its mind at one close in ten."""
    changes = np.random.default_rng(seed).random(count) > stay
    return (np.cumsum(changes) % 2).astype(np.float64)


# Against holding


@pytest.mark.parametrize("side", list(PositionSide))
def test_the_test_against_holding_is_a_regression_whose_errors_may_differ(side: PositionSide) -> None:
    bars = drifting(1, 1.0)
    run = ran(bars, coin(2, len(bars)), Setup(fee=0.001), side)
    own = returns_of(run.equity, float(run.equity[0]))
    held = np.column_stack((np.ones(len(bars)), returns_of(bars.close, float(bars.open[0]))))
    inverse = np.linalg.inv(held.T @ held)
    found = inverse @ held.T @ own
    rest = own - held @ found
    errors = inverse @ (held.T @ np.diag(rest**2) @ held) @ inverse * len(bars) / (len(bars) - 2)
    timing = timing_of(run, bars, Setup(fee=0.001))
    assert timing.alpha == pytest.approx(found[0], rel=1e-9)
    assert timing.above_holding == pytest.approx(found[0] / sqrt(errors[0, 0]), rel=1e-9)


def test_holding_has_no_edge_over_holding() -> None:
    bars = drifting(3, 3.0)
    timing = timing_of(ran(bars, np.ones(len(bars))), bars, FREE)
    assert timing.trades == 1
    assert abs(timing.above_holding or 0.0) < 2
    assert timing.above_random is None
    assert not timing.edge(1).proven


# Against random timing


def test_draws_hold_as_long_as_the_run_and_nowhere_twice() -> None:
    """On prices whose opens double from bar to bar, a sum of returns tells how long each position was held."""
    count = 40
    opened = 2.0 ** np.arange(count)
    times = 1_577_836_800 + 86400 * np.arange(count)
    bars = make(parse("BTC/USD"), Timeframe.D1, times, opened, opened * 2, opened, opened * 2, np.ones(count))
    inside = np.zeros(count)
    inside[3:5] = inside[10:17] = inside[25:26] = 1
    run = ran(bars, inside)
    assert [int(each) for each in run.trades.exit_index - run.trades.entry_index] == [2, 7, 1]
    assert np.allclose(random_sums(run.trades, bars, FREE), 3 + 127 + 1)


def test_draws_are_spread_over_all_bars() -> None:
    """The mean of many draws is the mean over every place of a position."""
    bars = drifting(5, 2.0, 400)
    inside = np.zeros(400)
    inside[100:103] = 1
    inside[300:303] = 1
    run = ran(bars, inside)
    prices = np.append(bars.open, bars.close[-1])
    places = prices[3:] / prices[:-3] - 1
    drawn = random_sums(run.trades, bars, FREE, 40_000)
    # The earlier of two positions leaves room for the later one, which is a small difference.
    assert float(drawn.mean()) == pytest.approx(2 * float(places.mean()), abs=4 * float(drawn.std()) / 200)
    assert len(random_sums(run.trades, bars, FREE)) == DRAWS


def test_draws_pay_the_slippage_of_the_run_on_both_sides() -> None:
    bars = drifting(6, 0.0, 300)
    for side in PositionSide:
        run = ran(bars, coin(7, 300), Setup(fee=0.0, slippage=0.01), side)
        paid = random_sums(run.trades, bars, Setup(fee=0.0, slippage=0.01))
        free = random_sums(run.trades, bars, FREE)
        assert np.all(paid < free - 0.015 * len(run.trades))


@pytest.mark.parametrize("slippage", [0.0, 0.002])
def test_targets_have_no_slippage_in_draws_either(slippage: float) -> None:
    """Random entries with targets earn nothing, whatever the slippage."""
    setup, above = Setup(fee=0.0, slippage=slippage), []
    for seed in range(25):
        bars = drifting(seed, 0.0, 1000)
        wanted = coin(700 + seed, len(bars), 0.8) != 0
        stops = {ConditionType.STOP_GAIN: 4.0, ConditionType.STOP_LOSS: 6.0}
        run = simulate(bars, Conditions(wanted, ~wanted), PositionSide.LONG, stops, setup)
        above.append(timing_of(run, bars, setup).above_random or 0.0)
    assert abs(float(np.mean(above))) < 0.6


def test_trading_in_wild_times_is_no_skill() -> None:
    """Whoever holds in wild times deviates further by luck than a holder at random times does."""
    above = []
    for seed in range(SERIES):
        chance = np.random.default_rng(seed)
        wild = np.repeat(chance.random(30) < 0.2, 50)
        moves = chance.standard_normal(1500) * np.where(wild, 0.05, 0.01)
        close = 100 * np.exp(np.cumsum(moves))
        opened = np.concatenate(([100.0], close[:-1]))
        times = 1_577_836_800 + 86400 * np.arange(1500)
        high, low = np.maximum(opened, close), np.minimum(opened, close)
        bars = make(parse("BTC/USD"), Timeframe.D1, times, opened, high, low, close, np.full(1500, 1000.0))
        inside = np.where(wild, coin(seed, 1500, 0.7), 0.0)
        above.append(timing_of(ran(bars, inside), bars, FREE).above_random or 0.0)
    assert float(np.std(above)) < 1.25
    assert float(np.mean(np.array(above) > 1.645)) <= 0.05 + 3 * sqrt(0.05 * 0.95 / SERIES)


def test_very_many_trades_are_placed_less_often() -> None:
    bars = drifting(20, 0.0, 60_000)
    run = ran(bars, (np.arange(60_000) % 2).astype(np.float64))
    assert len(run.trades) > 29_000
    assert len(random_sums(run.trades, bars, FREE)) == 200


def test_the_same_run_has_the_same_result() -> None:
    bars = drifting(8, 1.0)
    run = ran(bars, coin(9, len(bars)))
    assert timing_of(run, bars, FREE) == timing_of(run, bars, FREE)


# Luck and skill


@pytest.mark.parametrize("sharpe", [-1.0, 0.0, 3.0])
def test_coins_pass_as_often_as_luck_permits(sharpe: float) -> None:
    """Also in rising and falling markets, long and short, with stops."""
    passed = []
    for seed in range(SERIES):
        bars = drifting(seed, sharpe)
        side = PositionSide.SHORT if seed % 3 == 2 else PositionSide.LONG
        run = ran(bars, coin(10_000 + seed, len(bars)), FREE, side, 4.0 if seed % 2 else None)
        timing = timing_of(run, bars, FREE)
        passed.append(timing.edge(1).proven)
    # Three deviations of a share of 5 %.
    assert float(np.mean(passed)) <= 0.05 + 3 * sqrt(0.05 * 0.95 / SERIES)


def test_a_strategy_that_knows_the_next_close_a_little_better_than_a_coin_is_proven() -> None:
    bars = drifting(11, 0.0)
    chance = np.random.default_rng(12)
    rises = np.append(bars.close[1:] > bars.open[1:], False)
    knows = np.where(chance.random(len(bars)) < 0.3, rises, chance.random(len(bars)) < 0.5)
    edge = timing_of(ran(bars, knows.astype(float)), bars, FREE).edge(60)
    assert edge.proven
    assert "probably skill" in edge.sentence()


def test_the_best_of_many_tries_must_be_better() -> None:
    assert confidence(1.645, 1) == pytest.approx(0.95, abs=1e-4)
    assert confidence(3.2, 60) == pytest.approx((1 - 0.000687) ** 60, abs=1e-4)
    timing = RunTiming(40, 0.001, 2.5, 2.5)
    assert timing.edge(1).proven
    assert not timing.edge(60).proven


# Evidence since a bar


def test_only_what_was_entered_since_counts() -> None:
    bars = drifting(13, 0.0)
    run = ran(bars, coin(14, len(bars)))
    first = 900
    later = timing_of(run, bars, FREE, first)
    assert later.trades == int((run.trades.entry_index >= first).sum())
    some = bars.take(slice(first, None))
    own = returns_of(run.equity[first:], float(run.equity[first - 1]))
    market = returns_of(some.close, float(bars.close[first - 1]))
    assert later.alpha == pytest.approx(np.polynomial.polynomial.polyfit(market, own, 1)[0], rel=1e-6)
    # What happened before has no effect.
    changed = replace(run, equity=np.append(run.equity[: first - 1] * 3.0, run.equity[first - 1 :]))
    assert timing_of(changed, bars, FREE, first) == later


def test_nothing_since_the_last_bar_is_no_evidence() -> None:
    bars = drifting(15, 0.0, 300)
    assert timing_of(ran(bars, coin(16, 300)), bars, FREE, 300) == RunTiming(0, None, None, None)


# Words


def test_few_trades_are_no_evidence_whatever_they_earned() -> None:
    edge = RunTiming(19, 0.1, 9.0, 9.0).edge(1)
    assert edge == Edge(19, 1, None, None)
    assert edge.sentence() == "19 trades cannot tell timing from luck: at least 20 are needed"


def test_the_verdict_names_both_tests_and_the_tries() -> None:
    assert Edge(40, 90, 0.949, 0.9999).sentence() == (
        "it beats 94 % of strategies that hold as much without timing, and more than 99 % of its own trades at random times "
        "after 90 tries: below 95 % in either, it shows no skill"
    )
    assert "after" not in Edge(40, 1, 0.5, 0.5).sentence()
    assert (
        Edge(3, 1, None, None).sentence(since_submission=True).startswith("since its submission, 3 trades cannot tell")
    )
    assert Edge(40, 1, 0.99, 0.99).sentence().endswith("probably skill, unless its rules were chosen on these bars")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "less than 1 %"), (0.28, "28 %"), (0.57, "57 %"), (0.949, "94 %"), (0.95, "95 %"), (1.0, "more than 99 %")],
)
def test_a_probability_is_never_rounded_to_certainty(value: float, text: str) -> None:
    assert share(value) == text
