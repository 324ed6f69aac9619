"""Trading time, compared with minutes counted one by one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.market.clock import parse_time
from openbell.market.instruments import parse
from openbell.market.sessions import Phase, phase
from openbell.market.trading_time import trading_seconds

START = int(parse_time("2025-10-20T00:00:00Z"))


@pytest.mark.parametrize("symbol", ["AAPL", "EUR/USD", "BTC/USD"])
@given(first=st.integers(0, 60 * 24 * 60), length=st.integers(0, 6 * 24 * 60))
@settings(deadline=None, max_examples=25)
def test_counts_the_open_minutes(symbol: str, first: int, length: int) -> None:
    """The range contains a change to winter time, Thanksgiving's half day and weekends."""
    instrument = parse(symbol)
    start, end = START + first * 60, START + (first + length) * 60
    expected = sum(60 for at in range(start, end, 60) if phase(instrument, at) is Phase.REGULAR)
    assert trading_seconds(instrument, start, end) == expected


def test_no_trading_time_passes_from_friday_to_sunday() -> None:
    friday, sunday = parse_time("2025-09-19T20:00:00Z"), parse_time("2025-09-21T20:00:00Z")
    assert trading_seconds(parse("AAPL"), friday, sunday) == 0
    assert trading_seconds(parse("AAPL"), friday - 600, sunday) == 600
    assert trading_seconds(parse("BTC/USD"), friday, sunday) == 2 * 86400


def test_an_end_before_the_start_is_zero_seconds() -> None:
    assert trading_seconds(parse("AAPL"), 100.0, 50.0) == 0.0
