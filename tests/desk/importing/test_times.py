"""Times in a file: zones, summer time, the order of day and month, formats by hand, units of epochs."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.desk.importing.keys import to_utc, zone_of
from openbell.desk.importing.patterns import compiled, parse
from openbell.desk.importing.stamps import formats_of
from openbell.market.errors import BadBars, InvalidParameter
from openbell.market.timeframes import Timeframe
from tests.desk.importing.files import Files, at, lines, reasons, times_of

HEADER = "timestamp,open,high,low,close,volume"


def file_of(*times: str, header: str = HEADER, by: str = ",") -> str:
    return lines(header.replace(",", by), *(by.join([time, "10", "12", "9", "11", "100"]) for time in times))


# Zones


def test_times_without_a_zone_are_utc_and_the_note_says_so(files: Files) -> None:
    found = files.one(file_of("2025-06-02 13:30", "2025-06-02 13:31"))

    assert times_of(found) == ["2025-06-02 13:30", "2025-06-02 13:31"]
    assert (found.zone, found.notes) == ("UTC", ("times without a zone were taken as UTC (--tz names another zone)",))


def test_a_zone_can_be_named_in_summer_and_winter(files: Files) -> None:
    found = files.one(file_of("2025-01-06 09:30", "2025-01-06 09:31", "2025-06-02 09:30"), tz="America/New_York")

    assert times_of(found) == ["2025-01-06 14:30", "2025-01-06 14:31", "2025-06-02 13:30"]
    assert (found.zone, found.notes) == ("America/New_York", ())


def test_a_stock_s_minutes_that_look_like_new_york_s_get_a_hint(files: Files) -> None:
    session = [f"2025-06-02 {minute // 60:02}:{minute % 60:02}" for minute in range(570, 960)]

    assert (
        "the times look like New York's: if they are, add --tz America/New_York" in files.one(file_of(*session)).notes
    )
    assert len(files.one(file_of(*session), symbol="BTC/USD").notes) == 1
    assert files.one(file_of(*session), tz="America/New_York").notes == ()


def test_the_hour_that_exists_twice_and_the_one_that_does_not_are_refused_by_line(files: Files) -> None:
    autumn = ["2025-11-02 00:59", "2025-11-02 01:00", "2025-11-02 01:59", "2025-11-02 02:00"]
    spring = ["2025-03-09 01:59", "2025-03-09 02:00", "2025-03-09 02:59", "2025-03-09 03:00"]

    with pytest.raises(BadBars) as twice:
        files.one(file_of(*autumn), tz="America/New_York", now=at("2026-01-01"))
    with pytest.raises(BadBars) as never:
        files.one(file_of(*spring), tz="America/New_York")

    assert reasons(twice.value) == [
        (3, "2025-11-02 01:00:00 exists twice in America/New_York, where summer time changes"),
        (4, "2025-11-02 01:59:00 exists twice in America/New_York, where summer time changes"),
    ]
    assert reasons(never.value) == [
        (3, "2025-03-09 02:00:00 does not exist in America/New_York, where summer time changes"),
        (4, "2025-03-09 02:59:00 does not exist in America/New_York, where summer time changes"),
    ]
    kept = [*autumn[:1], *autumn[3:]]
    assert times_of(files.one(file_of(*kept), tz="America/New_York", timeframe="1m", now=at("2026-01-01"))) == [
        "2025-11-02 04:59",
        "2025-11-02 07:00",
    ]


def test_a_zone_in_the_file_wins_over_the_option(files: Files) -> None:
    found = files.one(file_of("2025-06-02T13:30:00Z", "2025-06-02T09:31:00-04:00"), tz="Asia/Tokyo")

    assert times_of(found) == ["2025-06-02 13:30", "2025-06-02 13:31"]
    assert (found.zone, found.notes) == ("in the file", ("each time has its own zone, so --tz was not used",))


def test_dates_have_no_zone(files: Files) -> None:
    found = files.one(file_of("2025-06-02", "2025-06-03"), tz="Asia/Tokyo")

    assert times_of(found) == ["2025-06-02 13:30", "2025-06-03 13:30"]
    assert (found.zone, found.notes) == ("dates", ("dates have no zone, so --tz was not used",))


ZONES = [
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "Asia/Kolkata",
    "Pacific/Apia",
]


@settings(max_examples=200, deadline=None)
@given(
    name=st.sampled_from(ZONES) | st.sampled_from(sorted(available_timezones())),
    times=st.lists(st.integers(at("1975-01-01"), at("2037-01-01")), min_size=1, max_size=20),
)
def test_local_times_are_converted_as_zoneinfo_converts_them(name: str, times: list[int]) -> None:
    zone = ZoneInfo(name)
    local = np.array(times)

    utc, skipped, twice = to_utc(local, zone_of(name))

    for time, found, never, again in zip(times, utc.tolist(), skipped.tolist(), twice.tolist(), strict=True):
        wall = datetime.fromtimestamp(time, UTC).replace(tzinfo=zone)
        both = [wall.replace(fold=fold).timestamp() for fold in (0, 1)]
        real = datetime.fromtimestamp(both[0], zone).replace(tzinfo=None) == wall.replace(tzinfo=None)
        assert never == (not real)
        assert again == (real and both[0] != both[1])
        assert never or found == both[0]


@pytest.mark.parametrize(
    ("tz", "winter", "summer"),
    [
        ("America/New_York+7", "2025-01-05 22:00", "2025-03-09 21:00"),
        ("GMT+2", "2025-01-05 22:00", "2025-03-09 22:00"),
        ("UTC-5:30", "2025-01-06 05:30", "2025-03-10 05:30"),
        ("Etc/GMT+2", "2025-01-06 02:00", "2025-03-10 02:00"),  # the database counts westwards
    ],
)
def test_a_zone_can_have_an_offset(files: Files, tz: str, winter: str, summer: str) -> None:
    """On 10 March 2025, New York has summer time and Europe has not."""
    content = file_of("2025-01-06 00:00", "2025-01-06 00:01", "2025-03-10 00:00")

    found = files.one(content, tz=tz, symbol="EUR/USD", timeframe="1m")

    assert [times_of(found)[0], times_of(found)[-1]] == [winter, summer]
    assert (found.zone, found.notes) == (tz, ())


@pytest.mark.parametrize("tz", ["America/New_Yrok+7", "UTC+15", "UTC+2:75", "+2", "UTC+", "UTC+7+7"])
def test_an_offset_that_no_zone_has_is_refused(tz: str) -> None:
    with pytest.raises(InvalidParameter, match=r"is not a time zone: .* such as America/New_York\+7 or UTC\+2"):
        zone_of(tz)


def week(first: str, hours: int) -> list[str]:
    return [f"{datetime.fromtimestamp(at(first) + 3600 * n, UTC):%Y-%m-%d %H:%M}" for n in range(hours)]


def test_hours_of_currencies_from_monday_to_friday_get_a_hint_at_the_time_of_brokers(files: Files) -> None:
    broker = file_of(*week("2025-06-02", 120), *week("2025-06-09", 120))
    hint = "if it is, add --tz America/New_York+7"

    def hinted(content: str, **rest: str) -> bool:
        return any(note.endswith(hint) for note in files.one(content, **{"symbol": "EUR/USD", **rest}).notes)

    assert hinted(broker)
    assert not hinted(broker, tz="America/New_York+7")
    assert not hinted(broker, tz="UTC")
    assert not hinted(broker, symbol="BTC/USD")
    assert not hinted(broker.replace(":00,10", ":00Z,10"))
    assert not hinted(file_of(*week("2025-06-01 21:00", 120), *week("2025-06-08 21:00", 120))), "the hours are UTC"
    assert not hinted(file_of(*week("2025-06-02", 117), *week("2025-06-09", 117))), "days of London"
    found = files.one(broker, symbol="EUR/USD", tz="America/New_York+7")
    assert (times_of(found)[0], times_of(found)[-1]) == ("2025-06-01 21:00", "2025-06-13 20:00")


# Dates


@pytest.mark.parametrize(
    ("times", "first"),
    [
        (["06.05.2024", "07.05.2024"], "2024-05-06"),
        (["6.5.2024", "7.5.2024"], "2024-05-06"),
        (["05/06/2024", "05/07/2024", "05/13/2024"], "2024-05-06"),
        (["06/05/2024", "07/05/2024", "13/05/2024"], "2024-05-06"),
        (["5/6/2024", "5/7/2024", "5/8/2024", "5/31/2024"], "2024-05-06"),
        (["06-05-2024", "07-05-2024", "14-05-2024"], "2024-05-06"),
        (["2024/05/06", "2024/05/07"], "2024-05-06"),
        (["2024.05.06", "2024.05.07"], "2024-05-06"),
        (["20240506", "20240507"], "2024-05-06"),
        (["06-May-2024", "07-May-2024"], "2024-05-06"),
        (["6 May 2024", "7 May 2024"], "2024-05-06"),
        (["May 6, 2024", "May 7, 2024"], "2024-05-06"),
        (["September 3, 2024", "September 4, 2024"], "2024-09-03"),
    ],
)
def test_dates_as_countries_write_them(files: Files, times: list[str], first: str) -> None:
    found = files.one(file_of(*times, by=";"))

    assert found.bars.timeframe is Timeframe.D1
    assert times_of(found)[0] == f"{first} 13:30"


@pytest.mark.parametrize(
    "times",
    [
        ["06.05.2024 13:30", "06.05.2024 13:31"],
        ["06.05.2024 13:30:00", "06.05.2024 13:31:00"],
        ["5/6/2024 1:30 PM", "5/6/2024 1:31 PM", "5/13/2024 1:31 PM"],
        ["05/06/2024 01:30:00 PM", "05/06/2024 01:31:00 PM", "05/13/2024 12:31:00 AM"],
        ["5/6/2024 1:30PM", "5/6/2024 1:31PM", "5/13/2024 1:31PM"],
        ["06.05.2024 13:30:00.000 GMT+0000", "06.05.2024 13:31:00.000 GMT+0000"],
        ["06.05.2024 15:30:00 +0200", "06.05.2024 15:31:00 +0200"],
        ["20240506 133000", "20240506 133100"],
        ["20240506 1330", "20240506 1331"],
        ["20240506133000", "20240506133100"],
        ["2024-05-06 9:30", "2024-05-06 9:31"],
        ["2024-05-06T13:30:00.000+0000", "2024-05-06T13:31:00.000+0000"],
        ["1715002200", "1715002260"],
        ["1715002200000", "1715002260000"],
        ["1715002200000000", "1715002260000000"],
        ["1715002200000000000", "1715002260000000000"],
        ["1715002200.0", "1715002260.0"],
    ],
)
def test_times_of_day_as_programs_write_them(files: Files, times: list[str]) -> None:
    found = files.one(file_of(*times, by=";"), symbol="BTC/USD", timeframe="1m")

    expected = (
        ["2024-05-06 09:30", "2024-05-06 09:31"] if " 9:30" in times[0] else ["2024-05-06 13:30", "2024-05-06 13:31"]
    )
    assert times_of(found)[:2] == expected


def test_an_order_of_day_and_month_that_no_row_settles_is_refused_with_both_readings(files: Files) -> None:
    content = file_of("03/04/2024", "04/04/2024", "05/04/2024")

    with pytest.raises(InvalidParameter) as refused:
        files.one(content)

    assert refused.value.message.endswith(
        "'03/04/2024' can be 2024-03-04 (--date-format '%m/%d/%Y') or 2024-04-03 (--date-format '%d/%m/%Y'), "
        "and no row of the file tells which"
    )
    assert times_of(files.one(content, date_format="%d/%m/%Y"))[0] == "2024-04-03 13:30"
    assert (
        times_of(files.one(content, timeframe="1d", date_format="%m/%d/%Y", symbol="BTC/USD"))[0] == "2024-03-04 00:00"
    )
    settled = file_of("03/04/2024", "04/04/2024", "05/04/2024", "15/04/2024")
    assert times_of(files.one(settled))[0] == "2024-04-03 13:30"


def test_a_date_that_fits_neither_order_is_a_bad_row(files: Files) -> None:
    with pytest.raises(BadBars) as refused:
        files.one(file_of("13/05/2024", "14/05/2024", "05/15/2024"))

    assert reasons(refused.value) == [(4, "unreadable time '05/15/2024'")]


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("%d%m%y %H%M", "060524 1331"),
        ("%A, %d %B %Y %H:%M", "Monday, 06 May 2024 13:31"),
        ("%I:%M %p on %d.%m.%y", "01:31 PM on 06.05.24"),
        ("%Y-%m-%d %H:%M:%S %z", "2024-05-06 15:31:00 +0200"),
        ("%F %T", "2024-05-06 13:31:00"),
        ("%H:%M %d/%m/%Y", "13:31 06/05/2024"),
        ("100%% %Y|%m|%d %R", "100% 2024|05|06 13:31"),
    ],
)
def test_a_format_can_be_given_by_hand(files: Files, form: str, text: str) -> None:
    quoted = file_of(f'"{text}"')

    assert times_of(files.one(quoted, date_format=form)) == ["2024-05-06 13:31"]
    with pytest.raises(BadBars, match=re.escape("line 2: unreadable time '2024-05-06X'")):
        files.one(file_of("2024-05-06X"), date_format=form)


moments = st.integers(at("1971-01-02") // 60, at("2099-12-31") // 60).map(
    lambda minute: datetime.fromtimestamp(minute * 60, UTC).replace(tzinfo=None)
)


@settings(max_examples=300, deadline=None)
@given(
    moment=moments,
    form=st.sampled_from(
        [
            "%d.%m.%Y %H:%M",
            "%Y/%m/%d %H:%M:%S",
            "%m/%d/%Y %I:%M %p",
            "%d-%b-%Y %H:%M",
            "%Y%m%d %H%M%S",
            "%b %d, %Y %H:%M",
        ]
    ),
)
def test_every_form_that_is_recognised_is_read_as_strptime_reads_it(moment: datetime, form: str) -> None:
    text = moment.strftime(form)
    readings = [parse(pa.array([text]), compiled(each)) for each in formats_of(text)]
    seconds = int(moment.replace(tzinfo=UTC).timestamp())

    assert seconds in [int(reading.written[0]) for reading in readings if reading.readable[0]]
    assert datetime.strptime(text, form) == moment  # noqa: DTZ007
