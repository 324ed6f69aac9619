"""Entries and exits of every canonical strategy are those of plain loops over the bars."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from openbell.market.bars import Bars
from openbell.market.timeframes import Timeframe
from openbell.strategies.compiled import compiled
from openbell.strategies.evaluation import evaluate
from openbell.strategies.library import canonical
from tests.strategies import (
    plain_brick_rules,
    plain_levels,
    plain_line_rules,
    plain_money_flow,
    plain_oscillators,
    plain_pattern_rules,
    plain_profile_rules,
    plain_trends,
    plain_turnover_rules,
    plain_volume_bar_rules,
    plain_vwap_rules,
)
from tests.strategies.plain_rules import Row, Rows
from tests.strategies.plain_vwap_rules import SessionRow, session_of_coin, session_of_stock
from tests.strategies.stretches import simulated

DAILY = (
    plain_trends,
    plain_levels,
    plain_oscillators,
    plain_money_flow,
    plain_line_rules,
    plain_turnover_rules,
    plain_volume_bar_rules,
    plain_profile_rules,
    plain_brick_rules,
    plain_pattern_rules,
)
ENTRIES = {name: rule for module in DAILY for name, rule in module.ENTRIES.items()}
EXITS = {name: rule for module in DAILY for name, rule in module.EXITS.items()}
SYMBOLS = {"MASS_INDEX": ("TSLA", "BTC/USD")}
"""Where a strategy is too rare on the usual symbols."""


@cache
def days(symbol: str) -> Rows:
    columns = simulated(symbol, Timeframe.D1, 3600).bars.columns()[1:]
    return [Row(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def check(name: str, bars: Bars, entries: list[int], exits: list[int]) -> None:
    found = evaluate(compiled(canonical()[name]), bars)
    assert len(entries) >= 5
    assert len(exits) >= 3
    assert np.flatnonzero(found.entry).tolist() == entries
    assert np.flatnonzero(found.exit).tolist() == exits


@pytest.mark.parametrize(
    ("name", "symbol"), [(name, symbol) for name in ENTRIES for symbol in SYMBOLS.get(name, ("AAPL", "NVDA"))]
)
def test_entries_and_exits_are_those_of_a_plain_calculation(name: str, symbol: str) -> None:
    check(name, simulated(symbol, Timeframe.D1, 3600).bars, ENTRIES[name](days(symbol)), EXITS[name](days(symbol)))


@pytest.mark.parametrize(("symbol", "session"), [("AAPL", session_of_stock), ("BTC/USD", session_of_coin)])
@pytest.mark.parametrize("name", plain_vwap_rules.EXITS)
def test_sessions_are_those_of_a_plain_calculation(
    name: str, symbol: str, session: Callable[[int], str | None]
) -> None:
    """On half hours of 60 days without an early close."""
    bars = simulated(symbol, Timeframe.M30, 60).bars
    sessions = map(session, bars.time.tolist())
    rows = [SessionRow(*row) for row in zip(*(column.tolist() for column in bars.columns()[1:]), sessions, strict=True)]
    check(name, bars, plain_vwap_rules.ENTRIES[name](rows), plain_vwap_rules.EXITS[name](rows))


def test_every_strategy_of_the_library_has_one_plain_calculation() -> None:
    modules = (*DAILY, plain_vwap_rules)
    entries = [name for module in modules for name in module.ENTRIES]
    exits = [name for module in modules for name in module.EXITS]
    assert sorted(entries) == sorted(exits) == sorted(canonical())
