"""Bars from a file: what is true arrives bit for bit, what is not is named by line and reason."""

from __future__ import annotations

import io
import os
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from openbell.desk import importing
from openbell.desk.importing import ImportOptions, read
from openbell.desk.importing.csv_rows import read_at_once, read_lines, sniff
from openbell.desk.importing.formats import recognise
from openbell.desk.importing.keys import zone_of
from openbell.desk.importing.layout import FIELDS, Sample
from openbell.desk.importing.rows import Faults
from openbell.desk.importing.series import assemble
from openbell.market import bars as barlib
from openbell.market.bars import MOST_VOLUME, PRICES, Bars
from openbell.market.errors import BadBars, InvalidParameter
from openbell.market.instruments import parse
from openbell.market.timeframes import Timeframe
from tests.desk.importing.files import NOW, reasons, rows_of

AAPL = parse("AAPL")
MINUTES = ImportOptions(AAPL, Timeframe.M1, zone_of("UTC"))
HEADER = ",".join(FIELDS)
FIRST = 31_536_000
"""1971."""
MILLISECONDS_FROM = 100_000_020
"""The first minute whose epoch in milliseconds has twelve digits; before it they read as seconds."""
GOOD = "2025-09-19T13:30:00Z,10,12,9,11,100"


def read_text(folder: Path, text: str | bytes, now: float = NOW, name: str = "bars.csv") -> Bars:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    (series,) = read(path, MINUTES, now)
    return series.bars


def read_table(folder: Path, table: pa.Table, now: float = NOW, name: str = "bars.parquet") -> Bars:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return read_text(folder, sink.getvalue(), now, name)


def csv_of(*rows: str) -> str:
    return "\n".join([HEADER, *rows]) + "\n"


def identical(a: Bars, b: Bars) -> bool:
    return all(x.tobytes() == y.tobytes() for x, y in zip(a.columns(), b.columns(), strict=True))


# Strategies

