"""The timeframe of a file is found by the spacing of its rows, and bars are keyed as the rest of the desk keys them."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from openbell.desk.importing.keys import open_of, session_days
from openbell.market.bars import bucket_bounds
from openbell.market.errors import BadBars, InvalidParameter
from openbell.market.instruments import parse
from openbell.market.sessions import FIRST_YEAR, eastern, session_on, sessions_of
from openbell.market.timeframes import SHORT, Timeframe, name_of
from tests.desk.importing.files import Files, at, lines, reasons, times_of

HEADER = "timestamp,open,high,low,close,volume"
MARKETS = ("AAPL", "BTC/USD", "EUR/USD")


def file_of(*times: str) -> str:
    return lines(HEADER, *(f"{time},10,12,9,11,100" for time in times))


def minutes_after(start: str, *offsets: int) -> str:
    first = datetime.fromisoformat(start)
    return file_of(*((first + timedelta(minutes=offset)).isoformat() for offset in offsets))


def weekdays(first: str, count: int) -> list[date]:
    days = (date.fromisoformat(first) + timedelta(days=n) for n in range(count * 2))
    return [day for day in days if session_on(day)][:count]


def trading_times(symbol: str, timeframe: Timeframe, days: int = 15) -> list[int]:
    """The starts of the buckets in which an instrument trades: nights, weekends and a holiday are missing."""
    start = int(datetime(2025, 6, 23, tzinfo=UTC).timestamp())  # Independence Day follows
    minutes = np.arange(start, start + days * 86400 * (5 if timeframe is Timeframe.W1 else 1), 60)
    if symbol == "AAPL":
        minutes = np.array(
            [m for m in minutes.tolist() if (s := session_on(eastern(m).date())) and s.open <= m < s.close]
        )
    if symbol == "EUR/USD":
        minutes = minutes[(minutes // 86400 + 3) % 7 < 5]
    starts = bucket_bounds(parse(symbol), timeframe, minutes)[0]
    found: list[int] = np.unique(starts[starts >= 0]).tolist()
    return found


# The regular hours of a stock fill one bar of 12 hours a day, which only --timeframe can tell from a day.
SERIES = [(symbol, each) for symbol in MARKETS for each in SHORT.values() if (symbol, each) != ("AAPL", Timeframe.H12)]


@pytest.mark.parametrize(
    ("symbol", "timeframe"), SERIES, ids=[f"{symbol} {name_of(each, SHORT)}" for symbol, each in SERIES]
)
def test_every_timeframe_is_found_in_every_market_also_with_missing_bars(
    files: Files, symbol: str, timeframe: Timeframe
) -> None:
    times = trading_times(symbol, timeframe)
    chance = np.random.default_rng(1)
    some = [time for time in times if chance.random() < 0.9] if len(times) > 40 else times

    for chosen in (times, some, some[::-1]):
        found = files.one(file_of(*map(str, chosen)), symbol=symbol)

        assert found.bars.timeframe is timeframe
        assert found.bars.time.tolist() == sorted(chosen)


@pytest.mark.parametrize("symbol", MARKETS)
def test_bars_have_the_keys_of_our_buckets(files: Files, symbol: str) -> None:
    days = file_of(*(f"2025-{m:02}-{d:02}" for m, d in [(3, 6), (3, 7), (3, 10), (3, 11), (7, 3), (7, 7), (9, 2)]))

    found = files.one(days, symbol=symbol)

    starts = bucket_bounds(found.bars.instrument, Timeframe.D1, found.bars.time)[0]
    assert found.bars.timeframe is Timeframe.D1
    assert starts.tolist() == found.bars.time.tolist()
    clock = [time[11:] for time in times_of(found)]
    winter, summer = {"AAPL": ("14:30", "13:30"), "EUR/USD": ("22:00", "21:00")}.get(symbol, ("00:00", "00:00"))
    assert clock == [winter] * 2 + [summer] * 5


@pytest.mark.parametrize(
    "writing",
    [
        "%Y-%m-%d",
        "%Y-%m-%d 00:00:00",
        "%Y-%m-%d 00:00:00{ny}",
        "%Y-%m-%d 09:30:00{ny}",
        "%Y-%m-%dT16:00:00{ny}",
        "%Y-%m-%dT00:00:00Z",
        "%Y-%m-%dT00:00:00+09:00",
        "%d.%m.%Y",
        "%m/%d/%Y",
        "%d-%b-%Y",
        "%Y%m%d",
    ],
)
def test_a_day_of_a_stock_is_its_session_however_the_date_is_written(files: Files, writing: str) -> None:
    days = weekdays("2025-02-20", 25)  # summer time begins in between
    offsets = [f"{datetime.fromtimestamp(session_on(day).open, UTC).hour - 9:+03d}:00" for day in days]  # type: ignore[union-attr]
    offsets = [f"-{offset[1:]}" for offset in offsets]
    texts = [day.strftime(writing.format(ny=offset)) for day, offset in zip(days, offsets, strict=True)]

    found = files.one(file_of(*texts))

    assert found.bars.timeframe is Timeframe.D1
    assert found.bars.time.tolist() == [session_on(day).open for day in days]  # type: ignore[union-attr]


def test_a_day_stamped_with_the_session_s_open_in_a_far_zone_is_that_session(files: Files) -> None:
    days = weekdays("2025-06-02", 10)
    texts = [f"{day + timedelta(days=1)}T01:30:00+12:00" for day in days]

    assert files.one(file_of(*texts)).bars.time.tolist() == [session_on(day).open for day in days]  # type: ignore[union-attr]


def test_midnights_of_a_zone_east_of_utc_are_of_their_own_date(files: Files) -> None:
    found = files.one(file_of("2025-06-04T00:00:00+09:00", "2025-06-05T00:00:00+09:00"))

    assert times_of(found) == ["2025-06-04 13:30", "2025-06-05 13:30"]


@pytest.mark.parametrize("stamp", ["2025-06-{:02}", "2025-06-{:02}T13:30:00Z"])
def test_a_week_of_a_stock_begins_with_its_first_session(files: Files, stamp: str) -> None:
    by_day = {"monday": (2, 9, 16, 23), "friday": (6, 13, 20, 27)}
    for dates in by_day.values():
        found = files.one(file_of(*(stamp.format(day) for day in dates)))

        assert found.bars.timeframe is Timeframe.W1
        assert times_of(found) == [f"2025-06-{day:02} 13:30" for day in (2, 9, 16, 23)]
    holidays = files.one(file_of("2025-05-19", "2025-05-26", "2025-06-02"))  # 26 May: no session
    assert times_of(holidays)[1] == "2025-05-27 13:30"


def test_weeks_dated_on_sundays_are_refused_with_both_readings(files: Files) -> None:
    with pytest.raises(
        InvalidParameter, match=r"2025-06-01, a Sunday, which can be the first or the last day of a week"
    ):
        files.one(file_of("2025-06-01", "2025-06-08", "2025-06-15"))


def test_weeks_and_days_that_begin_elsewhere_are_refused(files: Files) -> None:
    thursdays = file_of("2025-06-05", "2025-06-12", "2025-06-19")
    new_york = file_of(*(f"2025-06-{day:02}T17:00:00-04:00" for day in (2, 3, 4, 5)))

    with pytest.raises(
        InvalidParameter, match=r"1w bars that begin at Thursday 00:00 UTC, but those of .* at Monday 00:00"
    ):
        files.one(thursdays, symbol="BTC/USD")
    with pytest.raises(
        InvalidParameter, match=r"1d bars that begin at 21:00 UTC, but those of .* begin at 00:00 UTC here"
    ):
        files.one(new_york, symbol="BTC/USD")


@pytest.mark.parametrize(
    ("times", "refusal"),
    [
        (
            ["2025-06-05", "2025-06-12", "2025-06-19"],
            "1w bars dated 2025-06-05, a Thursday, .* the date of its Monday",
        ),
        (["2025-06-01", "2025-06-08", "2025-06-15"], "1w bars dated 2025-06-01, a Sunday"),
        (
            ["2025-06-05", "2025-06-06", "2025-06-08", "2025-06-09"],
            "1d bars dated 2025-06-08, a Sunday, .* from Monday to Friday",
        ),
        (
            ["2025-06-03T00:00:00Z", "2025-06-04T00:00:00Z", "2025-06-05T00:00:00Z"],
            "begin at 00:00 UTC, .* begin at 21:00 UTC",
        ),
        (
            ["2025-06-07T00:00:00Z", "2025-06-08T00:00:00Z", "2025-06-09T00:00:00Z"],
            "begin at 00:00 UTC, .* begin at 21:00 UTC",
        ),
        (
            ["2025-01-06T00:00:00Z", "2025-01-13T00:00:00Z", "2025-01-20T00:00:00Z"],
            "Monday 00:00 UTC, .* Sunday 22:00 UTC",
        ),
        (
            ["2025-06-02T21:00:00Z", "2025-06-03T22:00:00Z", "2025-06-04T21:00:00Z"],
            "begin at 22:00 UTC, .* begin at 21:00 UTC",
        ),
    ],
)
def test_days_and_weeks_of_currencies_that_begin_elsewhere_are_refused(
    files: Files, times: list[str], refusal: str
) -> None:
    with pytest.raises(InvalidParameter, match=f"{refusal}.*import bars of 1h or less"):
        files.one(file_of(*times), symbol="EUR/USD")


@pytest.mark.parametrize("writing", ["%Y-%m-%d", "%Y.%m.%d 00:00", "%d.%m.%Y", "new york", "utc"])
def test_a_day_of_a_currency_is_the_trading_day_of_its_date(files: Files, writing: str) -> None:
    days = weekdays("2025-02-20", 25)  # summer time begins in between
    ends = [datetime(day.year, day.month, day.day, 17, tzinfo=ZoneInfo("America/New_York")) for day in days]
    opens = [(end - timedelta(days=1)).astimezone(UTC) for end in ends]  # New York's clock shows 17:00 then too
    written = {
        "new york": [f"{end - timedelta(days=1):%Y-%m-%dT%H:%M:%S%z}" for end in ends],
        "utc": list(map(str, opens)),
    }

    found = files.one(file_of(*written.get(writing, [f"{day:{writing}}" for day in days])), symbol="EUR/USD")

    assert found.bars.timeframe is Timeframe.D1
    assert found.bars.time.tolist() == [int(opened.timestamp()) for opened in opens]


def test_a_week_of_a_currency_is_that_of_its_monday(files: Files) -> None:
    dates = files.one(file_of("2025-03-03", "2025-03-10", "2025-03-17"), symbol="EUR/USD")
    times = files.one(file_of(*(f"{time}:00Z" for time in times_of(dates))), symbol="EUR/USD")

    assert dates.bars.timeframe is times.bars.timeframe is Timeframe.W1
    assert times_of(dates) == times_of(times) == ["2025-03-02 22:00", "2025-03-09 21:00", "2025-03-16 21:00"]


def test_a_day_of_a_currency_that_has_not_ended_is_left_out(files: Files) -> None:
    found = files.one(file_of("2025-06-04", "2025-06-05", "2025-06-06"), symbol="EUR/USD", now=at("2025-06-06T20:59"))

    assert times_of(found) == ["2025-06-03 21:00", "2025-06-04 21:00"]
    assert "2025-06-05T21:00:00+00:00, has not closed" in found.notes[-1]


def test_a_date_without_a_session_is_a_bad_row(files: Files) -> None:
    days = ["2025-07-02", "2025-07-03", "2025-07-04", "2025-07-05", "2025-07-07"]

    with pytest.raises(BadBars) as refused:
        files.one(file_of(*days))

    assert reasons(refused.value) == [
        (4, "no session of US stocks on 2025-07-04, a Friday"),
        (5, "no session of US stocks on 2025-07-05, a Saturday"),
    ]
    assert len(files.one(file_of(*days), symbol="BTC/USD").bars) == 5


def test_days_before_the_calendar_are_left_out_and_counted(files: Files) -> None:
    found = files.one(file_of("1970-12-30", "1970-12-31", f"{FIRST_YEAR}-01-04", f"{FIRST_YEAR}-01-05"))

    assert times_of(found) == ["1971-01-04 14:30", "1971-01-05 14:30"]
    assert found.notes == ("2 rows before 1971 were left out: the calendar of sessions begins in 1971",)


def test_the_opens_of_sessions_equal_those_of_the_calendar() -> None:
    expected = [session for year in range(2000, 2031) for session in sessions_of(year)]
    days = session_days(11000, 22200)
    days = days[days < 22280]

    assert days.tolist() == [session.day.toordinal() - date(1970, 1, 1).toordinal() for session in expected]
    assert open_of(days).tolist() == [session.open for session in expected]


def test_a_weekly_file_whose_last_row_is_of_today_is_weekly(files: Files) -> None:
    weeks = [f"2025-{month:02}-{day:02}" for month, day in ((9, 8), (9, 15), (9, 22), (9, 29), (10, 6), (10, 7))]

    found = files.one(file_of(*weeks))

    assert found.bars.timeframe is Timeframe.W1
    assert times_of(found)[-1] == "2025-09-29 13:30"
    with pytest.raises(InvalidParameter, match="holds monthly bars"):
        files.one(file_of("2025-06-02", "2025-07-01", "2025-08-01", "2025-09-02", "2025-10-01", "2025-10-02"))


def test_a_stock_that_trades_seldom_has_days_too(files: Files) -> None:
    days = ["2025-09-02", "2025-09-05", "2025-09-08", "2025-09-10", "2025-09-11", "2025-09-15"]

    assert files.one(file_of(*days)).bars.timeframe is Timeframe.D1


# What cannot be told

SESSIONS = [day * 1440 + minute for day in (0, 1, 2, 3, 4, 7) for minute in range(0, 390, 5)]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (file_of("2025-01-31", "2025-02-28", "2025-03-31", "2025-04-30"), "holds monthly bars: import takes 1m, 3m"),
        (file_of("2025-03-31", "2025-06-30", "2025-09-30"), "holds quarterly bars"),
        (file_of("2022-12-30", "2023-12-29", "2024-12-31"), "holds yearly bars"),
        (file_of("2025-09-01", "2025-09-04", "2025-09-10"), "3 days apart or more, none closer"),
        (minutes_after("2025-09-15T13:30:00", *range(0, 4500, 45)), "holds bars of 45 minutes"),
        (minutes_after("2025-09-15T13:30:00", *range(0, 7000, 7)), "holds bars of 7 minutes"),
        (minutes_after("2025-09-15T00:00:00", *range(0, 14400, 180)), "holds bars of 3 hours"),
        (minutes_after("2025-09-15T00:00:00", *range(0, 28800, 480)), "holds bars of 8 hours"),
        (
            minutes_after("2025-09-15T13:30:00", 0, 5, 20),
            "3 bars 5 minutes apart, which can be 5m bars (--timeframe 5m) or minutes with gaps (--timeframe 1m)",
        ),
        (minutes_after("2025-09-15T13:30:00", 0, 30), "which can be 30m bars (--timeframe 30m) or minutes with gaps"),
        (file_of("2025-09-15T13:30:00"), "holds one bar, so the timeframe cannot be told: add --timeframe (1m, 3m"),
        (
            minutes_after("2025-09-15T13:30:00", 0, 10, 25),
            "3 bars at multiples of 5 minutes, so the timeframe cannot be told: add --timeframe (1m, 5m)",
        ),
        (minutes_after("2025-09-15T00:00:00", 0, 600, 1500, 2100, 3300), "the timeframe cannot be told"),
        (
            minutes_after("2025-09-15T13:30:00", *SESSIONS, SESSIONS[-1] + 1),
            "holds bars of 5 minutes, but also one at 2025-09-22T19:56:00Z, 1 minute after another",
        ),
    ],
)
def test_odd_and_ambiguous_spacing_is_refused_with_what_was_found(files: Files, content: str, said: str) -> None:
    with pytest.raises(InvalidParameter, match=re.escape(said)) as refused:
        files.one(content, symbol="BTC/USD")

    assert len(refused.value.message.splitlines()) == 1


@pytest.mark.parametrize(
    "content",
    [
        file_of("2025-09-19T13:31:00"),
        minutes_after("2025-09-19T13:30:00", 0, 1),
        minutes_after("2025-09-19T13:30:00", 0, 14, 49),
        minutes_after("2025-09-19T13:30:00", 0, 5, 10, 11),
        minutes_after("2025-09-15T00:00:00", 0, 60, 120, 180, 241),
        minutes_after("2025-09-15T13:37:00", 0, 1440, 2881, 4320),
        minutes_after("2025-09-15T13:30:00", *range(390), *range(1440, 1830)),
    ],
)
def test_minutes_with_gaps_are_minutes(files: Files, content: str) -> None:
    found = files.one(content)

    assert found.bars.timeframe is Timeframe.M1
    assert len(found.bars) == len(content.splitlines()) - 1


@pytest.mark.parametrize("seed", range(40))
def test_minutes_of_a_thing_that_trades_seldom_are_minutes(files: Files, seed: int) -> None:
    chance = np.random.default_rng(seed)
    offsets = np.unique(chance.integers(0, 10_000, size=int(chance.integers(5, 60))))

    found = files.one(minutes_after("2025-09-15T00:00:00", *offsets.tolist()))

    assert found.bars.timeframe is Timeframe.M1


def test_bars_that_begin_at_half_past_are_refused_with_what_to_do(files: Files) -> None:
    hours = [f"{day}T{hour:02}:30:00-04:00" for day in weekdays("2025-06-02", 5) for hour in range(9, 16)]
    four_hours = [f"{day}T{hour}:00-04:00" for day in weekdays("2025-06-02", 25) for hour in ("09:30", "13:30")]

    with pytest.raises(InvalidParameter) as refused:
        files.one(file_of(*hours))
    with pytest.raises(InvalidParameter, match="holds 4h bars that begin at 13:30 UTC"):
        files.one(file_of(*four_hours))

    assert refused.value.message.endswith(
        "holds 1h bars that begin at 13:30 UTC, but 1h bars begin at multiples of 1h from midnight UTC here: "
        "import minutes (1m) or 30m bars, from which larger bars are built"
    )
    half_hours = [
        f"{day}T{hour:02}:{half}:00-04:00"
        for day in weekdays("2025-06-02", 5)
        for hour in range(10, 16)
        for half in ("00", "30")
    ]
    assert files.one(file_of(*half_hours)).bars.timeframe is Timeframe.M30


def test_four_hours_of_new_york_across_the_change_of_summer_time_are_no_hours(files: Files) -> None:
    days = weekdays("2025-02-20", 25)
    content = file_of(*(f"{day} {hour}" for day in days for hour in ("08:00", "12:00", "16:00")))

    with pytest.raises(InvalidParameter, match="holds 4h bars that begin at 13:00 UTC"):
        files.one(content, tz="America/New_York")


# --timeframe


def test_the_timeframe_can_be_named_and_is_checked(files: Files) -> None:
    fives = minutes_after("2025-09-15T13:30:00", *range(0, 100, 5))
    days = file_of("2025-09-15", "2025-09-16")

    assert files.one(fives, timeframe="1m").bars.timeframe is Timeframe.M1
    assert files.one(minutes_after("2025-09-15T13:30:00", 0, 5, 20), timeframe="5m").bars.timeframe is Timeframe.M5
    assert (
        files.one(file_of("2025-09-01", "2025-09-04", "2025-09-10"), "d.csv", "BTC/USD", timeframe="1d").bars.timeframe
        is Timeframe.D1
    )
    for timeframe, content, said in (
        ("15m", fives, "holds 15m bars that begin at 13:35 UTC"),
        ("1d", fives, "holds bars that are 5 minutes apart, so they are no 1d bars"),
        ("1h", days, "has dates without a time of day, so it does not hold 1h bars"),
        ("1m", days, "has dates without a time of day, so it does not hold 1m bars"),
    ):
        with pytest.raises(InvalidParameter, match=re.escape(said)):
            files.one(content, timeframe=timeframe)
    with pytest.raises(BadBars, match="another bar of 2025-09-15"):
        files.one(days.replace("11,100\n", "11,99\n", 1), timeframe="1w")


def test_a_few_rows_off_the_grid_are_named_by_line(files: Files) -> None:
    rows = minutes_after("2025-09-15T13:30:00", *range(0, 100, 5), 102).splitlines()

    with pytest.raises(BadBars) as refused:
        files.one(lines(*rows), timeframe="5m")

    assert reasons(refused.value) == [(22, "time not at a multiple of 5m")]


def test_the_bar_of_today_s_session_is_left_out_until_the_close(files: Files) -> None:
    content = file_of("2025-10-07", "2025-10-08", "2025-10-09")
    close = session_on(date(2025, 10, 9)).close  # type: ignore[union-attr]

    before, after = files.one(content, now=close - 1), files.one(content, now=close)

    assert times_of(before) == ["2025-10-07 13:30", "2025-10-08 13:30"]
    assert before.notes == ("the last bar, 2025-10-09T13:30:00+00:00, has not closed and was left out",)
    assert len(after.bars) == 3
    assert len(files.one(content, now=close - 8 * 3600).bars) == 2, "before the opening bell"
    with pytest.raises(BadBars, match="line 4: from the future"):
        files.one(content, now=close - 86400)
    week = files.one(file_of("2025-09-22", "2025-09-29", "2025-10-06"), now=close)
    assert times_of(week) == ["2025-09-22 13:30", "2025-09-29 13:30"]
