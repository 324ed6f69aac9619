"""Trading hours of stocks, compared with exchange_calendars for every minute of thirteen years."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest
from holidays.financial.ny_stock_exchange import NewYorkStockExchange

from openbell.market.session_table import SessionTable, table_for
from openbell.market.sessions import (
    FIRST_HALF_DAYS,
    FIRST_YEAR,
    LAST_YEAR,
    Phase,
    closed_days,
    eastern,
    forex_open,
    half_days,
    next_open,
    phase,
    session_on,
    sessions_of,
    stock_phase,
)
from tests.market.new_york import Times, oracle
from tests.market.walks import CRYPTO, FOREX, MINUTE, STOCK, at, minutes, trading_day

YEARS = range(2015, 2028)
START, END = at("2015-01-01T00:00-05:00"), at("2028-01-01T00:00-05:00")


@pytest.fixture(scope="module")
def table() -> SessionTable:
    return table_for(START, END - MINUTE)


@pytest.fixture(scope="module")
def every_minute() -> Times:
    return minutes(START, END)


def inside(starts: Times, ends: Times) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Returns a mask of the minutes from START to END that are inside one of the spans."""
    mask = np.zeros((END - START) // MINUTE, dtype=bool)
    for first, last in zip((starts - START) // MINUTE, (ends - START) // MINUTE, strict=True):
        mask[first:last] = True
    return mask


def expected_phase(row: int, epoch: int) -> Phase:
    """Returns the phase by the design's table, for the session in that row of the oracle."""
    expected = oracle()
    if not expected.premarket[row] <= epoch < expected.end[row]:
        return Phase.CLOSED
    if epoch < expected.open[row]:
        return Phase.PREMARKET
    return Phase.REGULAR if epoch < expected.close[row] else Phase.AFTERHOURS


class TestTable:
    def test_regular_minutes_are_exactly_those_of_the_exchange(self, table: SessionTable, every_minute: Times) -> None:
        expected = oracle()
        row = table.regular(every_minute)

        assert np.array_equal(row >= 0, inside(expected.open, expected.close))
        assert int((row >= 0).sum()) == len(expected.regular_minutes())

    def test_each_regular_minute_belongs_to_its_own_session(self, table: SessionTable) -> None:
        expected = oracle()
        row = table.regular(expected.regular_minutes())

        assert np.array_equal(row, np.repeat(np.arange(len(expected.open)), (expected.close - expected.open) // MINUTE))

    def test_extended_minutes_are_those_of_the_design(self, table: SessionTable, every_minute: Times) -> None:
        expected = oracle()

        assert np.array_equal(table.extended(every_minute) >= 0, inside(expected.premarket, expected.end))

    def test_sessions_are_the_same_days(self, table: SessionTable) -> None:
        expected = oracle()

        assert [s.day.isoformat() for year in YEARS for s in sessions_of(year)] == expected.dates
        assert np.array_equal(table.premarket, expected.premarket)
        assert np.array_equal(table.open, expected.open)
        assert np.array_equal(table.close, expected.close)
        assert np.array_equal(table.end, expected.end)

    def test_weeks_are_iso_weeks(self, table: SessionTable) -> None:
        weeks = [date.fromisoformat(day).isocalendar()[:2] for day in oracle().dates]

        same_as_before = [a == b for a, b in pairwise(weeks)]
        assert list(table.week[1:] == table.week[:-1]) == same_as_before

    def test_years_outside_the_calendar_have_no_sessions(self) -> None:
        empty = table_for(at("1950-05-05T12:00Z"), at("1950-06-05T12:00Z"))

        assert list(empty.regular(minutes("1950-05-05T14:00Z", "1950-05-05T14:03Z"))) == [-1, -1, -1]
        assert list(empty.extended(np.array([at("1950-05-05T14:00Z")]))) == [-1]


class TestEveryYear:
    """The calendar's rules are written by hand, so every day is compared with two packages."""

    def test_every_session_is_that_of_exchange_calendars(self) -> None:
        expected = oracle(f"{FIRST_YEAR}-01-01", f"{LAST_YEAR}-12-31")
        table = table_for(at(f"{FIRST_YEAR}-01-02T12:00Z"), at(f"{LAST_YEAR}-12-30T12:00Z"))

        assert np.array_equal(table.open, expected.open)
        assert np.array_equal(table.premarket, expected.premarket)
        with_half_days = table.open >= at(f"{FIRST_HALF_DAYS}-01-01")
        assert np.array_equal(table.close[with_half_days], expected.close[with_half_days])
        assert np.array_equal(table.end[with_half_days], expected.end[with_half_days])

    def test_every_closed_and_half_day_is_that_of_holidays(self) -> None:
        years = range(FIRST_YEAR, LAST_YEAR + 1)
        closed = NewYorkStockExchange(years=years)
        half = NewYorkStockExchange(years=years, categories=("half_day",))

        def weekdays(days: Iterable[date]) -> set[date]:
            return {day for day in days if day.weekday() < 5 and day.year in years}

        assert weekdays(day for year in years for day in closed_days(year)) == weekdays(closed)
        known = {day for day in weekdays(half) - set(closed) if day.year >= FIRST_HALF_DAYS}
        assert {day for year in years for day in half_days(year)} == known


class TestScalar:
    def test_every_boundary_of_every_session(self) -> None:
        expected = oracle()
        for row in range(len(expected.open)):
            for edge in (expected.premarket[row], expected.open[row], expected.close[row], expected.end[row]):
                for epoch in (int(edge) - MINUTE, int(edge), int(edge) + MINUTE):
                    assert stock_phase(epoch) is expected_phase(row, epoch), (expected.dates[row], epoch)

    def test_boundaries_hold_to_the_second(self) -> None:
        expected = oracle()
        for row in range(0, len(expected.open), 7):
            assert stock_phase(expected.open[row] - 0.001) is Phase.PREMARKET
            assert stock_phase(expected.close[row] - 0.001) is Phase.REGULAR
            assert stock_phase(expected.end[row] - 0.001) is Phase.AFTERHOURS
            assert stock_phase(expected.end[row]) is Phase.CLOSED

    def test_agrees_with_the_table_on_a_large_sample(self, table: SessionTable) -> None:
        sample = np.sort(np.random.default_rng(20250919).integers(START, END, 200_000))
        regular, extended = table.regular(sample) >= 0, table.extended(sample) >= 0
        for epoch, in_regular, in_extended in zip(sample.tolist(), regular.tolist(), extended.tolist(), strict=True):
            now = stock_phase(epoch)
            assert (now is Phase.REGULAR) == in_regular, epoch
            assert (now is not Phase.CLOSED) == in_extended, epoch


class TestSpecialDays:
    @pytest.mark.parametrize(
        "day",
        [
            "2018-12-05",  # mourning for G. H. W. Bush
            "2025-01-09",  # mourning for Carter
            "2022-06-20",  # Juneteenth, a Sunday, observed
            "2023-06-19",
            "2024-06-19",
            "2025-06-19",
            "2025-04-18",  # Good Friday
            "2021-12-24",  # Christmas on a Saturday
            "2023-01-02",  # New Year on a Sunday
            "2026-07-03",  # Independence Day on a Saturday
            "2027-12-24",
            "2025-09-20",  # a Saturday
            "2025-09-21",
        ],
    )
    def test_closed_all_day(self, day: str) -> None:
        midnight = at(f"{day}T04:00Z")

        assert session_on(date.fromisoformat(day)) is None
        assert {stock_phase(midnight + minute * MINUTE) for minute in range(0, 1440, 30)} == {Phase.CLOSED}

    @pytest.mark.parametrize(
        "day", ["2015-06-19", "2019-06-19", "2020-06-19", "2021-06-18", "2021-12-31", "2022-01-03"]
    )
    def test_open_on_days_that_are_not_holidays(self, day: str) -> None:
        assert session_on(date.fromisoformat(day)) is not None

    @pytest.mark.parametrize(
        "day", ["2024-07-03", "2024-11-29", "2024-12-24", "2025-07-03", "2025-11-28", "2018-12-24"]
    )
    def test_half_day(self, day: str) -> None:
        def at_eastern(wall: str) -> Phase:
            offset = "-04:00" if day[5:7] == "07" else "-05:00"
            return stock_phase(at(f"{day}T{wall}{offset}"))

        assert at_eastern("03:59") is Phase.CLOSED
        assert at_eastern("04:00") is Phase.PREMARKET
        assert at_eastern("09:29") is Phase.PREMARKET
        assert at_eastern("09:30") is Phase.REGULAR
        assert at_eastern("12:59") is Phase.REGULAR
        assert at_eastern("13:00") is Phase.AFTERHOURS
        assert at_eastern("16:59") is Phase.AFTERHOURS
        assert at_eastern("17:00") is Phase.CLOSED

    def test_ordinary_day(self) -> None:
        walls = ["03:59", "04:00", "09:29", "09:30", "15:59", "16:00", "19:59", "20:00"]

        assert [str(stock_phase(at(f"2025-09-19T{wall}-04:00"))) for wall in walls] == [
            "closed",
            "premarket",
            "premarket",
            "regular",
            "regular",
            "afterhours",
            "afterhours",
            "closed",
        ]


def sunday(year: int, month: int, nth: int) -> date:
    first = date(year, month, 1)
    return first + timedelta((6 - first.weekday()) % 7 + 7 * (nth - 1))


class TestDaylightSaving:
    @pytest.mark.parametrize("year", YEARS)
    def test_in_march_the_open_moves_an_hour_earlier_in_utc(self, year: int) -> None:
        change = sunday(year, 3, 2)

        assert opening(change - timedelta(2)) == "14:30"
        assert opening(change + timedelta(1)) == "13:30"

    @pytest.mark.parametrize("year", YEARS)
    def test_in_november_the_open_moves_an_hour_later_in_utc(self, year: int) -> None:
        change = sunday(year, 11, 1)

        assert opening(change - timedelta(2)) == "13:30"
        assert opening(change + timedelta(1)) == "14:30"

    def test_a_fixed_offset_from_utc_would_be_wrong_in_summer(self) -> None:
        assert stock_phase(at("2025-07-15T13:30Z")) is Phase.REGULAR
        assert stock_phase(at("2025-07-15T20:30Z")) is Phase.AFTERHOURS
        assert stock_phase(at("2025-01-15T13:30Z")) is Phase.PREMARKET
        assert stock_phase(at("2025-01-15T20:30Z")) is Phase.REGULAR


def opening(day: date) -> str:
    session = session_on(day)
    assert session is not None
    return datetime.fromtimestamp(session.open, UTC).strftime("%H:%M")


class TestNextOpen:
    @pytest.mark.parametrize(
        ("now", "expected"),
        [
            ("2025-09-18T12:00Z", "2025-09-18T13:30Z"),  # premarket
            ("2025-09-18T13:29:59Z", "2025-09-18T13:30Z"),
            ("2025-09-18T13:30Z", "2025-09-19T13:30Z"),  # at the open itself, and during hours
            ("2025-09-18T17:00Z", "2025-09-19T13:30Z"),
            ("2025-09-18T22:00Z", "2025-09-19T13:30Z"),  # afterhours
            ("2025-09-19T03:00Z", "2025-09-19T13:30Z"),  # night
            ("2025-09-19T19:00Z", "2025-09-22T13:30Z"),  # Friday
            ("2025-09-20T19:00Z", "2025-09-22T13:30Z"),  # Saturday
            ("2025-09-21T23:00Z", "2025-09-22T13:30Z"),  # Sunday
            ("2025-04-17T20:30Z", "2025-04-21T13:30Z"),  # Good Friday and the weekend
            ("2025-01-17T21:30Z", "2025-01-21T14:30Z"),  # Martin Luther King Day on Monday
            ("2025-11-27T15:00Z", "2025-11-28T14:30Z"),  # Thanksgiving, then a half day
            ("2025-11-28T18:30Z", "2025-12-01T14:30Z"),  # after a half day's close
            ("2025-12-31T20:00Z", "2026-01-02T14:30Z"),  # the year's last session
            ("2026-01-01T03:00Z", "2026-01-02T14:30Z"),  # still 2025 in New York
            ("2022-12-30T22:00Z", "2023-01-03T14:30Z"),  # New Year observed on a Monday
            ("2025-03-07T22:00Z", "2025-03-10T13:30Z"),  # daylight saving begins between
            ("2025-10-31T21:00Z", "2025-11-03T14:30Z"),  # and ends
        ],
    )
    def test_known_times(self, now: str, expected: str) -> None:
        session = next_open(at(now))

        assert session is not None
        assert session.open == at(expected)

    def test_any_time(self) -> None:
        opens = oracle().open
        for epoch in np.random.default_rng(3).integers(START, int(opens[-1]), 20_000).tolist():
            session = next_open(epoch)
            assert session is not None
            assert session.open == opens[np.searchsorted(opens, epoch, side="right")], epoch

    def test_nothing_opens_after_the_last_year(self) -> None:
        assert next_open(at(f"{LAST_YEAR}-12-31T23:00Z")) is None
        assert sessions_of(LAST_YEAR + 1) == sessions_of(FIRST_YEAR - 1) == ()
        assert stock_phase(at("1950-06-05T15:00Z")) is Phase.CLOSED


class TestOtherMarkets:
    @pytest.mark.parametrize(
        ("now", "is_open"),
        [
            ("2025-09-19T20:59:59Z", True),  # Friday 16:59:59 in summer
            ("2025-09-19T21:00Z", False),
            ("2025-09-20T12:00Z", False),
            ("2025-09-21T20:59:59Z", False),
            ("2025-09-21T21:00Z", True),  # Sunday 17:00
            ("2025-12-19T21:59:59Z", True),  # Friday in winter
            ("2025-12-19T22:00Z", False),
            ("2025-12-21T21:59:59Z", False),
            ("2025-12-21T22:00Z", True),
            ("2025-12-24T03:00Z", True),
            ("2025-03-07T21:59Z", True),  # the weekend in which daylight saving begins has 47 hours
            ("2025-03-07T22:00Z", False),
            ("2025-03-09T20:59Z", False),
            ("2025-03-09T21:00Z", True),
        ],
    )
    def test_forex_week(self, now: str, is_open: bool) -> None:
        assert forex_open(at(now)) is is_open
        assert phase(FOREX, at(now)) is (Phase.REGULAR if is_open else Phase.CLOSED)

    def test_every_forex_week_has_120_hours(self) -> None:
        hours = [forex_open(epoch) for epoch in range(at("2025-01-05T12:00Z"), at("2026-01-04T12:00Z"), 3600)]

        assert sum(hours) == 52 * 120

    def test_crypto_never_closes(self) -> None:
        moments = ["2025-12-25T00:00Z", "2025-09-20T12:00Z", "2025-09-19T19:00Z", "1950-01-01T00:00Z"]

        assert {phase(CRYPTO, at(moment)) for moment in moments} == {Phase.REGULAR}

    def test_stocks_have_the_phases_of_the_exchange(self) -> None:
        for moment in ("2025-12-25T16:00Z", "2025-09-19T12:00Z", "2025-09-19T19:00Z", "2025-09-19T22:00Z"):
            assert phase(STOCK, at(moment)) is stock_phase(at(moment))

    def test_eastern_is_new_yorks_wall_clock(self) -> None:
        assert eastern(at("2025-09-19T19:00Z")).isoformat() == "2025-09-19T15:00:00-04:00"
        assert eastern(at("2025-12-19T19:00Z")).isoformat() == "2025-12-19T14:00:00-05:00"


class TestTradingDay:
    def test_stocks_count_regular_minutes_by_session(self) -> None:
        times = minutes("2025-12-30T00:00Z", "2026-01-06T00:00Z")
        expected = oracle()
        row = np.searchsorted(expected.open, times, side="right") - 1
        regular = times < expected.close[row]

        day = trading_day(STOCK, times)

        assert np.array_equal(day >= 0, regular)
        assert np.array_equal(np.diff(day[regular]) != 0, np.diff(row[regular]) != 0)

    def test_the_utc_day_where_trading_never_stops(self) -> None:
        times = minutes("2025-12-30T00:00Z", "2026-01-03T00:00Z")

        day = trading_day(CRYPTO, times)

        assert np.array_equal(np.flatnonzero(np.diff(day)), np.array([1439, 2879, 4319]))
        assert (day >= 0).all()

    def test_a_day_of_forex_begins_at_17_in_new_york(self) -> None:
        times = minutes("2026-01-01T00:00Z", "2026-01-05T00:00Z")

        day = trading_day(FOREX, times)

        edges = times[1:][np.diff(day) != 0].tolist()
        assert edges == [at("2026-01-01T22:00Z"), at("2026-01-02T22:00Z"), at("2026-01-04T22:00Z")]
        assert ((day < 0) == [not forex_open(time) for time in times.tolist()]).all()

    def test_no_times_give_no_trading_days(self) -> None:
        assert len(trading_day(STOCK, np.zeros(0, dtype=np.int64))) == 0
