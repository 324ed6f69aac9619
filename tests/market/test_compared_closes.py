"""The last regular close of a stock, and the moment that a change of 24 hours is measured from."""

from __future__ import annotations

import pytest

from openbell.market.bars import empty
from openbell.market.clock import parse_time
from openbell.market.instruments import parse
from openbell.market.price_history import PreviousClose, RegularClose, compared_from, previous_close, regular_close
from tests.market.test_price_history import minutes

THURSDAY, FRIDAY = "2026-11-12T20:59Z", "2026-11-13T20:59Z"
"""The last minutes of regular hours."""
SATURDAY = parse_time("2026-11-14T12:00Z")


def at(text: str) -> int:
    return int(parse_time(text))


def test_without_minutes_there_is_no_previous_close() -> None:
    assert previous_close(empty(parse("AAPL"))) is None


def test_the_regular_close_is_that_of_the_last_session_with_the_close_before_it() -> None:
    before = PreviousClose(1.0, at("2026-11-12T21:00Z"))
    expected = RegularClose(2.0, at("2026-11-13T21:00Z"), before)
    assert regular_close(minutes("AAPL", THURSDAY, FRIDAY), SATURDAY) == expected
    evening = minutes("AAPL", THURSDAY, FRIDAY, "2026-11-13T22:00Z")
    assert regular_close(evening, at("2026-11-13T22:01Z")) == expected


def test_before_a_session_it_is_that_of_the_day_before() -> None:
    found = regular_close(minutes("AAPL", FRIDAY, "2026-11-16T12:59Z"), at("2026-11-16T13:00Z"))
    assert found == RegularClose(1.0, at("2026-11-13T21:00Z"), None), "Thursday is not stored"


@pytest.mark.parametrize(
    ("symbol", "moments", "now"),
    [
        ("BTC/USD", (FRIDAY,), "2026-11-14T12:00Z"),
        ("AAPL", (THURSDAY, "2026-11-13T15:00Z"), "2026-11-13T15:01Z"),
        ("AAPL", ("2026-11-16T12:59Z",), "2026-11-16T13:00Z"),
    ],
    ids=["not a stock", "in regular hours", "not stored"],
)
def test_there_may_be_no_regular_close(symbol: str, moments: tuple[str, ...], now: str) -> None:
    assert regular_close(minutes(symbol, *moments), at(now)) is None


@pytest.mark.parametrize(
    ("symbol", "end", "now", "expected"),
    [
        ("BTC/USD", "2026-11-14T12:00Z", "2026-11-14T12:00Z", "2026-11-13T12:00Z"),
        ("AAPL", "2026-11-17T15:00Z", "2026-11-17T15:00Z", "2026-11-16T15:00Z"),
        ("AAPL", "2026-11-16T15:00Z", "2026-11-16T15:00Z", "2026-11-13T21:00Z"),
        ("AAPL", "2026-11-14T01:00Z", "2026-11-14T12:00Z", "2026-11-12T21:00Z"),
        ("AAPL", "2026-11-13T21:00Z", "2026-11-17T15:00Z", "2026-11-12T21:00Z"),
    ],
    ids=["not a stock", "24 hours", "after a weekend", "closed", "no trade in 24 hours"],
)
def test_a_change_is_measured_from(symbol: str, end: str, now: str, expected: str) -> None:
    assert compared_from(parse(symbol), at(end), at(now)) == at(expected)
