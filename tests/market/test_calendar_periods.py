"""Bars of 2 and 3 days, months, quarters, halves and years, compared with days grouped in plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from openbell.market.bars import Bars, bucket_bounds, closed_at, count, ends_of, resample
from openbell.market.extras import Extra
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.lookback import MOST_SESSIONS, bucket_start, lookback_start
from openbell.market.partial_bars import cut_bars
from openbell.market.series_plan import buckets, missing, next_close
from openbell.market.timeframes import Timeframe
from openbell.market.trading_time import most_bars
from tests.market.calendar_groups import Row, group_at, grouped, groups, instrument_days
from tests.market.walks import CRYPTO, DAY, FOREX, MINUTE, STOCK, at, walk

OF_DAYS = [timeframe for timeframe in Timeframe if timeframe.of_days]
EARLY, LATE = at("2005-01-01T00:00Z"), at("2026-06-30T00:00Z")

instruments = st.sampled_from([STOCK, CRYPTO, FOREX])
timeframes = st.sampled_from(OF_DAYS)
edges = st.builds(
    lambda text, minutes: at(text) + minutes * MINUTE,
    st.sampled_from(
        [
            "2008-02-29T21:00Z",  # a leap day, and the last session of its month
            "2012-10-29T13:30Z",  # closed for two days
            "2024-12-31T21:00Z",
            "2025-01-01T00:00Z",
            "2025-03-09T07:00Z",  # clocks go forward
            "2025-11-02T06:00Z",  # and back
            "2025-11-28T18:00Z",  # a half day, the last session of November
            "2021-12-31T21:00Z",  # the last session of a year on a Friday
            "2025-07-01T13:30Z",
        ]
    ),
    st.integers(-3000, 3000),
)
times = st.one_of(edges, st.integers(EARLY // MINUTE, LATE // MINUTE).map(lambda minute: minute * MINUTE))


def bounds(instrument: Instrument, timeframe: Timeframe, time: int) -> tuple[int, int]:
    start, end = bucket_bounds(instrument, timeframe, np.array([time], dtype=np.int64))
    return int(start[0]), int(end[0])


@pytest.mark.parametrize(
    ("instrument", "timeframe", "inside", "start", "end"),
    [
        (CRYPTO, Timeframe.MONTH, "2024-02-29T23:59Z", "2024-02-01T00:00Z", "2024-03-01T00:00Z"),
        (FOREX, Timeframe.QUARTER, "2025-05-05T05:00Z", "2025-03-31T21:00Z", "2025-06-30T21:00Z"),
        (CRYPTO, Timeframe.HALF, "2025-06-30T23:59Z", "2025-01-01T00:00Z", "2025-07-01T00:00Z"),
        (CRYPTO, Timeframe.YEAR, "2024-12-31T23:59Z", "2024-01-01T00:00Z", "2025-01-01T00:00Z"),
        (CRYPTO, Timeframe.D2, "1970-01-04T12:00Z", "1970-01-03T00:00Z", "1970-01-05T00:00Z"),
        (FOREX, Timeframe.D3, "1971-01-06T21:00Z", "1971-01-03T22:00Z", "1971-01-06T22:00Z"),
        (STOCK, Timeframe.MONTH, "2025-11-10T15:00Z", "2025-11-03T14:30Z", "2025-11-28T18:00Z"),
        (STOCK, Timeframe.QUARTER, "2025-03-31T19:59Z", "2025-01-02T14:30Z", "2025-03-31T20:00Z"),
        (STOCK, Timeframe.YEAR, "2024-07-03T16:59Z", "2024-01-02T14:30Z", "2024-12-31T21:00Z"),
        (STOCK, Timeframe.D2, "1971-01-05T15:00Z", "1971-01-04T14:30Z", "1971-01-05T21:00Z"),
        (STOCK, Timeframe.D3, "1971-01-07T15:00Z", "1971-01-07T14:30Z", "1971-01-11T21:00Z"),
    ],
)
def test_known_bars(instrument: Instrument, timeframe: Timeframe, inside: str, start: str, end: str) -> None:
    assert bounds(instrument, timeframe, at(inside)) == (at(start), at(end))


@given(instruments, timeframes, st.lists(times, min_size=1, max_size=40))
@settings(deadline=None, max_examples=100)
def test_buckets_hold_the_days_of_their_period(instrument: Instrument, timeframe: Timeframe, some: list[int]) -> None:
    some = sorted(some)
    known = groups(instrument.asset_class, timeframe)
    expected = []
    for time in some:
        group = group_at(known, time)
        inside = group is not None and group.holds(time)
        expected.append((group.start, group.end) if group and inside else (-1, -1))

    starts, ends = bucket_bounds(instrument, timeframe, np.array(some, dtype=np.int64))

    assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == expected
    assert [bounds(instrument, timeframe, time) for time in some] == expected, "alone as among others"


@given(instruments, timeframes, times, st.integers(0, 1500 * DAY))
@settings(deadline=None, max_examples=100)
def test_all_buckets_of_a_span_are_found_and_counted(
    instrument: Instrument, timeframe: Timeframe, start: int, length: int
) -> None:
    end = min(start + length, LATE)
    expected = [
        (each.start, each.end)
        for each in groups(instrument.asset_class, timeframe)
        if each.start >= start and each.end <= end
    ]

    starts, ends = buckets(instrument, timeframe, start, end)

    assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == expected
    assert most_bars(instrument, timeframe, start, end) == len(expected)


@given(instruments, timeframes, times, st.floats(0, 59))
@settings(deadline=None, max_examples=100)
def test_the_start_and_the_next_close(instrument: Instrument, timeframe: Timeframe, minute: int, more: float) -> None:
    known = groups(instrument.asset_class, timeframe)
    group = group_at(known, minute)

    assert bucket_start(instrument, timeframe, minute + more) == (group.start if group else minute)
    assert next_close(instrument, timeframe, minute + more) == next(
        each.end for each in known if each.end > minute + more
    )


@given(instruments, timeframes, st.integers(1, 60), times)
@settings(deadline=None, max_examples=120)
@example(STOCK, Timeframe.MONTH, 1, at("2025-11-28T18:00Z"))
@example(STOCK, Timeframe.D3, 1, at("2025-11-28T17:59Z"))
@example(STOCK, Timeframe.YEAR, 2, at("2024-12-31T21:00Z"))
def test_a_lookback_holds_that_many_closed_bars_and_few_more(
    instrument: Instrument, timeframe: Timeframe, wanted: int, end: int
) -> None:
    if end - wanted * 2 * timeframe.seconds < EARLY:
        wanted = 1
    start = lookback_start(instrument, timeframe, wanted, end)
    known = groups(instrument.asset_class, timeframe)
    closed = [each for each in known if start <= each.start and each.end <= end]

    assert not any(each.start < start < each.end for each in known), "no bar is cut"
    if timeframe.seconds * wanted < end - EARLY - 4 * 365 * DAY:
        assert wanted <= len(closed) <= wanted * 1.5 + 10
        if instrument is CRYPTO or (instrument is FOREX and timeframe.months):
            assert len(closed) == wanted


def test_no_lookback_begins_before_1970() -> None:
    for instrument in (STOCK, CRYPTO, FOREX):
        for timeframe in OF_DAYS:
            assert lookback_start(instrument, timeframe, 3000, LATE) >= 0 or timeframe.seconds < 7 * DAY


def test_no_stock_bar_has_more_sessions_than_the_lookback_expects() -> None:
    for timeframe in OF_DAYS:
        most = max(len(each.days) for each in groups(AssetClass.STOCK, timeframe))
        assert most <= MOST_SESSIONS[timeframe] <= most + 2


def rows(bars: Bars) -> list[Row]:
    return list(zip(*(column.tolist() for column in bars.columns()), strict=True))


def assert_same_bars(found: Bars, expected: list[Row]) -> None:
    assert [row[:5] for row in rows(found)] == [row[:5] for row in expected]
    assert np.allclose(found.volume, [row[5] for row in expected], rtol=1e-12, atol=0)


@pytest.mark.parametrize("instrument", [STOCK, FOREX], ids=str)
def test_minutes_and_days_with_gaps_make_the_same_bars_as_python(instrument: Instrument) -> None:
    chance = np.random.default_rng(5)
    minutes = np.arange(at("2023-11-20T00:00Z"), at("2026-02-10T00:00Z"), 37 * MINUTE)
    minutes = minutes[(chance.random(len(minutes)) < 0.6) & (minutes // (20 * DAY) % 5 != 2)]
    bars = walk(minutes, 3, instrument)
    for until in (at("2025-11-28T17:59Z"), at("2025-11-28T18:00Z"), float(minutes[-1] + 60)):
        days = resample(bars, Timeframe.D1, until)
        for timeframe in OF_DAYS:
            found = resample(bars, timeframe, until)

            assert_same_bars(found, grouped(bars, timeframe, until))
            assert found.same_as(resample(days, timeframe, until)), "to the last bit"
            assert count(instrument, timeframe, bars.time, until) == len(found)
            assert closed_at(found) <= until
            assert missing(found) == (None if instrument is FOREX else missing_of(found))


def missing_of(bars: Bars) -> int:
    known = [each.start for each in groups(bars.instrument.asset_class, bars.timeframe)]
    return known.index(int(bars.time[-1])) - known.index(int(bars.time[0])) + 1 - len(bars)


@pytest.mark.parametrize("instrument", [STOCK, CRYPTO, FOREX], ids=str)
@pytest.mark.parametrize("timeframe", OF_DAYS)
def test_a_bar_of_which_minutes_are_missing_is_cut(instrument: Instrument, timeframe: Timeframe) -> None:
    whole = [each for each in groups(instrument.asset_class, timeframe) if each.start > at("2022-06-01T00:00Z")][:3]
    first, middle, last = ((each.start, each.end) for each in whole)
    days = [day for day in instrument_days(instrument) if middle[0] <= day < middle[1]]

    assert cut_bars(instrument, timeframe, [(first[0], last[1])]) == []
    assert cut_bars(instrument, timeframe, [(first[0], days[-1] + 3600), (days[-1] + 7200, last[1])]) == [middle]
    assert cut_bars(instrument, timeframe, [(days[0] + MINUTE, last[1])]) == [middle]


def test_values_with_timestamps_belong_to_the_bar_in_which_they_are() -> None:
    bars = walk([at("2025-01-01T00:00Z"), at("2025-02-01T00:00Z"), at("2025-03-01T00:00Z")], 1, CRYPTO, Timeframe.MONTH)
    extra = Extra(
        np.array([at("2025-02-01T00:00Z"), at("2025-02-28T23:00Z"), at("2025-03-31T12:00Z")]), np.array([1.0, 2.0, 4.0])
    )

    assert ends_of(bars).tolist() == [at("2025-02-01T00:00Z"), at("2025-03-01T00:00Z"), at("2025-04-01T00:00Z")]
    # A value at the end of a bar belongs to the next one.
    assert np.isnan(extra.at(bars)[0])
    assert extra.at(bars).tolist()[1:] == [2.0, 4.0]
    assert extra.sum_in(bars).tolist()[1:] == [3.0, 4.0]
    assert np.isnan(extra.sum_in(bars)[0])