prices = st.floats(*PRICES)
volumes = st.floats(0, MOST_VOLUME)
minutes = st.integers(FIRST // 60, int(NOW) // 60 - 1).map(lambda minute: minute * 60)


@st.composite
def some_bars(draw: st.DrawFn, earliest: int = FIRST) -> Bars:
    several = st.lists(minutes.filter(lambda t: t >= earliest), min_size=1, max_size=12, unique=True)
    times = draw(several.filter(lambda found: len(found) == 1 or any(t % 3600 for t in found)))
    rows = []
    for time in sorted(times):
        low, a, b, high = sorted(draw(st.tuples(prices, prices, prices, prices)))
        opened, closed = (a, b) if draw(st.booleans()) else (b, a)
        rows.append((time, opened, high, low, closed, draw(volumes)))
    return barlib.make(AAPL, Timeframe.M1, *zip(*rows, strict=True))


def iso_in(zone: timezone) -> Callable[[int], str]:
    return lambda time: datetime.fromtimestamp(time, zone).isoformat()


def naive(time: int) -> str:
    return datetime.fromtimestamp(time, UTC).replace(tzinfo=None).isoformat()


zones = st.integers(-23 * 60, 23 * 60).map(lambda offset: timezone(timedelta(minutes=offset)))
ways_to_write: st.SearchStrategy[Callable[[int], str]] = st.one_of(
    zones.map(iso_in),
    st.sampled_from(
        [
            naive,
            lambda time: naive(time).replace("T", " "),
            lambda time: naive(time) + "Z",
            lambda time: naive(time) + ".000Z",
            lambda time: naive(time)[:16],
            str,
            lambda time: f"{time}.0",
            lambda time: str(time * 1000),
        ]
    ),
)


# Round trips


@settings(max_examples=150, deadline=None)
@given(data=st.data(), bars=some_bars(earliest=MILLISECONDS_FROM))
def test_what_is_written_as_csv_is_read_bit_for_bit(folder: Path, data: st.DataObject, bars: Bars) -> None:
    uniform = data.draw(st.booleans(), "one way to write times")
    way = data.draw(ways_to_write)
    order = data.draw(st.permutations(range(6)))
    header = [data.draw(st.sampled_from([name, name.upper(), f" {name.title()} "])) for name in FIELDS]
    header[0] = data.draw(st.sampled_from([header[0], "time", "Date", "datetime "]))
    rows = []
    for time, *values in rows_of(bars):
        written = (way if uniform else data.draw(ways_to_write))(time)
        rows.append([written, *map(repr, values)])
    rows += data.draw(st.lists(st.sampled_from(rows), max_size=3), "doubles")
    rows = data.draw(st.permutations(rows))
    end = data.draw(st.sampled_from(["\n", "\r\n", "\r"]))
    quote = data.draw(st.sampled_from(["", '"']))
    lines = [",".join(f"{quote}{cells[at]}{quote}" for at in order) for cells in [header, *rows]]
    text = data.draw(st.sampled_from(["", "\ufeff"])) + end.join(lines) + data.draw(st.sampled_from(["", end, end * 3]))

    assert identical(read_text(folder, text), bars)


@settings(max_examples=150, deadline=None)
@given(data=st.data(), bars=some_bars(earliest=MILLISECONDS_FROM))
def test_what_is_written_as_parquet_is_read_bit_for_bit(folder: Path, data: st.DataObject, bars: Bars) -> None:
    unit = data.draw(st.sampled_from(["s", "ms", "us", "ns"]))
    zone = data.draw(st.sampled_from([None, "UTC", "America/New_York"]))
    times = data.draw(
        st.sampled_from(
            [
                pa.array(bars.time.astype("datetime64[s]").astype(f"datetime64[{unit}]"), pa.timestamp(unit, zone)),
                pa.array(bars.time),
                pa.array(bars.time, pa.uint32()),
                pa.array(bars.time * 1000),
            ]
        )
    )
    order = data.draw(st.permutations(range(6)))
    table = pa.table(dict(zip(FIELDS, [times, *bars.columns()[1:]], strict=True)))
    table = table.select(order).take(data.draw(st.permutations(range(len(bars)))))

    assert identical(read_table(folder, table), bars)


def test_integers_and_small_floats_in_parquet_are_read_exactly(folder: Path) -> None:
    table = pa.table(
        {
            "Time": pa.array([1758288600], pa.int32()),
            "open": pa.array([10], pa.int8()),
            "high": pa.array([12.5], pa.float32()),
            "low": pa.array([9], pa.uint64()),
            "close": pa.array([11.25], pa.float16()),
            "volume": pa.array([2**40], pa.int64()),
        }
    )

    assert rows_of(read_table(folder, table)) == [(1758288600, 10.0, 12.5, 9.0, 11.25, float(2**40))]


@pytest.mark.parametrize("name", ["bars.parquet", "bars.csv", "bars"])
def test_parquet_is_known_by_its_content(folder: Path, name: str) -> None:
    table = pa.table({"timestamp": [1758288600], **{field: [1.0] for field in FIELDS[1:]}})

    assert len(read_table(folder, table, name=name)) == 1


@pytest.mark.parametrize(
    "time",
    [
        "2025-09-19T13:30:00Z",
        "2025-09-19T13:30:00",
        "2025-09-19 13:30",
        "2025-09-19T09:30:00-04:00",
        "2025-09-19T13:30:00.000Z",
        "1758288600",
        "1758288600.0",
        "1758288600000",
        "1758288600000000",
        "1758288600000000000",
        "20250919 13:30",
        "20250919133000",
        "19.09.2025 13:30",
        "9/19/2025 1:30 PM",
        "2025.09.19 13:30:00",
        "19-Sep-2025 13:30",
    ],
)
def test_a_clean_file_is_never_read_line_by_line(folder: Path, monkeypatch: pytest.MonkeyPatch, time: str) -> None:
    monkeypatch.delattr(importing, "read_lines")

    assert read_text(folder, csv_of(f"{time},10,12,9,11,100")).time.tolist() == [1758288600]


@pytest.mark.parametrize(
    "time",
    [
        "20250919T133000Z",
        "2025-09-19t13:30:00z",
        " 2025-09-19T13:30:00 ",
        "2025-09-19T13:30:00.000000000Z",
        "+1758288600",
    ],
)
def test_unusual_but_clear_times_are_read_too(folder: Path, time: str) -> None:
    assert read_text(folder, csv_of(f"{time},10,12,9,11,100")).time.tolist() == [1758288600]


numbers = """1 10 9.5 +1 -1 0 -0.0 .5 5. 1e1 1E+1 1e999 1e-999 nan -inf nan(1) 1_0 0x10 1,5 "1" " 1" １ NA null true
1758288600 1758288600000 1758288600.5 -1758288600 0x68CD5A98 1758288601 20250919 99999999999999999999""".split()
times = """2025-09-19T13:30:00Z 2025-09-19T13:30:00 2025-09-19T13:30 2025-09-19 2025-09-19T13 2025-09-19T13:30:00+0200
2025-09-19T13:30:00+02 2025-09-19T13:30:00+02:60 2025-09-19T13:30:00.5Z 2025-02-30T00:00:00 2025-09-19T24:00:00
2025-09-19T13:60:00 2025-09-19T13:30:60 0000-01-01 2025-09-19T13:30:00-23:59 2025-09-19T13:30:00.0000000""".split()
cells = st.one_of(
    st.sampled_from([*numbers, *times, "", " ", " 1 ", "\t1", "1 0", "\ufeff1", "2025-09-19 13:30"]),
    st.text(alphabet='0123456789-+.eE:TZ, "\n', max_size=22),
)


def with_cell(at: int, cell: str) -> str:
    return ",".join([*GOOD.split(",")[:at], cell, *GOOD.split(",")[at + 1 :]])


almost_good = st.builds(with_cell, st.integers(0, 6), cells)


@settings(max_examples=300, deadline=None)
@given(rows=st.lists(st.just(GOOD) | almost_good, max_size=3))
@example(rows=["0x68CD5A98,1,1,1,1,1"])
@example(rows=["1758288600,1,1,1,1,0x1"])
@example(rows=[GOOD, "", " ", GOOD.replace("Z", "")])
def test_the_fast_way_never_says_other_than_the_slow_one(rows: list[str]) -> None:
    text = sniff(csv_of(*rows).encode())
    try:
        _, layout = recognise(Sample("bars.csv", text.rows))
        found, faults = read_at_once(text, layout, None), Faults("row")
        assert found is not None
        fast = assemble(found, layout, MINUTES, faults, NOW)
        assert not faults.counts
    except (AssertionError, InvalidParameter):
        return
    slow = assemble(read_lines(text, layout, None, faults), layout, MINUTES, faults, NOW)

    assert not faults.counts
    assert [identical(a.bars, b.bars) for a, b in zip(fast, slow, strict=True)] == [True]


@settings(max_examples=150, deadline=None)
@given(content=st.binary(max_size=200) | st.text(max_size=200).map(lambda text: (HEADER + "\n" + text).encode()))
def test_any_content_at_all_is_bars_or_a_plain_refusal(folder: Path, content: bytes) -> None:
    for name in ("x.csv", "x.parquet"):
        try:
            read_text(folder, content, name=name)
        except (BadBars, InvalidParameter) as error:
            assert str(folder / name) in error.message


# Refused rows

BAD_ROWS = {
    "2025-09-19T13:30:00Z,ten,12,9,11,100": "unreadable number in open: 'ten'",
    "2025-09-19T13:30:00Z,1_0,12,9,11,100": "unreadable number in open: '1_0'",
    "2025-09-19T13:30:00Z,１０,12,9,11,100": "unreadable number in open: '１０'",
    '2025-09-19T13:30:00Z,10,12,9,11,"1,000"': "unreadable number in volume: '1,000'",
    "2025-09-19T13:30:00Z,10,,9,11,100": "missing value in high",
    ",10,12,9,11,100": "missing value in timestamp",
    ",,,,,": "missing value in timestamp",
    "2025-09-19T13:30:00Z,10,12,9,11": "5 values instead of 6",
    "2025-09-19T13:30:00Z,10,12,9,11,100,5": "7 values instead of 6",
    "2025-09-19T13:30:00Z,10,nan,9,11,100": "not finite",
    "2025-09-19T13:30:00Z,10,12,9,11,inf": "not finite",
    "2025-09-19T13:30:00Z,10,1e999,9,11,100": "not finite",
    "2025-09-19T13:30:00Z,10,12,0,11,100": "price not positive",
    "2025-09-19T13:30:00Z,10,12,-9,11,100": "price not positive",
    "2025-09-19T13:30:00Z,10,12,9,11,-1": "volume negative",
    "2025-09-19T13:30:00Z,10,9,12,11,100": "high below low",
    "2025-09-19T13:30:00Z,13,12,9,11,100": "open outside high and low",
    "2025-09-19T13:30:00Z,10,12,9,8,100": "close outside high and low",
    "2025-09-19T13:30:01Z,10,12,9,11,100": "time not on the minute",
    "2025-09-19T13:30:00.001Z,10,12,9,11,100": "time not on the minute",
    "2025-09-19T13:30:00.000000001Z,10,12,9,11,100": "time not on the minute",
    "1758288600001,10,12,9,11,100": "time not on the minute",
    "1758288600.5,10,12,9,11,100": "time not on the minute",
    "1970-12-31T23:59:00Z,10,12,9,11,100": "time before 1971",
    "0,10,12,9,11,100": "time before 1971",
    "20250931 13:30,10,12,9,11,100": "unreadable time '20250931 13:30'",
    "2025-10-09T08:55:00Z,10,12,9,11,100": "from the future",
    "1758288600000001,10,12,9,11,100": "time not on the minute",
    "1758288600000000001,10,12,9,11,100": "time not on the minute",
    "99999999960000,10,12,9,11,100": "from the future",
    "99999999999999999999,10,12,9,11,100": "from the future",
    "yesterday,10,12,9,11,100": "unreadable time 'yesterday'",
    "2025-09-19x13:30,10,12,9,11,100": "unreadable time '2025-09-19x13:30'",
    "2025-02-30T00:00:00Z,10,12,9,11,100": "unreadable time '2025-02-30T00:00:00Z'",
    "19/13/2025 13:30,10,12,9,11,100": "unreadable time '19/13/2025 13:30'",
    "19/09/25 13:30,10,12,9,11,100": "unreadable time '19/09/25 13:30'",
    "31.09.2025 13:30,10,12,9,11,100": "unreadable time '31.09.2025 13:30'",
    "0x68CD5A98,10,12,9,11,100": "unreadable time '0x68CD5A98'",
}


@pytest.mark.parametrize(("row", "reason"), BAD_ROWS.items())
def test_a_bad_row_is_named_by_line_and_reason(folder: Path, row: str, reason: str) -> None:
    with pytest.raises(BadBars) as alone:
        read_text(folder, csv_of(row))
    with pytest.raises(BadBars) as among_good:
        read_text(folder, csv_of("2025-09-18T13:30:00Z,10,12,9,11,100", "", row, GOOD.replace("30", "31")))

    assert reasons(alone.value) == [(2, reason)]
    assert reasons(among_good.value) == [(4, reason)]


def test_the_last_bar_is_left_out_until_it_has_closed(folder: Path) -> None:
    ends_now = csv_of("2025-10-09T08:52:00Z,10,12,9,11,100", "2025-10-09T08:53:00Z,10,12,9,11,100")

    assert len(read_text(folder, ends_now, now=NOW)) == 2
    (series,) = read(folder / "bars.csv", replace(MINUTES, zone=None), NOW - 0.001)
    assert rows_of(series.bars) == [(int(NOW) - 120, 10, 12, 9, 11, 100)]
    assert series.notes == ("the last bar, 2025-10-09T08:53:00+00:00, has not closed and was left out",)
    with pytest.raises(BadBars, match="from the future"):
        read_text(folder, ends_now, now=NOW - 60.001)


def test_a_file_of_one_bar_that_has_not_closed_is_refused(folder: Path) -> None:
    with pytest.raises(InvalidParameter, match=r"holds no bar that can be imported: .*the last bar.* has not closed"):
        read_text(folder, csv_of("2025-10-09T08:54:00Z,10,12,9,11,100"))


@pytest.mark.parametrize("nothing", ["", "null", "nan", "NaN", "N/A"])
def test_rows_without_prices_are_left_out_and_counted(folder: Path, nothing: str) -> None:
    empty = ["2025-09-19T13:31:00Z", *[nothing] * 4]
    rows = [GOOD, ",".join([*empty, "0"]), ",".join([*empty, nothing]).replace(":31", ":32")]

    assert len(read_text(folder, csv_of(*rows))) == 1
    (series,) = read(folder / "bars.csv", replace(MINUTES, zone=None), NOW)
    assert series.notes == ("2 rows have no prices and were left out",)


def test_a_row_with_some_prices_is_bad(folder: Path) -> None:
    with pytest.raises(BadBars, match="line 3: missing value in low"):
        read_text(folder, csv_of(GOOD, "2025-09-19T13:31:00Z,10,12,,11,100"))


def test_the_first_ten_are_listed_and_all_are_counted(folder: Path) -> None:
    rows = [f"2025-09-19T13:{minute:02}:00Z,10,{'x' if minute % 2 else 8},9,11,100" for minute in range(25)]

    with pytest.raises(BadBars) as refused:
        read_text(folder, csv_of(*rows))

    lines = refused.value.message.splitlines()
    assert lines[0] == f"{folder / 'bars.csv'}: 25 bad rows, so none was taken"
    assert [line.split(":")[0].strip() for line in lines[1:-1]] == [f"line {n}" for n in range(2, 12)]
    assert lines[-1].startswith("  and 15 more; in all ")
    assert {"13 × high below low", "12 × unreadable number"} == set(lines[-1].partition("in all ")[2].split(", "))
    assert refused.value.details["total"] == 25
    assert refused.value.details["reasons"] == {"high below low": 13, "unreadable number": 12}


def test_two_different_bars_of_one_minute_are_refused_by_both_lines(folder: Path) -> None:
    rows = [GOOD, "2025-09-19T13:31:00Z,10,12,9,11,5", "2025-09-19T15:30:00+02:00,10,12,9,11,101", GOOD]

    with pytest.raises(BadBars) as refused:
        read_text(folder, csv_of(*rows))

    assert reasons(refused.value) == [(4, "another bar of 2025-09-19T13:30:00+00:00 than line 2")]


def test_an_unclosed_quote_is_blamed_on_the_line_where_it_opens(folder: Path) -> None:
    with pytest.raises(BadBars) as refused:
        read_text(folder, csv_of(GOOD, '2025-09-19T13:31:00Z,"10,12,9,11,100', GOOD))

    assert reasons(refused.value) == [(3, "2 values instead of 6")]


def test_a_cell_without_end_is_refused(folder: Path) -> None:
    with pytest.raises(InvalidParameter, match="line 3 cannot be read"):
        read_text(folder, csv_of(GOOD, '"' + "1" * 200_000))


def test_bad_rows_of_parquet_are_named_by_row(folder: Path) -> None:
    table = pa.table(
        {
            "timestamp": pa.array([1758288600_000_000_000, None, 1758288600_000_000_001, 1758288660 * 10**9] * 4).cast(
                pa.timestamp("ns")
            ),
            "open": [10.0, 10.0, 10.0, None] * 4,
            "high": [12.0, 12.0, 12.0, 12.0] * 3 + [12.0, 12.0, 12.0, float("nan")],
            "low": [9.0] * 16,
            "close": [11.0] * 16,
            "volume": [100.0] * 16,
        }
    )

    with pytest.raises(BadBars) as refused:
        read_table(folder, table)

    assert refused.value.details["total"] == 12
    assert reasons(refused.value)[:3] == [
        (2, "missing value in timestamp"),
        (3, "time not on the minute"),
        (4, "missing value in open"),
    ]
    assert "\n  row 2: " in refused.value.message


def test_an_untrue_bar_of_parquet_is_named_by_row(folder: Path) -> None:
    times = pa.array([1758288600, 1758288660])
    table = pa.table(
        {"timestamp": times, "open": [1, 1], "high": [1, 3], "low": [1, 2], "close": [1, 2], "volume": [1, 1]}
    )

    with pytest.raises(BadBars) as refused:
        read_table(folder, table)

    assert reasons(refused.value) == [(2, "open outside high and low")]


# Refused files


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b" \r\n\n", "the file is empty"),
        (b"\xef\xbb\xbf", "the file is empty"),
        (HEADER.encode(), "the file names its columns but holds no bars"),
        (HEADER.encode() + b"\n\n \n", "the file names its columns but holds no bars"),
        (
            GOOD.encode(),
            "has no header, and its 6 columns are those of no known format: add a first line that names them",
        ),
        (
            b"time,open,high,low\n1,2,3,4\n",
            "missing column close, volume (the header names 'time', 'open', 'high', 'low'",
        ),
        (b"date," + HEADER.encode() + b"\n", "repeated column 'date', 'timestamp'"),
        (b"open," + HEADER.encode() + b"\n", "repeated column 'open', 'open'"),
        (HEADER.encode("utf-16-le"), "is neither text nor Parquet"),
        (b"\xff\xfe\x00\xd8", "begins like UTF-16 text but is none"),
        (HEADER.encode() + b"\n\x81\n", "is neither UTF-8 nor Windows text"),
        (b"[1, 2", "is not readable JSON"),
        (b'{"a": 1}', "is JSON, but no list of rows"),
        (b"[[1, 2], [1]]", "is JSON, but its rows are not of equal length"),
        (b"PAR1 but no more", "is not a readable Parquet file"),
        (b"\xc2\xa0\n", "missing column timestamp"),
    ],
)
def test_a_file_that_holds_no_bars_is_refused_in_one_line(folder: Path, content: bytes, said: str) -> None:
    with pytest.raises(InvalidParameter, match=re.escape(said)) as refused:
        read_text(folder, content)

    assert refused.value.message.startswith(str(folder / "bars.csv"))
    assert len(refused.value.message.splitlines()) == 1


