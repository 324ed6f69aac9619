"""How files are packed, encoded and delimited, and how their symbols are named."""

from __future__ import annotations

import gzip
import io
import zipfile
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import feather

from openbell.desk.importing import ImportOptions, content, expand, read
from openbell.market.errors import BadBars, InputError, InvalidParameter
from openbell.market.instruments import parse
from openbell.market.timeframes import SHORT
from tests.desk.importing.files import NOW, Files, lines, rows_of, times_of

HEADER = "timestamp,open,high,low,close,volume"
ROWS = ["2025-09-19T13:30:00Z,10,12.5,9,11,100", "2025-09-19T13:31:00Z,10,12.5,9,11,100"]
PLAIN = lines(HEADER, *ROWS)
LABELLED = lines(f"symbol,{HEADER}", *(f"AAPL,{row}" for row in ROWS))


def zipped(**members: str | bytes) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "."), content)
    return sink.getvalue()


def test_packed_files_are_unpacked(files: Files) -> None:
    plain = rows_of(files.one(PLAIN).bars)
    packed = gzip.compress(PLAIN.encode())

    assert rows_of(files.one(packed, "bars.csv.gz").bars) == plain
    assert rows_of(files.one(packed, "named-otherwise.csv").bars) == plain
    assert rows_of(files.one(zipped(bars__csv=PLAIN), "bars.zip").bars) == plain
    assert rows_of(files.one(zipped(bars__csv__gz=packed), "bars.zip").bars) == plain
    assert rows_of(files.one(gzip.compress(PLAIN.encode()[:50]) + gzip.compress(PLAIN.encode()[50:])).bars) == plain


def test_a_small_file_that_unpacks_to_a_huge_one_is_refused(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "MOST_BYTES", 2**20)
    large = PLAIN + "x" * 2**20
    for packed, name in ((gzip.compress(large.encode()), "bars.csv.gz"), (zipped(bars__csv=large), "bars.zip")):
        with pytest.raises(InvalidParameter, match="unpacks to more than 1 MB: split it"):
            files.one(packed, name)


def test_a_zip_file_may_have_many_members(files: Files) -> None:
    other = LABELLED.replace("AAPL", "MSFT")
    found = files.series(zipped(a__csv=LABELLED, b__csv=other, **{"__MACOSX/._a.csv": b"\0"}), "two.zip", symbol=None)

    assert [str(each.bars.instrument) for each in found] == ["AAPL", "MSFT"]
    assert [each.file.rpartition(": ")[2] for each in found] == ["a.csv", "b.csv"]
    with pytest.raises(BadBars, match=r"two\.zip: b\.csv: 1 bad row"):
        files.series(zipped(a__csv=LABELLED, b__csv=other.replace(",9,", ",99,", 1)), "two.zip", symbol=None)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (gzip.compress(PLAIN.encode())[:-9], "is not a readable gzip file"),
        (b"\x1f\x8b but no more", "is not a readable gzip file"),
        (zipped(a__csv=PLAIN)[:-30], "is not a readable zip file"),
        (b"PK\x03\x04 but no more", "is not a readable zip file"),
        (zipped(**{"[Content_Types].xml": "x", "xl/workbook.xml": "x"}), "is an Office document"),
        (zipped(**{"folder/": b""}), "the zip file holds no file"),
        (zipped(a__csv=""), "a.csv: the file is empty"),
    ],
    ids=["cut gzip", "no gzip", "cut zip", "no zip", "workbook", "no member", "empty member"],
)
def test_a_damaged_archive_is_refused_in_one_line(files: Files, content: bytes, said: str) -> None:
    with pytest.raises(InvalidParameter, match=said.replace("(", r"\(")) as refused:
        files.series(content, "x.zip")

    assert len(refused.value.message.splitlines()) == 1


def test_globs_are_expanded_and_no_file_comes_twice(files: Files) -> None:
    paths = [files.write(PLAIN, name) for name in ("b.csv", "a.csv", "c.txt", "[x].csv")]

    found = expand([str(files.folder / "?.csv"), str(paths[0]), str(paths[2]), str(paths[3])])

    assert [path.name for path in found] == ["a.csv", "b.csv", "c.txt", "[x].csv"]
    assert expand([str(files.folder / "none.csv")]) == [files.folder / "none.csv"]
    with pytest.raises(InvalidParameter, match="no file has a name of this form"):
        expand([str(files.folder / "*.parquet")])


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_encodings_and_line_ends(files: Files, delimiter: str, encoding: str, end: str) -> None:
    content = PLAIN.replace("volume", "volume,Prämie").replace(",100\n", ",100,ü\n").replace(",", delimiter)

    found = files.one(content.replace("\n", end).encode(encoding))

    assert rows_of(found.bars) == rows_of(files.one(PLAIN).bars)
    assert "columns that were not used: 'Prämie'" in found.notes


