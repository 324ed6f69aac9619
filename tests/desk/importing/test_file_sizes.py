"""Files that are too large, or small on disk and huge in memory, are refused unread; the cost is measured outside."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from openbell.desk.importing import arrow_tables, content, csv_rows
from openbell.market.errors import InvalidParameter
from tests.client import PATIENCE, environment
from tests.desk.importing.files import Files, rows_of

START = 1758288600
COLUMNS = ("open", "high", "low", "close", "volume")
MOST_MB = 500
MEASURE = """
import resource, subprocess, sys
done = subprocess.run([sys.executable, "-m", "openbell.cli.entry", "import", sys.argv[1], "--symbol", "AAPL"],
                      capture_output=True, text=True)
print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
print(done.stderr)
"""
"""Prints the exit code and the largest memory, in MB, of an import in a process of its own."""


def table(count: int, **more: pa.Array) -> pa.Table:
    prices = {name: pa.array(np.ones(count)) for name in COLUMNS}
    return pa.table({"timestamp": pa.array(START + 60 * np.arange(count)), **prices, **more})


def imported(home: Path, path: Path) -> tuple[int, int, str]:
    """The exit code, the largest memory in MB, and what was said."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path)],
        env=environment(home, FEED="none"),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    figures, _, said = done.stdout.partition("\n")
    code, memory = map(int, figures.split())
    return code, memory, said


def test_attack_a_file_of_more_than_two_gigabytes_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "bars.csv"
    with path.open("wb") as file:
        file.truncate(content.MOST_BYTES + 1)

    code, memory, said = imported(tmp_path / "home", path)

    assert (code, "holds more than 2,048 MB: split it into several files" in said) == (1, True), said
    assert memory < MOST_MB


def test_attack_a_small_parquet_file_with_many_rows_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    once = pa.table({name: pa.array(np.full(5_000_000, float(START))) for name in ("timestamp", *COLUMNS)})
    with pq.ParquetWriter(path, once.schema) as writer:
        for _ in range(5):
            writer.write_table(once)
    assert path.stat().st_size < 2_600_000

    code, memory, said = imported(tmp_path / "home", path)

    assert (code, "has 25,000,000 rows, at most 20,000,000 can be read" in said) == (1, True), said
    assert memory < MOST_MB


def test_attack_a_small_parquet_file_that_decodes_to_many_times_its_size_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "wide.parquet"
    more = {f"x{n}": pa.array(np.ones(2_000_000)) for n in range(10)}
    pq.write_table(table(2_000_000, **more).drop_columns(["timestamp"]), path, compression="zstd")
    assert path.stat().st_size < 1_000_000

    code, memory, said = imported(tmp_path / "home", path)

    assert (code, "decodes to 229 MB, but at most" in said) == (1, True), said
    assert memory < MOST_MB


def test_attack_a_long_text_that_is_stored_once_is_not_copied_into_every_row(tmp_path: Path) -> None:
    path = tmp_path / "texts.parquet"
    note = pa.DictionaryArray.from_arrays(pa.array(np.zeros(20_000, dtype=np.int32)), pa.array(["x" * 1_000_000]))
    pq.write_table(table(20_000, note=note), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 1_000_000

    code, memory, said = imported(tmp_path / "home", path)

    assert code == 0, said
    assert memory < MOST_MB


def test_attack_values_of_a_fixed_length_that_are_stored_once_are_not_decoded(tmp_path: Path) -> None:
    """One value of 20 kB stands in each of 400,000 rows: 2 MB on disk, 8 GB in memory."""
    path = tmp_path / "fixed.parquet"
    kind = pa.binary(20_000)
    part = table(4_000, note=pa.array([b"x" * 20_000], kind).take(pa.array(np.zeros(4_000, np.int32))))
    with pq.ParquetWriter(path, part.schema, compression="zstd") as writer:
        for _ in range(100):
            writer.write_table(part)
    assert path.stat().st_size < 3_000_000

    code, memory, said = imported(tmp_path / "home", path)

    assert (code, "decodes to 7,6" in said) == (1, True), said
    assert memory < MOST_MB


def test_attack_a_parquet_file_whose_metadata_states_other_sizes_is_refused(tmp_path: Path) -> None:
    """The sizes at the end of the file are lies; those of its pages count, which the decoder believes."""
    path = tmp_path / "lie.parquet"
    pq.write_table(
        table(1_000, note=pa.array(["A" * 1_000_000] * 1_000)),
        path,
        compression="zstd",
        use_dictionary=False,
        data_page_size=2**30,
    )
    data = path.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    group = pq.read_metadata(path).row_group(0)
    lies = data[footer:]
    for size in (group.column(6).total_uncompressed_size, group.total_byte_size):
        assert lies.count(_number(size, 5)) == 1
        lies = lies.replace(_number(size, 5), _number(5_000, 5))
    path.write_bytes(data[:footer] + lies)
    assert pq.read_metadata(path).row_group(0).column(6).total_uncompressed_size == 5_000

    code, memory, said = imported(tmp_path / "home", path)

    assert (code, "decodes to 954 MB" in said) == (1, True), said
    assert memory < MOST_MB


def _number(value: int, length: int) -> bytes:
    """A number of Thrift's compact protocol in a given number of bytes."""
    parts = [value << 1 >> 7 * at & 127 for at in range(length)]
    return bytes([*(part | 128 for part in parts[:-1]), parts[-1]])


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "gzip"])
def test_files_of_many_pages_are_read(compression: str, version: str) -> None:
    whole = table(5_000, note=pa.array([f"note {at % 700}" for at in range(5_000)]))
    for dictionary in (True, False):
        file = pa.BufferOutputStream()
        pq.write_table(
            whole,
            file,
            compression=compression,
            use_dictionary=dictionary,
            data_page_version=version,
            data_page_size=1_000,
            row_group_size=2_000,
            write_page_checksum=True,
        )
        assert arrow_tables.parquet_table(file.getvalue().to_pybytes()).equals(whole)


