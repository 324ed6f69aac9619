"""The search: strategies without skill are not promoted, and one with an edge is."""

from __future__ import annotations

import random

import numpy as np
import pytest

from openbell.backtest.rules import Setup
from openbell.backtest.runs import backtest
from openbell.backtest.search import FEWEST_BARS, SearchedSpec, judged, search
from openbell.market.bars import Bars, make
from openbell.market.errors import InvalidParameter
from openbell.market.instruments import parse
from openbell.market.timeframes import Timeframe
from openbell.strategies.compiled import compiled
from openbell.strategies.errors import SpecRefused
from openbell.strategies.implementations import FEWEST_TRADES, ImplementationStatus, Promotion
from openbell.strategies.library import canonical
from openbell.strategies.reading import read_spec
from openbell.strategies.spec import Spec
from tests.backtest.test_edge import drifting
from tests.counts import runs
from tests.strategies.specs import crossover, random_spec, walk

COSTS = Setup(10_000.0, 0.001, 0.0005)
WITHOUT_SKILL = runs(100, soak=1000)


def steps(found: list[SearchedSpec | None]) -> list[Promotion]:
    """The status of each result, judged against all of them."""
    tried = [each for each in found if each is not None]
    return [judged(each, len(tried))[0] for each in tried]


def reverting(count: int = 3000) -> Bars:
    """Prices that return to their mean: a strategy that buys low has an edge."""
    chance = np.random.default_rng(5)
    away = np.zeros(count)
    for at in range(1, count):
        away[at] = 0.7 * away[at - 1] + chance.normal(0, 0.02)
    close = 100 * np.exp(away)
    opened = np.concatenate(([100.0], close[:-1]))
    high, low = np.maximum(opened, close) * 1.001, np.minimum(opened, close) * 0.999
    times = 1_600_000_000 // 86400 * 86400 + 86400 * np.arange(count)
    return make(parse("BTC/USD"), Timeframe.D1, times, opened, high, low, close, np.full(count, 1000.0))


def buys_low() -> Spec:
    return read_spec(
        {
            "name": "BUYS_LOW",
            "indicators": [{"id": "rsi", "type": "RSI", "params": {"length": "${n}"}}],
            "entryConditions": [{"type": "UNDER", "indicator": "rsi", "params": {"value": 35}}],
            "exitConditions": [{"type": "OVER", "indicator": "rsi", "params": {"value": 55}}],
            "parameters": [{"name": "n", "type": "INTEGER", "min": 3, "max": 10, "defaultValue": 5}],
        }
    )


def test_a_strategy_with_an_edge_is_validated_among_many_without() -> None:
    specs = [buys_low(), *canonical().values()]
    found = search(specs, reverting(), COSTS)
    assert found[0] is not None
    validated = steps(found)[0]
    assert validated.status is ImplementationStatus.VALIDATED, validated.reason


def test_the_parameters_were_chosen_before_the_bars_that_the_figures_are_of() -> None:
    bars = reverting()
    (found,) = search([buys_low()], bars, COSTS)
    assert found is not None
    upto = int(bars.time.searchsorted(found.trained_until))
    changed = bars.take(slice(0, upto))
    later = walk(1, len(bars) - upto, timeframe=Timeframe.D1)
    other = make(
        bars.instrument,
        bars.timeframe,
        bars.time,
        *(
            np.concatenate((getattr(changed, name), getattr(later, name)))
            for name in ("open", "high", "low", "close", "volume")
        ),
    )
    (again,) = search([buys_low()], other, COSTS)
    assert again is not None
    assert again.parameters == found.parameters
    assert again.sharpe != found.sharpe


def test_strategies_without_skill_are_not_validated() -> None:
    """Random specs on random walks: at most 1 % may pass, however good the best of them looks."""
    count = WITHOUT_SKILL
    chance = random.Random(11)
    specs: list[Spec] = []
    while len(specs) < count:
        try:
            specs.append(read_spec({**random_spec(chance), "name": f"RANDOM_{len(specs)}"}))
        except SpecRefused:  # its conditions contradict each other
            continue
    validated = 0
    each_walk = 50
    for at in range(0, count, each_walk):
        bars = walk(1000 + at, 1500, timeframe=Timeframe.D1)
        found = steps(search(specs[at : at + each_walk], bars, COSTS))
        assert len(found) == len(specs[at : at + each_walk])
        validated += sum(step.status is ImplementationStatus.VALIDATED for step in found)
    assert validated <= count // 100