def test_a_decimal_comma_that_only_later_rows_show_is_found(files: Files) -> None:
    rows = [f"2025-09-19T13:{minute:02}:00Z;10;12;9;11;100" for minute in range(50)]
    rows.append("2025-09-19T13:50:00Z;10;12,25;9,5;11;100")

    found = files.one(lines(HEADER.replace(",", ";"), *rows))

    assert rows_of(found.bars)[-1][1:] == (10.0, 12.25, 9.5, 11.0, 100.0)


def test_thousands_separators_are_bad_numbers(files: Files) -> None:
    row = "2025-09-19T13:30:00Z;10.5;12.5;9.5;11.5;1,000"

    with pytest.raises(BadBars, match="line 2: unreadable number in volume: '1,000'"):
        files.one(lines(HEADER.replace(",", ";"), row))
    with pytest.raises(BadBars, match=r"line 2: unreadable number in volume: '1\.000,5'"):
        files.one(
            lines(
                HEADER.replace(",", ";"),
                row.replace("1,000", "1.000,5")
                .replace("10.5", "10,5")
                .replace("12.5", "12,5")
                .replace("9.5", "9,5")
                .replace("11.5", "11,5"),
            )
        )


def test_lines_are_counted_over_blank_ones_and_all_header_lines(files: Files) -> None:
    bad = ROWS[1].replace(",9,", ",99,")

    with pytest.raises(BadBars, match="line 6: high below low"):
        files.one(lines("", HEADER, "", ROWS[0], "", bad))
    with pytest.raises(BadBars, match="line 5: high below low"):
        header = ("Price,Open,High,Low,Close,Volume", "Ticker,AAPL,AAPL,AAPL,AAPL,AAPL", "Date,,,,,")
        files.one(lines(*header, "2025-09-18,10,12,9,11,100", "2025-09-19,10,12,99,11,100"))


# Symbols


def test_the_file_and_the_option_must_agree_on_the_symbol(files: Files) -> None:
    assert str(files.one(PLAIN, symbol="nasdaq:aapl").bars.instrument) == "AAPL"
    assert str(files.one(LABELLED, symbol=None).bars.instrument) == "AAPL"
    assert str(files.one(LABELLED, symbol="NASDAQ:AAPL").bars.instrument) == "AAPL"
    assert str(files.one(LABELLED.replace("AAPL", "btcusdt"), symbol="BTC/USDT").bars.instrument) == "BTC/USDT"
    named = files.one(LABELLED.replace("AAPL", "^GSPC"), symbol="SPX")
    assert (str(named.bars.instrument), named.symbol, named.notes) == (
        "SPX",
        "^GSPC",
        ("the file calls the symbol '^GSPC'",),
    )
    with pytest.raises(InvalidParameter, match=r"holds bars of AAPL \('AAPL'\), not of MSFT"):
        files.one(LABELLED, symbol="MSFT")
    with pytest.raises(InvalidParameter, match="does not name its symbol: add --symbol"):
        files.one(PLAIN, symbol=None)
    with pytest.raises(InvalidParameter, match=r"Invalid symbol '\^GSPC': .*; --symbol names the instrument"):
        files.one(LABELLED.replace("AAPL", "^GSPC"), symbol=None)


@pytest.mark.parametrize(
    ("name", "symbol"),
    [
        ("AAPL.csv", "AAPL"),
        ("btc-usd.csv", "BTC/USD"),
        ("aapl.us.txt", "AAPL"),
        ("BRK.B.csv.gz", "BRK.B"),
        ("MSFT", "MSFT"),
    ],
)
def test_the_name_of_a_file_is_its_symbol_if_told_so(files: Files, name: str, symbol: str) -> None:
    content = gzip.compress(PLAIN.encode()) if name.endswith(".gz") else PLAIN.encode()
    (found,) = read(files.write(content, name), ImportOptions(by_name=True), NOW)
    assert str(found.bars.instrument) == symbol


def test_a_symbol_in_the_file_is_stronger_than_its_name(files: Files) -> None:
    (found,) = read(files.write(LABELLED.encode(), "MSFT.csv"), ImportOptions(by_name=True), NOW)
    assert str(found.bars.instrument) == "AAPL"
    with pytest.raises(InvalidParameter, match=r"Invalid symbol 'my prices': .*; --symbol names the instrument"):
        read(files.write(PLAIN.encode(), "my prices.csv"), ImportOptions(by_name=True), NOW)


def test_of_many_symbols_one_can_be_chosen(files: Files) -> None:
    content = LABELLED + "".join(f"{name},{row}\n" for name in ("MSFT", "BRK-B") for row in ROWS)

    (found,) = files.series(content, symbol="BRK.B")

    assert (str(found.bars.instrument), found.notes) == ("BRK.B", ("the bars of 2 other symbols were left out",))
    with pytest.raises(InvalidParameter, match=r"names BRK\.B in two ways, 'BRK-B' and 'BRK\.B'"):
        files.series(content + f"BRK.B,{ROWS[0]}\n", symbol=None)


