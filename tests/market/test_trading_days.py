"""Days of currencies, from 17:00 in New York, compared with days grouped in plain Python with zoneinfo."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from openbell.indicators.regular_hours import session_days
from openbell.market.bars import bucket_bounds, closed_at, count, ends_of, resample
from openbell.market.instruments import AssetClass
from openbell.market.lookback import bucket_start, lookback_start
from openbell.market.partial_bars import cut_bars
from openbell.market.series import bases
from openbell.market.series_plan import buckets, next_close
from openbell.market.sessions import forex_open
from openbell.market.timeframes import Timeframe
from openbell.market.trading_days import begin_of_date, currency_days_at, currency_opens_on, date_of
from openbell.market.trading_time import most_bars
from tests.market.calendar_groups import EPOCH, group_at, grouped, groups, trading_days
from tests.market.walks import DAY, FOREX, MINUTE, at, minutes, walk

FROM_A_DAY = [timeframe for timeframe in Timeframe if not timeframe.intraday]
LATE = at("2026-06-30T00:00Z")
timeframes = st.sampled_from(FROM_A_DAY)
times = st.one_of(
    st.builds(
        lambda text, minutes: at(text) + minutes * MINUTE,
        st.sampled_from(
            [
                "2025-03-07T22:00Z",  # Friday's close before clocks go forward, and the open after it
                "2025-03-09T21:00Z",
                "2025-10-31T21:00Z",  # before they go back, and after
                "2025-11-02T22:00Z",
                "2006-04-02T21:00Z",  # other dates of these changes
                "2024-12-25T22:00Z",
                "2024-12-31T22:00Z",
                "2025-05-31T12:00Z",  # a month that ends on a Saturday
            ]
        ),
        st.integers(-3000, 3000),
    ),
    st.integers(at("2006-01-01T00:00Z") // MINUTE, LATE // MINUTE).map(lambda minute: minute * MINUTE),
)


def bounds(timeframe: Timeframe, text: str) -> list[int]:
    return [int(each[0]) for each in bucket_bounds(FOREX, timeframe, np.array([at(text)]))]


@pytest.mark.parametrize(
    ("timeframe", "inside", "start", "end"),
    [
        (Timeframe.D1, "2025-03-07T21:59Z", "2025-03-06T22:00Z", "2025-03-07T22:00Z"),
        (Timeframe.D1, "2025-03-09T21:00Z", "2025-03-09T21:00Z", "2025-03-10T21:00Z"),
        (Timeframe.D1, "2025-10-31T20:59Z", "2025-10-30T21:00Z", "2025-10-31T21:00Z"),
        (Timeframe.D1, "2025-11-02T22:00Z", "2025-11-02T22:00Z", "2025-11-03T22:00Z"),
        (Timeframe.W1, "2025-03-09T21:00Z", "2025-03-09T21:00Z", "2025-03-14T21:00Z"),
        (Timeframe.W1, "2025-11-07T21:59Z", "2025-11-02T22:00Z", "2025-11-07T22:00Z"),
        (Timeframe.D2, "2025-03-09T22:00Z", "2025-03-06T22:00Z", "2025-03-10T21:00Z"),
        (Timeframe.MONTH, "2025-01-31T22:00Z", "-1", "-1"),
        (Timeframe.MONTH, "2025-03-31T21:00Z", "2025-03-31T21:00Z", "2025-04-30T21:00Z"),
        (Timeframe.HALF, "2025-06-30T20:59Z", "2024-12-31T22:00Z", "2025-06-30T21:00Z"),
        (Timeframe.YEAR, "2024-12-31T22:00Z", "2024-12-31T22:00Z", "2025-12-31T22:00Z"),
        (Timeframe.D1, "2025-03-08T12:00Z", "-1", "-1"),
        (Timeframe.D1, "2025-11-02T21:59Z", "-1", "-1"),
        (Timeframe.W1, "2025-03-07T22:00Z", "-1", "-1"),
        (Timeframe.H4, "2025-11-02T22:00Z", "2025-11-02T20:00Z", "2025-11-03T00:00Z"),
    ],
)
def test_known_bars(timeframe: Timeframe, inside: str, start: str, end: str) -> None:
    assert bounds(timeframe, inside) == [-1 if each == "-1" else at(each) for each in (start, end)]


@given(timeframes, st.lists(times, min_size=1, max_size=30), st.integers(0, 900 * DAY))
@settings(deadline=None, max_examples=60)
def test_buckets_are_those_of_python(timeframe: Timeframe, some: list[int], length: int) -> None:
    some = sorted(some)
    known = groups(AssetClass.FOREX, timeframe)
    first, end = some[0], min(some[0] + length, LATE)
    at_times = [group_at(known, time) for time in some]
    inside = [group and group.holds(time) for group, time in zip(at_times, some, strict=True)]

    starts, ends = bucket_bounds(FOREX, timeframe, np.array(some, dtype=np.int64))
    found = buckets(FOREX, timeframe, first, end)

    expected = [
        (group.start, group.end) if group and ok else (-1, -1) for group, ok in zip(at_times, inside, strict=True)
    ]
    assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == expected
    whole = [(each.start, each.end) for each in known if each.start >= first and each.end <= end]
    assert list(zip(*(each.tolist() for each in found), strict=True)) == whole
    assert most_bars(FOREX, timeframe, first, end) == len(whole)
    assert bucket_start(FOREX, timeframe, first) == (at_times[0].start if at_times[0] else first)
    assert next_close(FOREX, timeframe, first) == next(each.end for each in known if each.end > first)


@given(timeframes, st.integers(1, 120), times)
@settings(deadline=None, max_examples=60)
@example(Timeframe.D1, 120, at("2025-12-28T12:00Z"))
@example(Timeframe.W1, 1, at("2025-03-07T22:00Z"))
def test_a_lookback_holds_that_many_closed_bars_and_few_more(timeframe: Timeframe, wanted: int, end: int) -> None:
    if end - wanted * 2 * timeframe.seconds < at("2005-01-01T00:00Z"):
        wanted = 1
    start = lookback_start(FOREX, timeframe, wanted, end)
    known = groups(AssetClass.FOREX, timeframe)

    assert any(each.start == start for each in known)
    closed = sum(start <= each.start and each.end <= end for each in known)
    assert wanted <= closed <= wanted + 2 + wanted // 50


def test_minutes_hours_and_days_make_the_same_bars_as_python() -> None:
    """Over two changes of the clocks, Christmas without bars, and minutes at weekends, which belong to no day."""
    all_minutes = np.arange(at("2024-10-20T00:00Z"), at("2025-04-20T00:00Z"), 7 * MINUTE)
    kept = (all_minutes < at("2024-12-24T22:00Z")) | (all_minutes >= at("2024-12-25T22:00Z"))
    bars = walk(all_minutes[kept], 3, FOREX)
    until = float(at("2025-04-18T21:00Z"))
    hours = resample(bars, Timeframe.H1, until)
    days = resample(bars, Timeframe.D1, until)

    assert at("2024-12-24T22:00Z") not in days.time
    assert set(((session_days(days) + 3) % 7).tolist()) == {0, 1, 2, 3, 4}, "from Monday to Friday"
    for timeframe in FROM_A_DAY:
        found = resample(bars, timeframe, until)
        expected = grouped(bars, timeframe, until)

        assert list(zip(*(column.tolist() for column in found.columns()[:5]), strict=True)) == [
            row[:5] for row in expected
        ]
        assert np.allclose(found.volume, [row[5] for row in expected], rtol=1e-12, atol=0)
        for base in (hours, days):
            made = resample(base, timeframe, until)
            for mine, theirs in zip(made.columns()[:5], found.columns()[:5], strict=True):
                assert np.array_equal(mine, theirs)
        assert count(FOREX, timeframe, bars.time, until) == len(found)
        assert closed_at(found) <= until
    assert np.array_equal(ends_of(days), bucket_bounds(FOREX, Timeframe.D1, days.time)[1]), "each day has 24 hours"


def test_days_are_made_of_hours_and_finer_bars_only() -> None:
    for timeframe in FROM_A_DAY:
        intraday = [base for base in bases(FOREX, timeframe) if base.intraday]
        assert intraday == [Timeframe[name] for name in ("H1", "M30", "M15", "M5", "M3", "M2", "M1")]


@pytest.mark.parametrize("timeframe", FROM_A_DAY)
def test_a_weekend_without_minutes_cuts_no_bar(timeframe: Timeframe) -> None:
    friday, sunday = at("2022-06-10T21:00Z"), at("2022-06-12T21:00Z")
    known = groups(AssetClass.FOREX, timeframe)
    middle = known.index(next(each for each in known if each.start < friday <= each.end))
    before, last = known[middle - 1], known[middle + 1]

    assert cut_bars(FOREX, timeframe, [(before.start, friday), (sunday, last.end)]) == []
    assert cut_bars(FOREX, timeframe, [(before.start + MINUTE, friday), (sunday, last.end)]) == [
        (before.start, before.end)
    ]


def test_the_day_of_a_bar_does_not_depend_on_others() -> None:
    every = minutes("2025-10-30T00:00Z", "2025-11-05T00:00Z")
    known = [row for row in trading_days(AssetClass.FOREX) if row[0].year == 2025]
    for timeframe in (Timeframe.M15, Timeframe.H1, Timeframe.H4, Timeframe.H12):
        opens = every[every % timeframe.seconds == 0]
        bars = walk(opens, 1, FOREX, timeframe)
        number = session_days(bars)

        for time, found in zip(opens.tolist(), number.tolist(), strict=True):
            day, _, start, _ = next(row for row in known if row[3] > time)
            assert found == ((day - EPOCH).days if start < time + timeframe.seconds else -1)
        assert all(session_days(bars.take(slice(n, n + 1)))[0] == number[n] for n in range(0, len(bars), 97))
        if timeframe is Timeframe.M15:
            assert ((number >= 0) == [forex_open(time) for time in opens.tolist()]).all()


def test_dates_and_opens_are_inverse() -> None:
    days = np.arange((date(2024, 12, 1) - EPOCH).days, (date(2026, 1, 20) - EPOCH).days)

    opens = currency_opens_on(days)

    weekdays = (days + 3) % 7 < 5
    assert ((opens >= 0) == weekdays).all()
    assert np.array_equal(currency_days_at(opens[weekdays]), days[weekdays])
    assert len(currency_opens_on(days[:0])) == len(currency_days_at(days[:0])) == 0


def test_outside_the_calendars_years_there_are_no_days() -> None:
    long_ago = np.array([at("1955-05-05T12:00Z")])

    assert bucket_bounds(FOREX, Timeframe.D1, long_ago)[0].tolist() == [-1]
    assert currency_days_at(long_ago).tolist() == currency_opens_on(long_ago // DAY).tolist() == [-1]
    assert lookback_start(FOREX, Timeframe.D1, 5, float(long_ago[0])) <= long_ago[0]


@pytest.mark.parametrize(
    ("midnight", "begin"),
    [
        ("2025-06-09T00:00Z", "2025-06-08T21:00Z"),  # Monday
        ("2025-06-13T00:00Z", "2025-06-12T21:00Z"),  # Friday
        ("2025-06-14T00:00Z", "2025-06-15T21:00Z"),  # Saturday: the next day is Monday's
        ("2025-06-15T00:00Z", "2025-06-15T21:00Z"),
        ("2025-01-01T00:00Z", "2024-12-31T22:00Z"),
        ("2025-06-09T00:01Z", "2025-06-09T00:01Z"),  # a time, not a date
    ],
)
def test_a_date_begins_with_its_trading_day(midnight: str, begin: str) -> None:
    assert begin_of_date(FOREX, Timeframe.D1, at(midnight)) == at(begin)
    assert begin_of_date(FOREX, Timeframe.H1, at(midnight)) == at(midnight)


@given(time=times, timeframe=timeframes)
def test_bars_from_a_date_on_have_that_date_or_a_later_one(time: int, timeframe: Timeframe) -> None:
    midnight = time // DAY * DAY
    begin = begin_of_date(FOREX, timeframe, midnight)
    opens, _ = buckets(FOREX, timeframe, begin - 800 * DAY, begin + 800 * DAY)
    wanted = EPOCH + timedelta(midnight // DAY)
    for opened in opens.tolist():
        assert (opened >= begin) == (date_of(FOREX, timeframe, opened) >= wanted)
