"""When day orders end."""

from __future__ import annotations

import pytest

from openbell.market.instruments import parse
from openbell.trading.waiting import day_end
from tests.market.walks import at


@pytest.mark.parametrize(
    ("symbol", "placed", "ends"),
    [
        ("EUR/USD", "2025-06-10T20:59:59Z", "2025-06-10T21:00Z"),
        ("EUR/USD", "2025-06-10T21:00Z", "2025-06-11T21:00Z"),
        ("EUR/USD", "2025-06-13T21:00Z", "2025-06-16T21:00Z"),  # Friday's close: Monday's day is next
        ("EUR/USD", "2025-06-15T20:00Z", "2025-06-16T21:00Z"),
        ("EUR/USD", "2025-03-07T21:00Z", "2025-03-07T22:00Z"),  # winter in New York
        ("BTC/USD", "2025-06-14T23:59Z", "2025-06-15T00:00Z"),
        ("BTC/USD", "2025-06-15T00:00Z", "2025-06-16T00:00Z"),
        ("AAPL", "2025-06-13T19:59Z", "2025-06-13T20:00Z"),
        ("AAPL", "2025-06-13T20:00Z", "2025-06-16T20:00Z"),
        ("AAPL", "2025-07-03T12:00Z", "2025-07-03T17:00Z"),  # a half day
    ],
)
def test_a_day_order_ends_with_the_trading_day(symbol: str, placed: str, ends: str) -> None:
    assert day_end(parse(symbol), float(at(placed))) == at(ends)
