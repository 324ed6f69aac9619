"""Files that are too short to show their timeframe get that of the other files of the command, or are refused."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from openbell.desk.importing import FileReader, FileSeries, ImportOptions, read
from openbell.desk.importing.spacing import UnclearTimeframe
from openbell.market.errors import InvalidParameter
from openbell.market.instruments import parse
from openbell.market.timeframes import SHORT, Timeframe
from tests.desk.importing.files import NOW, Files, at, lines, times_of

HEADER = "timestamp,open,high,low,close,volume"
START = at("2024-09-02T00:00:00")
"""A Monday."""


def file_of(files: Files, name: str, *stamps: object) -> Path:
    return files.write(lines(HEADER, *(f"{stamp},10,12,9,11,100" for stamp in stamps)), name)


def every(seconds: int, first: int, count: int) -> list[str]:
    return [datetime.fromtimestamp(START + seconds * n, UTC).isoformat() for n in range(first, first + count)]


def read_all(paths: Sequence[Path], symbol: str | None = "BTC/USD") -> list[FileSeries]:
    """The series of all files of one command, in the order of the files."""
    reader = FileReader(ImportOptions(parse(symbol) if symbol else None), NOW)
    first = [reader.first(path) for path in paths]
    found = [reader.again(path) if each is None else each for path, each in zip(paths, first, strict=True)]
    return [series for some in found for series in some]


def timeframes(found: Sequence[FileSeries]) -> set[Timeframe]:
    return {series.bars.timeframe for series in found}


@pytest.mark.parametrize("timeframe", ["1m", "3m", "5m", "15m", "30m", "1h", "2h", "4h", "6h", "12h", "1d", "1w"])
@pytest.mark.parametrize("size", [1, 2])
def test_files_of_one_or_two_bars_each_have_the_timeframe_that_they_show_together(
    files: Files, timeframe: str, size: int
) -> None:
    length = SHORT[timeframe]
    paths = [file_of(files, f"{n}.csv", *every(length.seconds, n * size, size)) for n in range(20)]
    found = read_all(paths)
    assert timeframes(found) == {length}
    assert sum(len(series.bars) for series in found) == len(paths) * size


@pytest.mark.parametrize("timeframe", ["1m", "5m", "1h", "4h", "1d"])
def test_a_last_bar_in_a_file_of_its_own_has_the_timeframe_of_the_others(files: Files, timeframe: str) -> None:
    seconds = SHORT[timeframe].seconds
    last, others = file_of(files, "b.csv", *every(seconds, 12, 1)), file_of(files, "a.csv", *every(seconds, 0, 12))
    assert timeframes(read_all([last, others])) == {SHORT[timeframe]}


def test_the_last_week_in_a_file_of_its_own_is_a_week(files: Files) -> None:
    weeks = file_of(files, "a.csv", "2025-06-02", "2025-06-09", "2025-06-16", "2025-06-23")
    found = read_all([weeks, file_of(files, "b.csv", "2025-06-30")], "AAPL")
    assert timeframes(found) == {Timeframe.W1}
    assert times_of(found[1]) == ["2025-06-30 13:30"]


def test_a_day_of_several_symbols_in_each_file_stamped_with_midnight_in_new_york(files: Files) -> None:
    days = [day for n in range(12) if (day := date(2025, 9, 1) + timedelta(n)).weekday() < 5 and n]
    paths = []
    for day in days:
        rows = (f"{each},{day}T00:00:00-04:00,10,12,9,11,100" for each in ("AAPL", "KO", "MSFT"))
        paths.append(files.write(lines("ticker,timestamp,open,high,low,close,volume", *rows), f"{day}.csv"))
    found = read_all(paths, None)
    assert timeframes(found) == {Timeframe.D1}
    assert times_of(found[0]) == [f"{days[0]} 13:30"]


def test_one_bar_alone_is_refused_and_a_date_alone_is_a_day(files: Files) -> None:
    with pytest.raises(UnclearTimeframe, match=r"bars.csv: holds one bar, so the timeframe cannot be told"):
        read(file_of(files, "bars.csv", *every(3600, 5, 1)), ImportOptions(parse("BTC/USD")), NOW)
    assert timeframes(read_all([file_of(files, "day.csv", "2025-09-15")])) == {Timeframe.D1}


def test_one_bar_beside_files_of_two_timeframes_that_fit_is_refused(files: Files) -> None:
    hours, days = file_of(files, "h.csv", *every(3600, 0, 24)), file_of(files, "d.csv", *every(86400, 0, 12))
    with pytest.raises(UnclearTimeframe, match=r"one\.csv: holds one bar"):
        read_all([hours, days, file_of(files, "one.csv", *every(86400, 12, 1))])
    found = read_all([hours, days, file_of(files, "one.csv", *every(3600, 25, 1))])
    assert found[-1].bars.timeframe is Timeframe.H1, "no day begins at one o'clock"


def test_two_bars_with_a_gap_between_them_are_not_taken_for_longer_ones(files: Files) -> None:
    hours = file_of(files, "h.csv", *every(3600, 0, 24))
    apart = file_of(files, "apart.csv", *every(7200, 12, 2))
    assert timeframes(read_all([apart])) == {Timeframe.H2}
    with pytest.raises(UnclearTimeframe, match=r"which can be 2h bars \(--timeframe 2h\) or smaller ones with gaps"):
        read_all([hours, apart])
    both = read_all([file_of(files, "4h.csv", *every(14400, 0, 12)), apart])
    assert timeframes(both) == {Timeframe.H4, Timeframe.H2}, "bars of 4h are not at these times"


def test_files_of_one_month_each_are_refused_as_one_file_of_them_is(files: Files) -> None:
    paths = [file_of(files, f"{month}.csv", f"2025-{month:02}-03") for month in range(2, 8)]
    with pytest.raises(InvalidParameter, match="holds monthly bars"):
        read_all(paths)


def test_files_of_other_symbols_show_nothing(files: Files) -> None:
    hours = files.write(lines(f"symbol,{HEADER}", *(f"ETH/USD,{t},10,12,9,11,1" for t in every(3600, 0, 24))), "e.csv")
    with pytest.raises(UnclearTimeframe, match="holds one bar"):
        one = files.write(lines(f"symbol,{HEADER}", f"BTC/USD,{every(3600, 3, 1)[0]},10,12,9,11,1"), "b.csv")
        read_all([hours, one], None)
