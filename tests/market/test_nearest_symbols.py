"""Suggestions for mistaken symbols."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openbell.market.instruments import edits, nearest_symbols, parse

KNOWN = [
    parse(each)
    for each in "SPY AAPL APLD GOOGL MSFT TSLA NVDA AMZN BRK.B BTC/USD ETH/USD BTC/USDT EUR/USD USD/JPY".split()
]


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("BTC", "BTC/USD BTC/USDT"),
        ("btc", "BTC/USD BTC/USDT"),
        ("BINANCE:BTC", "BTC/USD BTC/USDT"),
        ("BTC/EUR", "BTC/USD BTC/USDT"),
        ("BTC USD", "BTC/USD"),
        ("APPL", "AAPL"),
        ("APLE", "APLD"),
        ("APPLE", "AAPL APLD"),
        ("TESLA", "TSLA"),
        ("NVIDIA", "NVDA"),
        ("MFST", "MSFT"),
        ("BRKB", "BRK.B"),
        ("GOOG", "GOOGL"),
        ("EURUSDX", "EUR/USD"),
        ("USDT", ""),
        ("JPY", "USD/JPY"),
        ("ZZZZ", ""),
        ("X", ""),
        ("", ""),
        ("/", ""),
    ],
)
def test_the_nearest_symbols_are_named(asked: str, meant: str) -> None:
    assert " ".join(each.symbol for each in nearest_symbols(asked, KNOWN)) == meant


@given(st.text("ABC", max_size=6), st.text("ABC", max_size=6))
def test_edits_are_a_distance(one: str, two: str) -> None:
    far = edits(one, two, 12)
    assert far == edits(two, one, 12)
    assert (far == 0) is (one == two)
    assert abs(len(one) - len(two)) <= far <= max(len(one), len(two))
    for most in range(3):
        assert (edits(one, two, most) <= most) is (far <= most)
    if len(one) > 1 and one[0] != one[1]:
        assert edits(one, one[1] + one[0] + one[2:], 1) == 1
