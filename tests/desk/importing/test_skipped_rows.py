"""`--skip-bad`: rows that cannot be bars are left out and listed; the others are imported."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openbell.desk.importing import FileSeries, ImportOptions, read
from openbell.desk.importing.keys import zone_of
from openbell.market.errors import BadBars
from openbell.market.instruments import parse
from openbell.market.timeframes import Timeframe
from tests.desk.importing.files import NOW, Files, lines, times_of

YAHOO = "Date,Open,High,Low,Close,Adj Close,Volume"
DAYS = ("2024-07-02", "2024-07-03", "2024-07-04", "2024-07-05", "2024-07-06", "2024-07-08", "2024-07-09", "2024-07-10")
"""With Independence Day, a Thursday, and a Saturday."""
STOCK, CRYPTO = ImportOptions(parse("AAPL"), skip_bad=True), ImportOptions(parse("BTC/USD"), skip_bad=True)


def only(files: Files, text: str, options: ImportOptions) -> FileSeries:
    with pytest.raises(BadBars):
        read(files.write(text), replace(options, skip_bad=False), NOW)
    (found,) = read(files.write(text), options, NOW)
    return found


def test_rows_of_holidays_are_left_out_and_named(files: Files) -> None:
    found = only(files, lines(YAHOO, *(f"{day},10,12,9,11,11,100" for day in DAYS)), STOCK)
    assert [each[:10] for each in times_of(found)] == [day for day in DAYS if day not in {"2024-07-04", "2024-07-06"}]
    assert "\n".join(found.notes).splitlines() == [
        "2 bad rows skipped:",
        "  line 4: no session of US stocks on 2024-07-04, a Thursday",
        "  line 6: no session of US stocks on 2024-07-06, a Saturday",
    ]


def test_the_repeated_hour_of_autumn_is_left_out_and_named(files: Files) -> None:
    hours = [f"2024-11-03 {hour:02}:00:00" for hour in (0, 1, 1, 2, 3, 4, 5, 6, 7)]
    rows = [f"{time},10,12,9,{10 + n % 3},100" for n, time in enumerate(hours)]
    options = replace(CRYPTO, zone=zone_of("America/New_York"), timeframe=Timeframe.H1)
    found = only(files, lines("timestamp,open,high,low,close,volume", *rows), options)
    assert len(found.bars) == 7
    assert found.notes[-1].splitlines() == [
        "2 bad rows skipped:",
        "  line 3: 2024-11-03 01:00:00 exists twice in America/New_York, where summer time changes",
        "  line 4: 2024-11-03 01:00:00 exists twice in America/New_York, where summer time changes",
    ]


def test_unreadable_and_impossible_rows_and_second_bars_of_a_time_are_left_out(files: Files) -> None:
    good = [f"2025-09-19T13:{30 + n}:00Z,10,12,9,11,{n}" for n in range(10)]
    bad = ["2025-09-19T13:41:00Z,ten,12,9,11,1", "2025-09-19T13:42:00Z,10,8,9,11,1", "2025-09-19T13:30:00Z,10,12,9,9,7"]
    found = only(files, lines("timestamp,open,high,low,close,volume", *good, *bad), STOCK)
    assert found.bars.volume.tolist() == list(range(10))
    assert "3 bad rows skipped:\n  line 12: unreadable number in open: 'ten'\n  line 13: " in found.notes[-1]
    assert found.notes[-1].endswith("another bar of 2025-09-19T13:30:00+00:00 than line 2")


def test_a_file_of_mostly_bad_rows_is_refused_all_the_same(files: Files) -> None:
    rows = [f"2025-09-19T13:{30 + n}:00Z,10,{12 if n < 3 else 1},9,11,{n}" for n in range(10)]
    with pytest.raises(
        BadBars, match="7 bad rows, so none was taken; --skip-bad leaves out at most half of the 10 rows"
    ):
        read(files.write(lines("timestamp,open,high,low,close,volume", *rows)), STOCK, NOW)