# Anything at all

HEADERS = [
    HEADER,
    "Date,Open,High,Low,Close,Adj Close,Volume",
    ",Open,High,Low,Close,Volume",
    "<TICKER>,<PER>,<DATE>,<TIME>,<OPEN>,<HIGH>,<LOW>,<CLOSE>,<VOL>",
    "Price,Close,High,Low,Open,Volume\nTicker,A,A,A,A,A\nDate,,,,,",
    "ticker,volume,open,close,high,low,window_start,transactions",
    "<DATE>\t<TIME>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>\t<VOL>\t<SPREAD>",
    "time,open,high,low,close,Volume",
]
CELLS = [
    "",
    "1",
    "10",
    "0",
    "-1",
    "1e400",
    "nan",
    "null",
    "2025-09-19",
    "2025-09-19T13:30:00Z",
    "20250919",
    "133000",
    "03/04/2024",
    "31.12.2024",
    "1758288600",
    "1758288600000",
    "99999999999999999999",
    "-99999999999",
    "9999-12-31",
    "0001-01-01",
    "AAPL",
    "D",
    "5",
    "é",
    '"',
    "x",
]
NAMES = [
    "x.csv",
    "x.txt",
    "XBTUSD_1.csv",
    "BTCUSDT-1m-2025-09.csv",
    "aapl_us_d.csv",
    "NASDAQ_AAPL, 1D.csv",
    "BTC_USDT-5m.json",
    "x.feather",
    "x.parquet",
]
rows = st.lists(st.lists(st.sampled_from(CELLS), min_size=1, max_size=12), max_size=6)
texts = st.builds(
    lambda header, body, by: (header.replace(",", by) + "\n" + "\n".join(by.join(row) for row in body)).encode(),
    st.sampled_from(["", *HEADERS]),
    rows,
    st.sampled_from([",", ";", "\t"]),
)


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.binary(max_size=200)
    | texts
    | texts.map(gzip.compress)
    | st.builds(lambda body: zipped(a__csv=body), texts),
    name=st.sampled_from(NAMES),
    options=st.builds(
        ImportOptions,
        st.sampled_from([None, parse("AAPL"), parse("BTC/USD"), parse("EUR/USD")]),
        st.sampled_from([None, *SHORT.values()]),
        st.none(),
        st.sampled_from([None, None, "%Y%m%d", "%d/%m/%Y"]),
        st.booleans(),
        skip_bad=st.booleans(),
    ),
)
def test_any_content_at_all_is_bars_or_a_plain_refusal(
    files: Files, content: bytes, name: str, options: ImportOptions
) -> None:
    path = files.write(content, name)
    try:
        found = read(path, options, NOW)
    except InputError as error:
        assert error.message.startswith(str(path))
    else:
        assert found
        assert all(len(series.bars) and times_of(series) for series in found)
    path.unlink()


ARRAYS = [
    pa.array([1, 2]),
    pa.array([1.5, None]),
    pa.array([float("nan"), float("inf")]),
    pa.array(["2025-09-19", None]),
    pa.array([b"\xff", b"x"]),
    pa.array([[1], [2]]),
    pa.array([{"a": 1}, None]),
    pa.array([None, None]),
    pa.array([True, False]),
    pa.array([-(2**63), 2**63 - 1]),
    pa.array([2**64 - 1, 0], pa.uint64()),
    pa.array([2**62, -(2**62)], pa.timestamp("ns")),
    pa.array([2**62, -(2**62)], pa.timestamp("s", "America/New_York")),
    pa.array([2**40, 1758288600], pa.timestamp("ms", "Nowhere/Land")),
    pa.array([10**6, -(10**6)], pa.date32()),
    pa.array([1758288600, 1758288660]).cast(pa.timestamp("s", "UTC")),
    pa.array([Decimal("1.5"), None]),
]
COLUMN_NAMES = ["timestamp", "open", "high", "low", "close", "volume"]


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    arrays=st.lists(st.sampled_from(ARRAYS), min_size=6, max_size=6),
    extra=st.none()
    | st.tuples(st.sampled_from(["symbol", "date", "", "__index_level_0__", "x"]), st.sampled_from(ARRAYS)),
    symbol=st.sampled_from(["AAPL", "BTC/USD"]),
)
def test_any_table_at_all_is_bars_or_a_plain_refusal(
    files: Files, arrays: list[pa.Array], extra: tuple[str, pa.Array] | None, symbol: str
) -> None:
    names, columns = list(COLUMN_NAMES), list(arrays)
    if extra:
        names.append(extra[0])
        columns.append(extra[1])
    sink = io.BytesIO()
    feather.write_feather(pa.table(columns, names), sink)
    try:
        found = files.series(sink.getvalue(), "x.feather", symbol)
    except InputError as error:
        assert "x.feather" in error.message
    else:
        assert all(len(series.bars) for series in found)