@pytest.mark.parametrize("stored_once", [False, True], ids=["in rows", "in a dictionary"])
def test_attack_a_small_feather_file_that_decodes_to_many_times_its_size_is_refused(
    tmp_path: Path, stored_once: bool
) -> None:
    path = tmp_path / "wide.feather"
    if stored_once:
        note = pa.DictionaryArray.from_arrays(pa.array(np.zeros(10, dtype=np.int32)), pa.array(["x" * 800_000_000]))
        whole = table(10, note=note)
    else:
        same = pa.array(np.ones(5_000_000))
        whole = pa.table(dict.fromkeys(("timestamp", *COLUMNS, *(f"x{n}" for n in range(14))), same))
    feather.write_feather(whole, path, compression="zstd", chunksize=5_000_000)  # one batch
    assert path.stat().st_size < 1_000_000

    code, memory, said = imported(tmp_path / "home", path)

    assert (code, "decodes to 763 MB, but at most" in said) == (1, True), said
    assert memory < MOST_MB


def test_attack_a_feather_file_whose_rows_have_no_bytes_is_refused_by_their_number(files: Files) -> None:
    path = files.folder / "nulls.feather"
    feather.write_feather(pa.table({name: pa.nulls(10**9) for name in ("timestamp", *COLUMNS)}), path, chunksize=10**9)
    with pytest.raises(InvalidParameter, match="has 1,000,000,000 rows, at most 20,000,000 can be read"):
        files.series(path.read_bytes(), path.name)


def test_attack_a_small_archive_of_many_short_rows_is_refused_before_they_are_read(tmp_path: Path) -> None:
    """A few megabytes of gzip whose rows would fill gigabytes as numbers; no flat text, which is refused anyway."""
    path = tmp_path / "rows.csv.gz"
    rows = b"".join(b"%d,1,1,1,1\n" % (9 + at * at % 17 // 12) for at in range(100_000))
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"timestamp,open,high,low,close\n")
        for _ in range(210):
            file.write(rows)
    assert path.stat().st_size < 12_000_000

    code, memory, said = imported(tmp_path / "home", path)

    assert (code, "has 21,000,001 rows, at most 20,000,000 can be read" in said) == (1, True), said
    assert memory < 2 * MOST_MB  # the text has 200 MB, twice while it is unpacked


@pytest.mark.parametrize(
    "text",
    [b"[" + b"{}," * 6_000_000 + b"{}]", b"[" + b"9," * 140_000_000 + b"9]"],
    ids=["rows", "values"],
)
def test_attack_a_json_text_whose_values_fill_the_memory_is_refused_before_it_is_read(
    tmp_path: Path, text: bytes
) -> None:
    path = tmp_path / "values.json"
    path.write_bytes(text)

    code, memory, said = imported(tmp_path / "home", path)

    assert (code, "is JSON with more than 256 MB or 5,000,000 rows" in said) == (1, True), said
    assert memory < 2 * MOST_MB


def test_attack_one_wide_character_does_not_make_a_large_text_four_times_larger(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    line = b"# " + b"x" * 250_000 + b"\n"
    path.write_bytes("timestamp,open,high,low,close,\U0001f40c\n".encode() + line * 1_000)

    code, memory, said = imported(tmp_path / "home", path)

    assert code == 1, said
    assert memory < 2 * MOST_MB  # the text alone has 250 MB


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-be", "cp1252"])
def test_texts_are_recoded_in_parts_that_cut_no_character(
    files: Files, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    monkeypatch.setattr(csv_rows, "_PART_BYTES", 7)
    text = "timestamp,open,high,low,close,é ü\n" + "".join(f"2025-09-{day:02},1,2,1,2,ß\n" for day in range(2, 6))
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    assert csv_rows.sniff(mark + text.encode(encoding)).data.decode() == text


@pytest.mark.parametrize("compression", ["lz4", "zstd", "uncompressed"])
def test_a_feather_file_is_read_with_each_compression(files: Files, compression: str) -> None:
    path = files.folder / "bars.feather"
    feather.write_feather(table(8), path, compression=compression)
    assert len(rows_of(files.one(path.read_bytes(), path.name, timeframe="1m").bars)) == 8


def test_attack_a_parquet_file_with_too_many_columns_is_refused(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_tables, "MOST_COLUMNS", 6)
    path = files.folder / "columns.parquet"
    pq.write_table(table(10, extra=pa.array(range(10))), path)
    with pytest.raises(InvalidParameter, match="has 7 columns, at most 6 can be read"):
        files.series(path.read_bytes(), path.name)


def test_texts_and_nested_columns_of_an_ordinary_parquet_file_are_read_or_left_out(files: Files) -> None:
    symbols, nested = pa.array(["AAPL"] * 4 + ["MSFT"] * 4), pa.array([[1, 2]] * 8)
    times = pa.array([f"2025-09-19T13:3{n % 4}:00Z" for n in range(8)])
    whole = table(8, symbol=symbols, levels=nested).drop_columns(["timestamp"]).append_column("timestamp", times)
    path = files.folder / "texts.parquet"
    pq.write_table(whole, path)
    found = files.series(path.read_bytes(), path.name, symbol=None, timeframe="1m")
    assert [(str(each.bars.instrument), len(rows_of(each.bars))) for each in found] == [("AAPL", 4), ("MSFT", 4)]