def test_the_library_on_random_walks_without_costs_is_not_validated_by_luck() -> None:
    specs = list(canonical().values())
    results = [
        step
        for seed in range(3)
        for step in steps(search(specs, walk(seed, 1500, timeframe=Timeframe.D1), Setup(fee=0.0)))
    ]
    assert sum(step.status is ImplementationStatus.VALIDATED for step in results) <= len(results) // 100


def test_the_same_search_twice_is_the_same() -> None:
    bars = walk(4, 800)
    specs = list(canonical().values())[:12]
    assert search(specs, bars, COSTS) == search(specs, bars, COSTS)


def test_more_tries_make_it_harder() -> None:
    (found,) = search([buys_low()], walk(6, 1500, timeframe=Timeframe.D1), COSTS)
    assert found is not None
    assert found.trades >= FEWEST_TRADES
    few, many = (judged(found, tries)[1] for tries in (1, 500))
    for name in ("vs_holding", "vs_random_timing"):
        assert getattr(many, name) < getattr(few, name)


def test_too_few_bars_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="too few"):
        search([read_spec(crossover())], walk(1, FEWEST_BARS - 1), COSTS)


def test_a_spec_that_takes_too_long_is_not_tried_and_the_others_are(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = canonical()["VOLUME_PROFILE"]
    assert None not in search([buys_low(), slow], reverting(), COSTS)
    monkeypatch.setattr("openbell.backtest.search._SLOWEST", 0.002)  # the profile takes twice that
    quick, refused = search([buys_low(), slow], reverting(), COSTS)
    assert quick is not None
    assert refused is None


# Exposure is no skill


RISING = runs(3, soak=100)


@pytest.mark.parametrize("sharpe", [2.0, 3.0])
def test_the_library_in_markets_that_rise_is_not_validated(sharpe: float) -> None:
    """A strategy that is long in a rising market looks good whatever its rules are."""
    specs, results, proven = list(canonical().values()), list[Promotion](), 0
    for seed in range(RISING):
        found = [each for each in search(specs, drifting(seed, sharpe), COSTS) if each is not None]
        results += steps(list(found))
        proven += any(judged(each, len(found))[1].proven for each in found)
    validated = sum(step.status is ImplementationStatus.VALIDATED for step in results)
    assert validated <= len(results) / 1000
    assert proven <= max(1, RISING * 0.05)


# Evidence after the submission


FITTED = runs(4, soak=60)


def fitted(bars: Bars) -> Spec:
    """The best of many constants on all bars: what somebody submits who has seen them."""
    best: tuple[float, Spec] | None = None
    for length in (3, 5, 8):
        for low in (20, 30, 40):
            for high in (50, 60, 70):
                spec = read_spec(
                    {
                        "name": f"FITTED_{length}_{low}_{high}",
                        "indicators": [{"id": "rsi", "type": "RSI", "params": {"length": length}}],
                        "entryConditions": [{"type": "UNDER", "indicator": "rsi", "params": {"value": low}}],
                        "exitConditions": [{"type": "OVER", "indicator": "rsi", "params": {"value": high}}],
                        "parameters": [],
                    }
                )
                sharpe = backtest(compiled(spec), bars, COSTS).metrics.sharpe or 0.0
                if best is None or sharpe > best[0]:
                    best = sharpe, spec
    assert best is not None
    return best[1]


def test_constants_that_were_fitted_on_all_bars_are_not_validated() -> None:
    for seed in range(FITTED):
        bars = drifting(500 + seed, 1.0)
        spec = fitted(bars)
        submitted = float(bars.time[-1]) + 86400
        (found,) = search([spec], bars, COSTS, None, [submitted])
        assert found is not None
        step, edge = judged(found, 1)
        assert step.status is ImplementationStatus.CANDIDATE
        assert (edge.vs_holding, edge.vs_random_timing) == (None, None)
        if not found.why_not and found.trades >= FEWEST_TRADES:
            assert step.reason == "its author may have seen these bars: 0 of 20 trades since its submission"


def test_an_edge_is_validated_by_the_trades_since_its_submission() -> None:
    bars = reverting()
    for at, status in ((1400, ImplementationStatus.VALIDATED), (2900, ImplementationStatus.CANDIDATE)):
        (found,) = search([buys_low()], bars, COSTS, None, [float(bars.time[at])])
        assert found is not None
        step, _ = judged(found, 60)
        assert step.status is status, step.reason
    assert "of 20 trades since its submission" in step.reason
