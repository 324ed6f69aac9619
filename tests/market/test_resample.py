"""Resampling, compared with pandas; an unfinished bucket is never returned."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.market.bars import Bars, bucket_bounds, empty, make, merge, resample
from openbell.market.instruments import Instrument
from openbell.market.timeframes import Timeframe
from tests.market.new_york import oracle
from tests.market.walks import CRYPTO, DAY, FOREX, MINUTE, STOCK, at, minutes, walk

INTRADAY = [timeframe for timeframe in Timeframe if timeframe.intraday]
LARGER = INTRADAY[1:]
NESTING = [
    (small, large)
    for small in INTRADAY
    for large in INTRADAY
    if small.seconds < large.seconds and large.seconds % small.seconds == 0
]
FOREVER = 1e12

gappy = st.builds(
    lambda base, offsets, seed: walk([(base + offset) * MINUTE for offset in sorted(offsets)], seed),
    st.integers(at("2015-01-01T00:00Z") // MINUTE, at("2027-12-01T00:00Z") // MINUTE),
    st.sets(st.one_of(st.integers(0, 90), st.integers(0, 3000)), min_size=1, max_size=120),
    st.integers(0, 2**32),
)


def by_pandas(bars: Bars, seconds: int, closed_until: float, origin: str = "1970-01-01") -> pd.DataFrame:
    """Returns the larger bars by the contract's method: pandas resample with first, max, min, last and sum."""
    frame = pd.DataFrame(
        dict(zip(("open", "high", "low", "close", "volume"), bars.columns()[1:], strict=True)),
        index=pd.to_datetime(bars.time, unit="s"),
    )
    grouped = frame.resample(f"{seconds}s", origin=pd.Timestamp(origin), label="left", closed="left")
    large = grouped.agg({"open": "first", "high": "max", "low": "min", "close": "last", "volume": "sum"})
    large = large[grouped["open"].count() > 0]
    starts = large.index.to_numpy().astype("datetime64[s]").astype(np.int64)
    large = large.set_axis(starts, axis="index")
    return large[starts + seconds <= closed_until]


def assert_equal(found: Bars, expected: pd.DataFrame) -> None:
    assert found.time.tolist() == expected.index.tolist()
    for name in ("open", "high", "low", "close"):
        assert np.array_equal(getattr(found, name), expected[name].to_numpy()), name
    assert np.allclose(found.volume, expected["volume"].to_numpy(), rtol=1e-12, atol=0)


