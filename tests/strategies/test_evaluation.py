"""Conditions hold at the right bars, and do not depend on later bars."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from openbell.indicators.channels import Channels, Line
from openbell.market.bars import Bars, make
from openbell.market.instruments import parse
from openbell.market.timeframes import Timeframe
from openbell.strategies.compiled import compiled
from openbell.strategies.errors import SpecRefused
from openbell.strategies.evaluation import evaluate
from openbell.strategies.reading import read_spec
from tests.counts import runs
from tests.strategies.cutting import looks_ahead
from tests.strategies.specs import crossover, random_spec, walk

RANDOM_SPECS = runs(300, soak=10_000)


def bars_of(*closes: float) -> Bars:
    prices = np.array(closes)
    times = 1_700_006_400 + 3600 * np.arange(len(closes))
    return make(parse("BTC/USD"), Timeframe.H1, times, prices, prices, prices, prices, np.ones(len(closes)))


def test_a_crossover_worked_by_hand() -> None:
    """SMA(2) against EMA(2), whose first value is the SMA: it follows faster afterwards."""
    strategy = compiled(read_spec(crossover()), {"smaPeriod": 2, "emaPeriod": 2})
    bars = bars_of(10, 10, 13, 13, 10, 10, 10)
    # SMA: -, 10, 11.5, 13, 11.5, 10, 10; EMA: -, 10, 12, 12.667, 10.889, 10.296, 10.099
    found = evaluate(strategy, bars)
    assert np.flatnonzero(found.entry).tolist() == [3]
    assert np.flatnonzero(found.exit).tolist() == [2, 5], "at bar 2 they were equal before"


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ({"type": "OVER", "indicator": "close", "params": {"value": 2}}, [2, 3, 5]),
        ({"type": "UNDER", "indicator": "close", "params": {"threshold": 2}}, [0, 4, 6]),
        ({"type": "CROSSED_UP", "indicator": "close", "params": {"value": 2}}, [2, 5]),
        ({"type": "CROSSED_DOWN", "indicator": "close", "params": {"value": 2}}, [4, 6]),
        ({"type": "IS_RISING", "indicator": "close", "params": {"barCount": 2}}, [2, 3]),
        ({"type": "IS_FALLING", "indicator": "close"}, [4, 6]),
        ({"type": "NOT", "conditions": [{"type": "OVER", "indicator": "close", "params": {"value": 2}}]}, [0, 1, 4, 6]),
    ],
)
def test_each_condition_worked_by_hand(condition: dict[str, object], holds: list[int]) -> None:
    raw = {
        "name": "BY_HAND",
        "indicators": [{"id": "one", "type": "sma", "params": {"length": 1}}],
        "entryConditions": [condition, {"type": "OVER", "indicator": "one", "params": {"value": 0}}],
        "exitConditions": [condition],
        "parameters": [],
    }
    bars = bars_of(1, 2, 3, 4, 1, 5, 1)
    strategy = compiled(read_spec(raw))
    found = evaluate(strategy, bars)
    assert np.flatnonzero(found.exit).tolist() == np.flatnonzero(found.entry).tolist() == holds


def test_nothing_holds_before_every_line_has_a_value() -> None:
    raw = crossover()
    raw["entryConditions"] = [
        {"type": "NOT", "conditions": [{"type": "OVER", "indicator": "sma", "params": {"other": "ema"}}]}
    ]
    strategy = compiled(read_spec(raw))
    found = evaluate(strategy, walk(3, 60))
    assert not found.entry[:8].any()
    assert found.entry[8:].any()


def test_random_specs_never_look_ahead() -> None:
    chance = random.Random(13)
    bars, cut = walk(5, 260), 200
    accepted = 0
    for _ in range(RANDOM_SPECS):
        raw = random_spec(chance)
        try:
            strategy = compiled(read_spec(raw))
        except (
            SpecRefused
        ) as error:  # only because conditions contradict each other, which the generator does not avoid
            assert all("can never hold" in each.message for each in error.problems), (raw, error)
            continue
        accepted += 1
        assert not looks_ahead(strategy, bars, cut, whole=evaluate(strategy, bars)), raw
    assert accepted > RANDOM_SPECS * 0.8


def test_a_strategy_that_looks_ahead_on_purpose_is_found() -> None:
    """It knows tomorrow's close: what the cut test is there for."""
    honest = compiled(read_spec(crossover()))

    def tomorrow(bars: Bars, **_settings: object) -> Channels:
        return Channels(lines=(Line("SMA", np.append(bars.close[1:], bars.close[-1:])),))

    first = honest.steps[0]
    cheating = replace(
        honest, steps=(replace(first, indicator=replace(first.indicator, compute=tomorrow)), *honest.steps[1:])
    )
    bars = walk(7, 300)
    found = [cut for cut in range(100, 300) if looks_ahead(cheating, bars, cut)]
    assert len(found) > 20
    assert not any(looks_ahead(honest, bars, cut) for cut in range(100, 300, 7))
