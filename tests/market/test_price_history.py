"""The previous close, the day so far, the range of a year and changes over periods, against plain loops over dates."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openbell.market.bars import Bars, make
from openbell.market.clock import parse_time
from openbell.market.instruments import parse
from openbell.market.price_history import (
    DayFigures,
    day_figures,
    days_at,
    market_date,
    months_before,
    period_changes,
    previous_close,
    year_range,
)
from openbell.market.timeframes import Timeframe

TODAY = date(2026, 3, 31)


def minutes(symbol: str, *moments: str) -> Bars:
    """Minutes at these moments that close at 1, 2, 3 …"""
    times = np.array([int(parse_time(each)) for each in moments])
    closes = np.arange(1.0, len(moments) + 1)
    return make(parse(symbol), Timeframe.M1, times, closes, closes + 0.5, closes - 0.5, closes, closes)


def days_of(closes: dict[date, float]) -> Bars:
    """Daily bars of crypto whose highs and lows are a tenth away from the closes."""
    times = np.array([int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) for day in sorted(closes)])
    values = np.array([closes[day] for day in sorted(closes)])
    return make(parse("BTC/USD"), Timeframe.D1, times, values, values * 1.1, values * 0.9, values, values)


def test_the_previous_close_of_a_stock_is_that_of_the_last_regular_session() -> None:
    friday = ("2026-11-13T15:00Z", "2026-11-13T20:59Z", "2026-11-13T21:30Z")  # the last one after hours
    for later in (("2026-11-16T13:00Z",), ("2026-11-16T15:00Z", "2026-11-16T22:00Z")):
        found = previous_close(minutes("AAPL", *friday, *later))
        assert found is not None
        assert (found.price, found.at) == (2.0, parse_time("2026-11-13T21:00Z"))
    assert previous_close(minutes("AAPL", *friday)) is None, "Thursday is not stored"
    assert previous_close(minutes("AAPL", *friday, "2026-11-17T15:00Z")) is None, "Monday is not stored"


def test_the_previous_close_after_a_half_day_is_that_of_one_o_clock() -> None:
    found = previous_close(minutes("AAPL", "2026-11-27T17:59Z", "2026-11-27T18:30Z", "2026-11-30T14:31Z"))
    assert found is not None
    assert (found.price, found.at) == (1.0, parse_time("2026-11-27T18:00Z"))


def test_the_previous_close_of_crypto_and_currencies_is_that_of_their_day() -> None:
    bars = minutes("BTC/USD", "2026-11-13T23:58Z", "2026-11-13T23:59Z", "2026-11-14T00:00Z", "2026-11-14T09:00Z")
    coin = previous_close(bars)
    assert coin is not None
    assert coin.price == 2.0
    assert previous_close(minutes("BTC/USD", "2026-11-12T23:59Z", "2026-11-14T09:00Z")) is None, "a day is missing"
    currency = previous_close(minutes("EUR/USD", "2026-11-12T21:59Z", "2026-11-12T22:00Z", "2026-11-13T09:00Z"))
    assert currency is not None
    assert currency.price == 1.0


def test_the_day_of_a_stock_has_regular_hours_only() -> None:
    bars = minutes("AAPL", "2026-11-13T20:59Z", "2026-11-16T14:00Z", "2026-11-16T14:30Z", "2026-11-16T20:59Z")
    days = days_at(bars.instrument, int(bars.time[-1]))
    assert days is not None
    assert day_figures(bars, days[1]) == DayFigures(3.0, 4.5, 2.5)
    assert day_figures(bars.take(slice(0, 2)), days[1]) == DayFigures(None, None, None), "before the market opens"


@pytest.mark.parametrize(
    ("day", "months", "expected"),
    [
        (date(2026, 3, 31), 1, date(2026, 2, 28)),
        (date(2024, 3, 31), 1, date(2024, 2, 29)),
        (date(2026, 1, 15), 1, date(2025, 12, 15)),
        (date(2024, 2, 29), 12, date(2023, 2, 28)),
        (date(2026, 12, 1), 12, date(2025, 12, 1)),
    ],
)
def test_months_before(day: date, months: int, expected: date) -> None:
    assert months_before(day, months) == expected


def test_dates_are_those_of_the_market() -> None:
    evening = parse_time("2026-11-17T02:00Z")
    assert market_date(parse("AAPL"), evening) == date(2026, 11, 16)
    assert market_date(parse("BTC/USD"), evening) == date(2026, 11, 17)
    assert market_date(parse("EUR/USD"), evening) == date(2026, 11, 17), "21:00 in New York"
    assert market_date(parse("EUR/USD"), parse_time("2026-01-01T04:59Z")) == date(2026, 1, 1)
    assert market_date(parse("EUR/USD"), parse_time("2025-12-31T21:59Z")) == date(2025, 12, 31)


@given(
    st.dictionaries(st.integers(1, 500), st.integers(1, 10**6).map(lambda each: each / 100), min_size=1, max_size=60),
    st.integers(1, 10**6).map(lambda each: each / 100),
)
def test_ranges_and_changes_are_those_of_a_plain_loop(closes: dict[int, float], price: float) -> None:
    by_day = {TODAY - timedelta(age): close for age, close in closes.items()}
    bars = days_of(by_day)
    starts = {
        "1w": date(2026, 3, 24),
        "1m": date(2026, 2, 28),
        "3m": date(2025, 12, 31),
        "6m": date(2025, 9, 30),
        "ytd": date(2025, 12, 31),
        "1y": date(2025, 3, 31),
    }
    found = period_changes(bars, TODAY, price)
    for name, start in starts.items():
        known = [day for day in by_day if start - timedelta(10) <= day <= start]
        change = found[name]
        if not known:
            assert change is None, name
            continue
        assert change is not None, name
        assert (change.date, change.close) == (max(known), by_day[max(known)])
        assert change.pct == pytest.approx((price - change.close) / change.close * 100)
    year = year_range(bars, TODAY, DayFigures(None, None, None), TODAY)
    inside = {day: close for day, close in by_day.items() if day > date(2025, 3, 31)}
    if not inside:
        assert year is None
        return
    assert year is not None
    assert year.high == max(close * 1.1 for close in inside.values()) == inside[year.high_date] * 1.1
    assert year.low == min(close * 0.9 for close in inside.values()) == inside[year.low_date] * 0.9
    assert year.since == min(inside)


def test_the_day_so_far_counts_in_the_range_of_the_year() -> None:
    bars = days_of({TODAY - timedelta(age): 100.0 for age in range(1, 300)})
    year = year_range(bars, TODAY, DayFigures(100.0, 150.0, 50.0), TODAY)
    assert year is not None
    assert (year.high, year.high_date, year.low, year.low_date) == (150.0, TODAY, 50.0, TODAY)
    unmoved = year_range(bars, TODAY, DayFigures(100.0, 110.0, 90.0), TODAY)
    assert unmoved is not None
    assert unmoved.low_date == TODAY, "the newest of equal extremes"
