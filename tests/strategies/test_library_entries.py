"""Entries of canonical strategies are those of plain loops over the bars."""

from __future__ import annotations

import numpy as np
import pytest

from openbell.market.timeframes import Timeframe
from openbell.strategies.compiled import compiled
from openbell.strategies.evaluation import evaluate
from openbell.strategies.library import canonical
from tests.strategies.plain_rules import RULES, Row
from tests.strategies.stretches import simulated

SYMBOLS = {"MASS_INDEX": ("TSLA", "BTC/USD")}
"""Where a strategy is too rare on the usual symbols."""


@pytest.mark.parametrize(
    ("name", "symbol"), [(name, symbol) for name in RULES for symbol in SYMBOLS.get(name, ("AAPL", "NVDA"))]
)
def test_the_entries_are_those_of_a_plain_calculation(name: str, symbol: str) -> None:
    bars = simulated(symbol, Timeframe.D1, 3600).bars
    rows = [Row(*row) for row in zip(*(column.tolist() for column in bars.columns()[1:]), strict=True)]
    expected = RULES[name](rows)
    assert len(expected) >= 5
    assert np.flatnonzero(evaluate(compiled(canonical()[name]), bars).entry).tolist() == expected
