"""The start of a lookback: early enough for the requested bars, on the start of a bucket, and not much too early."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from openbell.market.bars import bucket_bounds
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.lookback import bucket_start, lookback_start
from openbell.market.sessions import forex_open
from openbell.market.timeframes import Timeframe
from tests.market.calendar_groups import groups
from tests.market.new_york import Oracle, Times, oracle
from tests.market.walks import CRYPTO, DAY, FOREX, MINUTE, STOCK, at

FIXED = [timeframe for timeframe in Timeframe if not timeframe.of_days]
INTRADAY = [timeframe for timeframe in Timeframe if timeframe.intraday]
FIRST, LAST = at("2015-01-05T00:00Z"), at("2027-12-30T00:00Z")

ends = st.one_of(
    st.integers(FIRST // MINUTE, LAST // MINUTE).map(lambda minute: float(minute * MINUTE)),
    st.floats(FIRST, LAST),
)
small_counts = st.one_of(st.sampled_from([1, 2, 7, 13, 35, 78, 200, 390]), st.integers(1, 300))
large_counts = st.sampled_from([1000, 2999, 3000])


@cache
def sessions() -> Oracle:
    return oracle("2005-01-01", "2027-12-31")


@cache
def regular() -> Times:
    return sessions().regular_minutes()


def stock_bars(timeframe: Timeframe, start: float, end: float) -> int:
    """Returns the number of closed bars in [start, end) with a minute of regular hours; whole days and weeks only."""
    hours = sessions()
    if timeframe.intraday:
        low, high = np.searchsorted(regular(), (start, end))
        buckets = np.unique(regular()[low:high] // timeframe.seconds) * timeframe.seconds
        return int(((buckets >= start) & (buckets + timeframe.seconds <= end)).sum())
    if timeframe is Timeframe.D1:
        return int(((hours.open >= start) & (hours.close <= end)).sum())
    week = (hours.open - at("1970-01-05T00:00Z")) // (7 * DAY)
    firsts = np.flatnonzero(np.append(True, week[1:] != week[:-1]))
    lasts = np.append(firsts[1:], len(week)) - 1
    return int(((hours.open[firsts] >= start) & (hours.close[lasts] <= end)).sum())


def forex_bars(timeframe: Timeframe, start: int, end: float) -> int:
    """Returns the number of closed bars in [start, end) in which forex is open, sampled once per hour or per bar."""
    step = min(timeframe.seconds, 3600)
    if not timeframe.intraday:
        return sum(start <= each.start and each.end <= end for each in groups(AssetClass.FOREX, timeframe))
    buckets = {time - time % timeframe.seconds for time in range(start, int(end), step) if forex_open(time)}
    return sum(1 for bucket in buckets if bucket >= start and bucket + timeframe.seconds <= end)


def cuts_no_bucket(instrument: Instrument, timeframe: Timeframe, time: int) -> bool:
    """Returns True if no bucket has minutes both before and after `time`."""
    around = np.arange(time - 8 * DAY, time + 8 * DAY, MINUTE, dtype=np.int64)
    start, end = bucket_bounds(instrument, timeframe, around)
    return not ((start >= 0) & (start < time) & (end > time)).any()


class TestLookbackStart:
    @given(st.sampled_from(FIXED), st.one_of(small_counts, large_counts), ends)
    @settings(deadline=None, max_examples=150)
    def test_crypto_needs_exactly_that_long(self, timeframe: Timeframe, count: int, end: float) -> None:
        start = lookback_start(CRYPTO, timeframe, count, end)

        bucket = int(end - (end - (at("1970-01-05T00:00Z") if timeframe is Timeframe.W1 else 0)) % timeframe.seconds)
        assert start == bucket - count * timeframe.seconds

    @given(st.sampled_from(FIXED), small_counts, ends)
    @settings(deadline=None, max_examples=300)
    @example(Timeframe.M1, 390, at("2025-12-26T14:30Z"))  # the session before was a half day
    @example(Timeframe.M1, 390, at("2024-12-26T12:00Z"))
    @example(Timeframe.W1, 1, at("2025-09-18T15:00Z"))
    @example(Timeframe.W1, 2, at("2025-09-19T19:59Z"))
    @example(Timeframe.D1, 1, at("2025-09-22T13:30Z"))
    @example(Timeframe.H12, 100, at("2025-01-02T00:00Z"))
    def test_stocks_have_that_many_bars_in_regular_hours_alone(
        self, timeframe: Timeframe, count: int, end: float
    ) -> None:
        assert stock_bars(timeframe, lookback_start(STOCK, timeframe, count, end), end) >= count

    @given(st.sampled_from(INTRADAY[:6]), large_counts, ends)
    @settings(deadline=None, max_examples=150)
    @example(Timeframe.M1, 3000, at("2024-12-26T14:31Z"))
    @example(Timeframe.M1, 3000, at("2025-12-05T14:31Z"))
    def test_stocks_have_3000_bars_in_regular_hours_alone(self, timeframe: Timeframe, count: int, end: float) -> None:
        assert stock_bars(timeframe, lookback_start(STOCK, timeframe, count, end), end) >= count

    def test_at_every_session_of_a_year_with_half_days(self) -> None:
        hours = sessions()
        inside = (hours.open > at("2024-06-01T00:00Z")) & (hours.open < at("2025-12-31T00:00Z"))
        for opened, closed in zip(hours.open[inside].tolist(), hours.close[inside].tolist(), strict=True):
            for end in (opened, opened + MINUTE, closed, closed + 5 * 3600):
                for count in (210, 390, 3000):
                    assert stock_bars(Timeframe.M1, lookback_start(STOCK, Timeframe.M1, count, end), end) >= count, (
                        end,
                        count,
                    )

    @given(st.sampled_from(INTRADAY[:5]), st.integers(1, 3000), ends)
    @settings(deadline=None, max_examples=100)
    def test_stocks_reach_back_at_most_three_sessions_too_far(
        self, timeframe: Timeframe, count: int, end: float
    ) -> None:
        """Reading more history than needed costs requests."""
        found = stock_bars(timeframe, lookback_start(STOCK, timeframe, count, end), end)

        assert found <= count + 3 * 390 * MINUTE // timeframe.seconds + 3

    @given(st.sampled_from(FIXED), st.integers(1, 150), ends)
    @settings(deadline=None, max_examples=60)
    def test_forex_has_that_many_bars_in_its_open_hours(self, timeframe: Timeframe, count: int, end: float) -> None:
        assume(count * timeframe.seconds <= 400 * DAY)

        assert forex_bars(timeframe, lookback_start(FOREX, timeframe, count, end), end) >= count

    @given(st.sampled_from([CRYPTO, STOCK, FOREX]), st.sampled_from(Timeframe), small_counts, ends)
    @settings(deadline=None, max_examples=100)
    @example(STOCK, Timeframe.W1, 1, at("2025-09-18T15:00Z"))
    def test_cuts_no_bucket(self, instrument: Instrument, timeframe: Timeframe, count: int, end: float) -> None:
        start = lookback_start(instrument, timeframe, count, end)

        assert start < end
        assert cuts_no_bucket(instrument, timeframe, start)

    @given(st.sampled_from([CRYPTO, STOCK, FOREX]), st.sampled_from(Timeframe), st.integers(1, 200), ends)
    @settings(deadline=None, max_examples=60)
    def test_more_bars_never_begin_later(
        self, instrument: Instrument, timeframe: Timeframe, count: int, end: float
    ) -> None:
        assert lookback_start(instrument, timeframe, count + 1, end) <= lookback_start(
            instrument, timeframe, count, end
        )

    def test_begins_with_the_calendar_if_it_has_fewer_bars(self) -> None:
        assert lookback_start(STOCK, Timeframe.W1, 3000, at("2025-09-19T12:00Z")) <= at("2000-01-03T14:30Z")

    @pytest.mark.parametrize("timeframe", [Timeframe.M1, Timeframe.H1, Timeframe.D1, Timeframe.W1])
    def test_outside_the_calendars_years_it_is_not_after_the_end(self, timeframe: Timeframe) -> None:
        end = at("1980-06-05T15:00Z")

        assert lookback_start(STOCK, timeframe, 35, end) <= end


class TestBucketStart:
    @given(st.sampled_from([CRYPTO, STOCK, FOREX]), st.sampled_from(Timeframe), ends)
    @settings(deadline=None, max_examples=200)
    @example(STOCK, Timeframe.W1, at("2025-09-17T22:00Z"))  # Wednesday night: inside the week
    @example(STOCK, Timeframe.W1, at("2025-09-15T12:00Z"))  # Monday before the open: before the week
    @example(STOCK, Timeframe.W1, at("2025-09-20T12:00Z"))  # Saturday: after the week
    @example(STOCK, Timeframe.D1, at("2025-09-17T22:00Z"))
    @example(STOCK, Timeframe.D1, at("2025-09-17T15:00Z"))
    def test_is_the_latest_minute_that_cuts_no_bucket(
        self, instrument: Instrument, timeframe: Timeframe, epoch: float
    ) -> None:
        minute = int(epoch // MINUTE * MINUTE)
        start = bucket_start(instrument, timeframe, epoch)

        assert start <= minute
        assert cuts_no_bucket(instrument, timeframe, start)
        if start < minute:  # then the bucket that begins at `start` contains the minute
            bounds = bucket_bounds(instrument, timeframe, np.array([start], dtype=np.int64))
            assert bounds[0][0] == start
            assert bounds[1][0] > minute

    @pytest.mark.parametrize(
        ("epoch", "timeframe", "expected"),
        [
            ("2025-09-17T15:00Z", Timeframe.D1, "2025-09-17T13:30Z"),
            ("2025-09-17T22:00:30Z", Timeframe.D1, "2025-09-17T22:00Z"),
            ("2025-09-17T15:00Z", Timeframe.W1, "2025-09-15T13:30Z"),
            ("2025-09-17T22:00Z", Timeframe.W1, "2025-09-15T13:30Z"),
            ("2025-09-19T19:59Z", Timeframe.W1, "2025-09-15T13:30Z"),
            ("2025-09-19T20:00Z", Timeframe.W1, "2025-09-19T20:00Z"),
            ("2025-01-22T03:00Z", Timeframe.W1, "2025-01-21T14:30Z"),  # Monday was a holiday
            ("2025-01-01T15:00Z", Timeframe.W1, "2024-12-30T14:30Z"),  # the week includes New Year
            ("2025-09-17T15:17Z", Timeframe.H1, "2025-09-17T15:00Z"),
            ("2025-09-17T15:17Z", Timeframe.H4, "2025-09-17T12:00Z"),
        ],
    )
    def test_known_times_of_stocks(self, epoch: str, timeframe: Timeframe, expected: str) -> None:
        assert bucket_start(STOCK, timeframe, at(epoch)) == at(expected)
