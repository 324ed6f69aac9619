"""Strategies that share their streams give the same results as each alone."""

from __future__ import annotations

import random

import pytest

from openbell.strategies.compiled import Compiled, compiled
from openbell.strategies.errors import SpecRefused
from openbell.strategies.library import canonical
from openbell.strategies.plan import Plan
from openbell.strategies.reading import read_spec
from openbell.strategies.running import Running, RunningGroup
from openbell.strategies.spec import Line
from tests.counts import runs
from tests.strategies.specs import Raw, crossover, random_spec, walk

GROUPS = runs(40, soak=1_000)


def some_strategies(chance: random.Random) -> list[Compiled]:
    """Random strategies; some of them twice, and some pairs with the same indicators and the conditions of both."""
    found: list[Compiled] = []
    while len(found) < chance.randint(2, 6):
        raw = random_spec(chance)
        try:
            found.append(compiled(read_spec(raw)))
            if chance.random() < 0.5:
                turned: Raw = raw | {
                    "entryConditions": raw["exitConditions"],
                    "exitConditions": raw["entryConditions"],
                }
                found.append(compiled(read_spec(turned)))
        except SpecRefused:
            continue
    return chance.sample(found * 2, len(found) + 1)


def test_a_group_gives_what_each_strategy_gives_alone() -> None:
    chance = random.Random(29)
    for number in range(GROUPS):
        strategies, bars = some_strategies(chance), walk(number, 160)
        cut = chance.randint(1, 159)
        group = RunningGroup(Plan(strategies))

        found = [pairs for part in (slice(0, cut), slice(cut, 160)) for pairs in group.update(bars.take(part))]

        for at, strategy in enumerate(strategies):
            assert [pairs[at] for pairs in found] == list(Running(strategy).update(bars)), strategy.spec


def test_equal_steps_are_computed_once() -> None:
    spec = read_spec(crossover())
    alone = Plan([compiled(spec)])
    together = Plan([compiled(spec), compiled(spec), compiled(spec, {"smaPeriod": 7})])

    assert len(alone.steps) == 2
    assert len(together.steps) == 3


def test_steps_on_different_inputs_are_not_shared() -> None:
    raw = crossover()
    raw["indicators"][1]["input"] = "sma"
    other = crossover()

    assert len(Plan([compiled(read_spec(raw)), compiled(read_spec(other))]).steps) == 3


def test_series_that_share_a_plan_do_not_mix() -> None:
    plan = Plan([compiled(spec) for spec in canonical().values()])
    first, second = walk(1, 120), walk(2, 120)
    groups = RunningGroup(plan), RunningGroup(plan)

    for at in range(120):
        one = slice(at, at + 1)
        for group, bars in zip(groups, (first, second), strict=True):
            list(group.update(bars.take(one)))

    alone = RunningGroup(plan)
    list(alone.update(first))
    for number in range(len(plan.strategies)):
        assert groups[0].values(number) == pytest.approx(alone.values(number), rel=0, abs=0, nan_ok=True)


def test_the_values_of_the_latest_bar_are_named_by_the_strategys_own_lines() -> None:
    first, second = crossover(), crossover()
    first["indicators"][0]["id"] = "average"
    first["entryConditions"][0]["indicator"] = first["exitConditions"][0]["indicator"] = "average"
    bars = walk(3, 40)
    group = RunningGroup(Plan([compiled(read_spec(first)), compiled(read_spec(second))]))

    list(group.update(bars))

    mean = bars.close[-5:].mean()
    assert group.values(0)[Line("average", "sma")] == pytest.approx(mean, rel=1e-12)
    assert group.values(1)[Line("sma", "sma")] == pytest.approx(mean, rel=1e-12)
    assert group.values(1)[Line(None, "close")] == bars.close[-1]