def test_what_calls_itself_parquet_and_is_not_is_refused(folder: Path) -> None:
    with pytest.raises(InvalidParameter, match="is not a readable Parquet file"):
        read_text(folder, csv_of(GOOD), name="bars.parquet")


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("timestamp", pa.array([True]), "column timestamp holds 'bool'"),
        ("timestamp", pa.array([b"2025"]), "column timestamp holds 'binary'"),
        ("open", pa.array(["10"]), "column open holds 'string'"),
        ("close", pa.array([True]), "column close holds 'bool'"),
        ("symbol", pa.array(["MSFT"]), "holds bars of MSFT ('MSFT'), not of AAPL"),
        ("TIME", pa.array([1758288600]), "repeated column 'timestamp', 'time'"),
    ],
)
def test_parquet_of_other_columns_is_refused(folder: Path, column: str, values: pa.Array, said: str) -> None:
    table = {"timestamp": [1758288600], **{field: [1.0] for field in FIELDS[1:]}, column: values}

    with pytest.raises(InvalidParameter, match=re.escape(said)):
        read_table(folder, pa.table(table))


def test_parquet_without_rows_is_refused(folder: Path) -> None:
    table = pa.table(
        {"timestamp": pa.array([], pa.int64()), **{field: pa.array([], pa.float64()) for field in FIELDS[1:]}}
    )

    with pytest.raises(InvalidParameter, match="holds no bars"):
        read_table(folder, table)


def test_a_damaged_parquet_file_is_refused(folder: Path) -> None:
    table = pa.table({"timestamp": [1758288600] * 9, **{field: [1.0] * 9 for field in FIELDS[1:]}})
    sink = io.BytesIO()
    pq.write_table(table, sink, write_page_checksum=True, compression="none", use_dictionary=False)
    content = bytearray(sink.getvalue())
    content[content.index(np.ones(9).tobytes()) + 7] ^= 1

    with pytest.raises(InvalidParameter, match="is not a readable Parquet file"):
        read_text(folder, bytes(content))


def test_a_folder_a_device_and_a_missing_file_are_refused(folder: Path) -> None:
    for path, said in ((folder, "is a folder"), (Path(os.devnull), "is not a file"), (folder / "none", "no such file")):
        with pytest.raises(InvalidParameter, match=said):
            read(path, MINUTES, NOW)


def test_a_pipe_can_be_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(csv_of("2025-09-19T13:30:00Z,ten,12,9,11,100"),))
    writer.start()

    with pytest.raises(BadBars, match="line 2: unreadable number"):
        read(pipe, MINUTES, NOW)
    writer.join()
