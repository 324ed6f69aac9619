"""Reads Parquet files. A small one can hold any amount: its sizes are read from its metadata before anything is decoded."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from openbell.desk.importing.content import check_decoded_size
from openbell.desk.importing.page_sizes import unpacked_bytes
from openbell.market.errors import InvalidParameter

ORIGIN, ADJUSTMENT = b"openbell.origin", b"openbell.adjustment"
"""The metadata of a Parquet file that `openbell export` or the bar store has written."""
MOST_ROWS, MOST_COLUMNS = 20_000_000, 10_000
"""Twenty years of minutes of one symbol are 5 million rows; a table of 1,500 symbols side by side has 9,000 columns."""
_BYTES = {"BOOLEAN": 1, "INT32": 8, "FLOAT": 8, "INT64": 8, "DOUBLE": 8, "INT96": 12}
"""Bytes of a decoded value, at least: all numbers become 64 bits wide."""
_TEXTS = 2**30
"""Bytes that a column of repeated texts may have once each row holds its own."""


def parquet_table(data: bytes) -> Any:
    """Returns the Arrow table of a Parquet file, without nested columns. Raises `InvalidParameter`."""
    from pyarrow import parquet

    try:
        found = parquet.read_metadata(pa.BufferReader(data))
        _check_sizes(found, data)
        schema = parquet.read_schema(pa.BufferReader(data))
        if (schema.metadata or {}).get(ORIGIN) == b"simulated":
            raise InvalidParameter("holds simulated bars, which cannot be imported as real ones")
        flat = [each for each in schema if not pa.types.is_nested(each.type)]
        # A text that is stored once can stand in every row: it is decoded once too.
        texts = [each.name for each in flat if _is_text(each.type)]
        file = parquet.ParquetFile(pa.BufferReader(data), page_checksum_verification=True, read_dictionary=texts)
        table = file.read(columns=[each.name for each in flat])
        return _with_short_texts(table).replace_schema_metadata(schema.metadata)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidParameter(f"is not a readable Parquet file: {str(error).partition(chr(10))[0]}") from error


def check_counts(rows: int, columns: int) -> None:
    """Raise `InvalidParameter` if a table has too many rows or columns."""
    for count, most, what in ((rows, MOST_ROWS, "rows"), (columns, MOST_COLUMNS, "columns")):
        if count > most:
            raise InvalidParameter(f"has {count:,} {what}, at most {most:,} can be read: split it into several files")


def _check_sizes(found: Any, data: bytes) -> None:
    """Raise `InvalidParameter` if a file has too many rows or columns, or decodes to too many bytes.

    Raises `ValueError` if a page cannot be found.
    """
    check_counts(found.num_rows, found.num_columns)
    widths = [_width(found.schema.column(column)) for column in range(found.num_columns)]
    size = 0
    for group in range(found.num_row_groups):
        for column, width in enumerate(widths):
            chunk = found.row_group(group).column(column)
            offsets = filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset))
            begin = min(offsets, default=len(data))  # without rows there are no pages
            pages = unpacked_bytes(data, begin, min(begin + chunk.total_compressed_size, len(data)))
            size += max(pages, chunk.num_values * width)
    check_decoded_size(size, len(data))


def _width(column: Any) -> int:
    """Returns the bytes of a decoded value of a column, at least."""
    length: int = column.length
    return max(length, _BYTES.get(column.physical_type, 4))


def _is_text(kind: Any) -> bool:
    types = pa.types
    return bool(
        types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind)
    )


def _with_short_texts(table: Any) -> Any:
    """Returns a table with the texts of dictionary columns copied into each row.

    Columns of long texts stay dictionaries, because copies would fill the memory; times and symbols are short.
    """
    from pyarrow import compute as pc

    for at, column in enumerate(table.columns):
        if not pa.types.is_dictionary(column.type):
            continue
        lengths = (pc.max(pc.binary_length(chunk.dictionary)).as_py() or 0 for chunk in column.chunks if len(chunk))
        if max(lengths, default=0) * len(column) <= _TEXTS:
            table = table.set_column(at, table.field(at).name, column.cast(column.type.value_type))
    return table