class TestIntraday:
    @given(gappy, st.integers(-120, 3200), st.sampled_from([CRYPTO, STOCK, FOREX]))
    @settings(deadline=None, max_examples=40)
    def test_equals_pandas(self, bars: Bars, until: int, instrument: Instrument) -> None:
        """Buckets are aligned to UTC midnight for every instrument and include extended hours."""
        mine = make(instrument, Timeframe.M1, *bars.columns())
        closed_until = float(bars.time[0] + until * MINUTE)
        for timeframe in LARGER:
            found = resample(mine, timeframe, closed_until)

            assert_equal(found, by_pandas(bars, timeframe.seconds, closed_until))
            assert (found.instrument, found.timeframe) == (instrument, timeframe)

    @given(gappy, st.integers(0, 3200))
    @settings(deadline=None, max_examples=40)
    def test_two_steps_give_the_same_as_one(self, bars: Bars, until: int) -> None:
        closed_until = float(bars.time[0] + until * MINUTE)
        for small, large in NESTING:
            direct = resample(bars, large, closed_until)
            stepwise = resample(resample(bars, small, closed_until), large, closed_until)

            assert stepwise.time.tolist() == direct.time.tolist()
            for name in ("open", "high", "low", "close"):
                assert np.array_equal(getattr(stepwise, name), getattr(direct, name))
            assert np.allclose(stepwise.volume, direct.volume, rtol=1e-12, atol=0)

    @given(gappy, st.integers(0, 3100))
    @settings(deadline=None, max_examples=60)
    def test_closed_bars_do_not_change_when_more_bars_arrive(self, bars: Bars, until: int) -> None:
        closed_until = float(bars.time[0] + until * MINUTE)
        for timeframe in LARGER:
            then = resample(bars.between(0, closed_until), timeframe, closed_until)
            later = resample(bars, timeframe, FOREVER)

            assert then.same_as(later.between(0, closed_until - timeframe.seconds + 1))

    def test_an_hour_of_a_stock_begins_on_the_full_hour(self) -> None:
        """Not at 9:30: buckets are aligned to UTC midnight and include premarket minutes."""
        bars = walk(minutes("2025-09-19T13:00Z", "2025-09-19T14:00Z"), instrument=STOCK)

        hour = resample(bars, Timeframe.H1, at("2025-09-19T14:00Z"))

        assert hour.time.tolist() == [at("2025-09-19T13:00Z")]
        assert hour.open[0] == bars.open[0]
        assert hour.high[0] == bars.high.max()

    def test_the_same_timeframe_gives_the_closed_bars_themselves(self) -> None:
        bars = walk(minutes("2025-09-19T13:00Z", "2025-09-19T13:10Z"))

        assert resample(bars, Timeframe.M1, FOREVER).same_as(bars)
        assert resample(bars, Timeframe.M1, float(bars.time[-1]) + 59).same_as(bars.take(slice(0, -1)))

    @pytest.mark.parametrize("instrument", [CRYPTO, STOCK, FOREX])
    @pytest.mark.parametrize("timeframe", Timeframe)
    def test_no_bars_give_no_bars(self, instrument: Instrument, timeframe: Timeframe) -> None:
        found = resample(empty(instrument), timeframe, FOREVER)

        assert len(found) == 0
        assert found.timeframe is timeframe


class TestUnfinished:
    @pytest.mark.parametrize("timeframe", [*INTRADAY, Timeframe.D1, Timeframe.W1])
    def test_a_bucket_is_never_shown_before_its_end(self, timeframe: Timeframe) -> None:
        """All minutes of the bucket are given; `closed_until` runs through every minute of it and fractions of a second."""
        start = at("2025-03-03T00:00Z")  # a Monday
        end = start + timeframe.seconds
        bars = walk(minutes(start - timeframe.seconds, end + 5 * MINUTE))
        step = MINUTE if timeframe is not Timeframe.W1 else 17 * MINUTE
        for closed_until in [*range(start, end, step), end - 1, end - 0.001]:
            assert resample(bars, timeframe, closed_until).time.tolist() == [start - timeframe.seconds]

        assert resample(bars, timeframe, end).time.tolist() == [start - timeframe.seconds, start]

    @pytest.mark.parametrize("timeframe", [Timeframe.M5, Timeframe.H1])
    def test_a_bucket_with_only_its_first_minutes_is_not_shown_before_its_end(self, timeframe: Timeframe) -> None:
        start = at("2025-03-03T00:00Z")
        bars = walk(minutes(start, start + 3 * MINUTE))
        for closed_until in range(start, start + timeframe.seconds, 30):
            assert len(resample(bars, timeframe, closed_until)) == 0

        assert len(resample(bars, timeframe, start + timeframe.seconds)) == 1

    def test_a_stocks_day_is_closed_at_the_close_of_its_regular_session(self) -> None:
        bars = walk(minutes("2025-11-28T09:00Z", "2025-11-28T22:00Z"), instrument=STOCK)
        close = at("2025-11-28T18:00Z")  # a half day
        for closed_until in range(at("2025-11-28T09:00Z"), close, MINUTE):
            assert len(resample(bars, Timeframe.D1, closed_until)) == 0

        assert resample(bars, Timeframe.D1, close).time.tolist() == [at("2025-11-28T14:30Z")]

    def test_a_stocks_week_is_closed_at_the_close_of_its_last_session(self) -> None:
        bars = walk(minutes("2025-04-14T08:00Z", "2025-04-18T00:00Z"), instrument=STOCK)
        close = at("2025-04-17T20:00Z")  # Thursday before Good Friday
        for closed_until in range(at("2025-04-14T08:00Z"), close, 7 * MINUTE):
            assert len(resample(bars, Timeframe.W1, closed_until)) == 0

        assert len(resample(bars, Timeframe.W1, close - 1)) == 0
        assert resample(bars, Timeframe.W1, close).time.tolist() == [at("2025-04-14T13:30Z")]


