"""Entries and exits of canonical strategies are those of plain loops over the bars."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from openbell.market.timeframes import Timeframe
from openbell.strategies.compiled import compiled
from openbell.strategies.evaluation import Conditions, evaluate
from openbell.strategies.library import canonical
from tests.strategies import plain_levels, plain_money_flow, plain_oscillators, plain_trends
from tests.strategies.plain_rules import RULES, Row, Rows
from tests.strategies.stretches import simulated

MODULES = (plain_trends, plain_levels, plain_oscillators, plain_money_flow)
ENTRIES = RULES | {name: rule for module in MODULES for name, rule in module.ENTRIES.items()}
EXITS = {name: rule for module in MODULES for name, rule in module.EXITS.items()}
each_symbol = pytest.mark.parametrize("symbol", ["AAPL", "NVDA"])


@cache
def days(symbol: str) -> Rows:
    columns = simulated(symbol, Timeframe.D1, 3600).bars.columns()[1:]
    return [Row(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def evaluated(name: str, symbol: str) -> Conditions:
    return evaluate(compiled(canonical()[name]), simulated(symbol, Timeframe.D1, 3600).bars)


@each_symbol
@pytest.mark.parametrize("name", ENTRIES)
def test_the_entries_are_those_of_a_plain_calculation(name: str, symbol: str) -> None:
    expected = ENTRIES[name](days(symbol))
    assert len(expected) >= 5
    assert np.flatnonzero(evaluated(name, symbol).entry).tolist() == expected


@each_symbol
@pytest.mark.parametrize("name", EXITS)
def test_the_exits_are_those_of_a_plain_calculation(name: str, symbol: str) -> None:
    expected = EXITS[name](days(symbol))
    assert len(expected) >= 3
    assert np.flatnonzero(evaluated(name, symbol).exit).tolist() == expected


def test_no_strategy_has_two_plain_calculations() -> None:
    assert len(ENTRIES) == len(RULES) + sum(len(module.ENTRIES) for module in MODULES)
    assert len(EXITS) == sum(len(module.EXITS) for module in MODULES)
