"""The largest number of bars in a span, and that of trading time: counted by hand from the hours of each market."""

from __future__ import annotations

import pytest

from openbell.market.clock import parse_time
from openbell.market.instruments import parse
from openbell.market.timeframes import Timeframe
from openbell.market.trading_time import most_bars, trading_bars

WEEK = ("2026-11-09T00:00Z", "2026-11-16T00:00Z")
"""Monday to Sunday, without a holiday. New York is 5 hours behind."""


@pytest.mark.parametrize(
    ("symbol", "timeframe", "start", "end", "most", "trading"),
    [
        ("BTC/USD", Timeframe.M1, "2026-11-14T00:00Z", "2026-11-14T01:00Z", 60, 60),
        ("BTC/USD", Timeframe.D1, *WEEK, 7, 7),
        ("BTC/USD", Timeframe.D1, *reversed(WEEK), 0, 0),
        # From 4:00 to 20:00 in New York.
        ("AAPL", Timeframe.M1, "2026-11-13T00:00Z", "2026-11-14T02:00Z", 960, 960),
        ("AAPL", Timeframe.H4, "2026-11-13T00:00Z", "2026-11-14T02:00Z", 4, 4),
        ("AAPL", Timeframe.H4, "2026-11-13T00:00Z", "2026-11-14T04:00Z", 5, 5),
        ("AAPL", Timeframe.H1, "2026-11-13T00:00Z", "2026-11-13T12:00Z", 3, 3),
        ("AAPL", Timeframe.M1, "2026-11-14T02:00Z", "2026-11-16T00:00Z", 0, 0),
        ("AAPL", Timeframe.D1, *WEEK, 5, 5),
        ("AAPL", Timeframe.D1, "2026-11-09T00:00Z", "2026-11-13T20:59Z", 4, 4),
        ("AAPL", Timeframe.W1, "2026-11-09T00:00Z", "2026-11-23T00:00Z", 2, 2),
        # A currency trades to Friday 17:00 in New York, and from Sunday 17:00 on.
        ("EUR/USD", Timeframe.H1, "2026-11-13T00:00Z", "2026-11-16T00:00Z", 72, 24),
        ("EUR/USD", Timeframe.M1, "2026-11-14T00:00Z", "2026-11-15T22:00Z", 46 * 60, 0),
        ("EUR/USD", Timeframe.D1, "2026-11-08T22:00Z", "2026-11-13T22:00Z", 5, 5),
    ],
)
def test_bars_of_a_span_are_counted(
    symbol: str, timeframe: Timeframe, start: str, end: str, most: int, trading: int
) -> None:
    span = int(parse_time(start)), int(parse_time(end))
    assert most_bars(parse(symbol), timeframe, *span) == most
    assert trading_bars(parse(symbol), timeframe, *span) == trading
