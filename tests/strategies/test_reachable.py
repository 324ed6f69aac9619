"""The ranges of lines: every declared one is known, and no value is ever outside of them."""

from __future__ import annotations

from functools import cache
from math import inf

import numpy as np
import pytest

from openbell.indicators.channels import Channels
from openbell.indicators.registry import all_indicators, get
from openbell.market.timeframes import Timeframe
from openbell.strategies.indicator_names import indicator_of, lines
from openbell.strategies.reachable import _RANGES, range_of
from openbell.strategies.reading import read_spec
from tests.strategies.stretches import Stretch, crypto_walk, flat, simulated, stock_hours
from tests.strategies.test_reading import changed, problems

NAMES = [name for name, each in all_indicators().items() if not each.profile and not each.needs and lines(each)]
ROUNDING = 1e-9


@cache
def stretches() -> tuple[Stretch, ...]:
    hours = simulated("BTC/USD", Timeframe.H1, 200)
    return (hours, simulated("AAPL", Timeframe.D1, 3600), stock_hours(60), crypto_walk(), flat("AAPL", Timeframe.D1))


def channels(name: str, stretch: Stretch) -> Channels:
    regular = stretch.regular if get(name).regular else None
    with np.errstate(all="ignore"):
        return get(name).run(stretch.bars, None, regular)


@pytest.mark.parametrize("name", NAMES)
def test_every_range_that_an_indicator_declares_is_known(name: str) -> None:
    declared = channels(name, stretches()[0]).y_range
    if declared is not None:
        assert {line: range_of(name, line) for line in lines(get(name))} == dict.fromkeys(lines(get(name)), declared)


@pytest.mark.parametrize("name", NAMES)
def test_no_value_is_outside_its_range_and_every_direction_has_one(name: str) -> None:
    for at, line in enumerate(lines(get(name))):
        low, high = range_of(name, line)
        seen: set[float] = set()
        for stretch in stretches():
            found = channels(name, stretch)
            values = (*found.lines, *found.histogram)[at].values
            values = values[np.isfinite(values)]
            assert values.min(initial=inf) >= low - ROUNDING, line
            assert values.max(initial=-inf) <= high + ROUNDING, line
            seen.update(values[:: max(1, len(values) // 500)].tolist())
        if seen and seen <= {-1.0, 0.0, 1.0}:
            assert (low, high) in {(-1.0, 1.0), (0.0, 1.0)}, f"{name}.{line} is a direction or a state"


def test_an_exit_outside_the_range_of_one_line_is_refused() -> None:
    raw = changed(
        indicators=[{"id": "double", "type": "double_pattern"}],
        parameters=[],
        entryConditions=[{"type": "OVER", "indicator": "double.pattern", "params": {"value": 0}}],
        exitConditions=[{"type": "OVER", "indicator": "double.pattern", "params": {"value": 1}}],
    )
    [(_, shown)] = problems(raw)
    assert shown.startswith("exitConditions: ")
    raw["exitConditions"] = [{"type": "OVER", "indicator": "double.neckline", "params": {"value": 1}}]
    read_spec(raw)


def test_ranges_name_existing_lines() -> None:
    for key in _RANGES:
        name, _, line = key.partition(".")
        assert not line or line in lines(indicator_of(name)), key