class TestDaysAndWeeks:
    def test_around_the_clock_a_day_is_the_utc_day_and_a_week_begins_on_monday(self) -> None:
        times = np.sort(
            np.random.default_rng(5).choice(minutes("2024-12-20T00:00Z", "2025-01-25T00:00Z"), 4000, replace=False)
        )
        bars = walk(times, 3, CRYPTO)

        days = resample(bars, Timeframe.D1, FOREVER)
        weeks = resample(bars, Timeframe.W1, FOREVER)

        assert_equal(days, by_pandas(bars, DAY, FOREVER))
        assert_equal(weeks, by_pandas(bars, 7 * DAY, FOREVER, origin="1970-01-05"))
        assert {pd.Timestamp(time, unit="s").day_name() for time in weeks.time.tolist()} == {"Monday"}

    @pytest.mark.parametrize(
        ("start", "end"),
        [
            ("2025-11-20T00:00Z", "2025-12-06T00:00Z"),  # Thanksgiving and its half day
            ("2024-12-20T00:00Z", "2025-01-18T00:00Z"),  # Christmas, New Year, a day of mourning
            ("2025-03-03T00:00Z", "2025-03-16T00:00Z"),  # daylight saving begins
            ("2025-10-27T00:00Z", "2025-11-08T00:00Z"),  # and ends
            ("2018-11-30T00:00Z", "2018-12-08T00:00Z"),
        ],
    )
    def test_a_stocks_day_is_its_regular_session(self, start: str, end: str) -> None:
        """Minutes in extended hours have extreme prices, so that one of them in a daily bar would be found."""
        bars = self.with_extreme_prices_outside_regular_hours(start, end)
        sessions = oracle()

        days = resample(bars, Timeframe.D1, FOREVER)

        expected = []
        for first, last in zip(sessions.open.tolist(), sessions.close.tolist(), strict=True):
            inside = (bars.time >= first) & (bars.time < last)
            if inside.any():
                expected.append((first, bars.take(inside)))
        assert days.time.tolist() == [first for first, _ in expected]
        for at_day, (_, session) in enumerate(expected):
            assert days.open[at_day] == session.open[0]
            assert days.high[at_day] == session.high.max()
            assert days.low[at_day] == session.low.min()
            assert days.close[at_day] == session.close[-1]
            assert days.volume[at_day] == pytest.approx(session.volume.sum(), rel=1e-12)

    @pytest.mark.parametrize(
        ("start", "end", "keys"),
        [
            (
                "2025-01-13T00:00Z",
                "2025-01-25T00:00Z",
                ["2025-01-13T14:30Z", "2025-01-21T14:30Z"],
            ),  # Monday is a holiday
            ("2024-12-23T00:00Z", "2025-01-11T00:00Z", ["2024-12-23T14:30Z", "2024-12-30T14:30Z", "2025-01-06T14:30Z"]),
            ("2025-03-03T00:00Z", "2025-03-15T00:00Z", ["2025-03-03T14:30Z", "2025-03-10T13:30Z"]),
        ],
    )
    def test_a_stocks_week_is_its_days(self, start: str, end: str, keys: list[str]) -> None:
        bars = self.with_extreme_prices_outside_regular_hours(start, end)
        days = resample(bars, Timeframe.D1, FOREVER)

        weeks = resample(bars, Timeframe.W1, FOREVER)

        assert weeks.time.tolist() == [at(key) for key in keys]
        edges = [*weeks.time.tolist(), at(end)]
        for week, (first, last) in enumerate(pairwise(edges)):
            inside = days.between(first, last)
            assert weeks.open[week] == inside.open[0]
            assert weeks.high[week] == inside.high.max()
            assert weeks.low[week] == inside.low.min()
            assert weeks.close[week] == inside.close[-1]
            assert weeks.volume[week] == pytest.approx(inside.volume.sum(), rel=1e-12)

    def test_minutes_on_a_holiday_make_no_day(self) -> None:
        bars = walk(minutes("2025-12-25T00:00Z", "2025-12-26T00:00Z"), instrument=STOCK)

        assert len(resample(bars, Timeframe.D1, FOREVER)) == 0
        assert len(resample(bars, Timeframe.W1, FOREVER)) == 0

    def test_years_outside_the_calendar_have_no_days(self) -> None:
        bars = walk(minutes("1965-06-04T14:00Z", "1965-06-04T14:10Z"), instrument=STOCK)

        assert len(resample(bars, Timeframe.D1, FOREVER)) == 0
        assert len(resample(bars, Timeframe.W1, FOREVER)) == 0

    @staticmethod
    def with_extreme_prices_outside_regular_hours(start: str, end: str) -> Bars:
        bars = walk(minutes(start, end), 11, STOCK)
        keep = np.random.default_rng(1).random(len(bars)) < 0.4
        sessions = oracle()
        regular = bars.time < sessions.close[np.searchsorted(sessions.open, bars.time, side="right") - 1]
        loud = np.where(regular, 1.0, 50.0)
        quiet = np.where(regular, 1.0, 0.02)
        return make(
            STOCK,
            Timeframe.M1,
            bars.time,
            bars.open * loud,
            bars.high * loud,
            bars.low * quiet,
            bars.close * quiet,
            bars.volume * loud,
        ).take(keep)


class TestBounds:
    @pytest.mark.parametrize("instrument", [CRYPTO, STOCK, FOREX])
    @pytest.mark.parametrize("timeframe", Timeframe)
    def test_every_minute_lies_in_its_bucket_and_buckets_do_not_overlap(
        self, instrument: Instrument, timeframe: Timeframe
    ) -> None:
        times = minutes("2024-12-27T00:00Z", "2025-01-14T00:00Z")

        start, end = bucket_bounds(instrument, timeframe, times)

        inside = start >= 0
        assert np.array_equal(inside, end >= 0)
        assert (start[inside] <= times[inside]).all()
        assert (times[inside] < end[inside]).all()
        buckets = sorted(set(zip(start[inside].tolist(), end[inside].tolist(), strict=True)))
        assert all(a[1] <= b[0] for a, b in pairwise(buckets))

    def test_the_bounds_of_a_time_do_not_depend_on_the_other_times(self) -> None:
        times = minutes("2024-12-27T00:00Z", "2025-01-14T00:00Z")[::37]
        for timeframe in (Timeframe.D1, Timeframe.W1):
            start, end = bucket_bounds(STOCK, timeframe, times)
            for at_time in range(0, len(times), 23):
                one = bucket_bounds(STOCK, timeframe, times[at_time : at_time + 1])
                assert (one[0][0], one[1][0]) == (start[at_time], end[at_time])

    def test_resampled_pieces_on_bucket_starts_merge_to_the_whole(self) -> None:
        bars = walk(minutes("2025-03-03T00:00Z", "2025-03-05T00:00Z"))
        cut = at("2025-03-04T00:00Z")
        for timeframe in (*LARGER, Timeframe.D1):
            parts = [resample(part, timeframe, FOREVER) for part in (bars.between(0, cut), bars.between(cut, FOREVER))]

            assert merge(*parts).same_as(resample(bars, timeframe, FOREVER))
