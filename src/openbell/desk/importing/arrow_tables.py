"""Reads Parquet and Feather files. A small one can hold any amount, so the sizes are added up before anything is decoded.

The pages of Parquet files state their sizes in headers of their own: the metadata at the end of a file may state others.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from openbell.desk.importing.content import check_decoded_size
from openbell.market.errors import InvalidParameter

ORIGIN, ADJUSTMENT = b"openbell.origin", b"openbell.adjustment"
"""The metadata of a Parquet file that `openbell export` or the bar store has written."""
MOST_ROWS, MOST_COLUMNS = 20_000_000, 10_000
"""Twenty years of minutes of one symbol are 5 million rows; a table of 1,500 symbols side by side has 9,000 columns."""
_BYTES = {"BOOLEAN": 1, "INT32": 8, "FLOAT": 8, "INT64": 8, "DOUBLE": 8, "INT96": 12}
"""Bytes of a decoded value, at least: all numbers become 64 bits wide."""
_TEXTS = 2**30
"""Bytes that a column of repeated texts may have once each row holds its own."""
_DEPTH = 8
"""Levels of a page header; those of real files have 3."""
_FIXED = {1: 0, 2: 0, 3: 1, 7: 8}
"""Bytes of values by their type in Thrift's compact protocol; true and false are types."""
_NUMBERS = frozenset({4, 5, 6})
_BINARY, _LIST, _SET, _STRUCT = 8, 9, 10, 12
_UNPACKED, _PACKED = 2, 3
"""Fields of a page header: its page's bytes."""
_MAGIC = b"ARROW1\x00\x00"
_HEADER, _BUFFERS, _COMPRESSION, _DATA_OF_DICTIONARY = 2, 2, 3, 1
"""Places of fields in the tables of Arrow's Message.fbs: of Message, RecordBatch (two) and DictionaryBatch."""


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


def unpacked_bytes(data: bytes, begin: int, end: int) -> int:
    """Returns how many bytes the pages at `begin` to `end` of a file unpack to. Raises `ValueError` if they are no pages."""
    total = 0
    reader = _Reader(data, begin)
    while reader.at < end:
        sizes = reader.page_header()
        unpacked, packed = sizes.get(_UNPACKED, -1), sizes.get(_PACKED, -1)
        if unpacked < 0 or packed < 0:
            raise ValueError("a page without its sizes")
        total += unpacked
        reader.at += packed
    return total


class _Reader:
    """Reads Thrift's compact protocol."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self.at = at

    def page_header(self) -> dict[int, int]:
        """Returns the numbers of a page header by field. Raises `ValueError`."""
        try:
            return self._struct(_DEPTH)
        except IndexError:
            raise ValueError("a page header that does not end") from None

    def _struct(self, depth: int) -> dict[int, int]:
        if not depth:
            raise ValueError("a page header with too many levels")
        found: dict[int, int] = {}
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self._number()
            kind = head & 15
            if kind in _NUMBERS:
                found[field] = self._number()
            else:
                self._skip(kind, depth)
        return found

    def _skip(self, kind: int, depth: int) -> None:
        if kind in _FIXED:
            self.at += _FIXED[kind]
        elif kind in _NUMBERS:
            self._number()
        elif kind == _BINARY:
            length = self._varint()
            self.at += length
        elif kind in {_LIST, _SET}:
            head = self._byte()
            count = self._varint() if head >> 4 == 15 else head >> 4
            if count > len(self._data):
                raise ValueError("a page header with too many entries")
            for _ in range(count):  # those that are true or false have a byte here
                self._skip(3 if head & 15 in {1, 2} else head & 15, depth)
        elif kind == _STRUCT:
            self._struct(depth - 1)
        else:
            raise ValueError("a page header with a field of another type")

    def _byte(self) -> int:
        found = self._data[self.at]
        self.at += 1
        return found

    def _varint(self) -> int:
        value = shift = 0
        while (part := self._byte()) & 128:
            value |= (part & 127) << shift
            shift += 7
            if shift > 63:
                raise ValueError("a number with too many bytes")
        return value | part << shift

    def _number(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)


def feather_table(data: bytes) -> Any:
    """Returns the Arrow table of a Feather file. Raises `InvalidParameter`."""
    from pyarrow import feather, ipc

    try:
        if not data.startswith(_MAGIC):  # version 1, which has no compression
            table = feather.read_table(pa.BufferReader(data))
        else:
            # The footer of the file is not read: it could name other buffers than those whose sizes were added up.
            stream = pa.py_buffer(data).slice(len(_MAGIC))
            check_decoded_size(sum(_decoded_sizes(stream)), len(data))
            table = ipc.open_stream(stream).read_all()
    except (pa.ArrowException, OSError, ValueError, struct.error) as error:
        raise InvalidParameter(f"is not a readable Feather file: {str(error).partition(chr(10))[0]}") from error
    check_counts(table.num_rows, table.num_columns)
    return table


def _decoded_sizes(stream: Any) -> Iterator[int]:
    """Yields the bytes of each compressed buffer once it is decoded; buffers without compression are not copied."""
    from pyarrow import ipc

    for message in ipc.MessageReader.open_stream(stream):
        if message.type not in {"record batch", "dictionary"}:
            continue
        metadata, body = message.metadata.to_pybytes(), memoryview(message.body)
        batch = _field(metadata, _table_at(metadata, 0), _HEADER)
        if batch and message.type == "dictionary":
            batch = _field(metadata, _table_at(metadata, batch), _DATA_OF_DICTIONARY)
        if not batch or not _field(metadata, _table_at(metadata, batch), _COMPRESSION):
            continue
        buffers = _table_at(metadata, _field(metadata, _table_at(metadata, batch), _BUFFERS))
        (count,) = struct.unpack_from("<I", metadata, buffers)
        for at, length in struct.iter_unpack("<qq", metadata[buffers + 4 : buffers + 4 + 16 * count]):
            if length:
                # A compressed buffer begins with its decoded size; -1: this one is not compressed.
                yield max(struct.unpack_from("<q", body, at)[0], 0)


def _table_at(metadata: bytes, at: int) -> int:
    """Returns the place to which the offset at a place of a flatbuffer leads."""
    return at + int(struct.unpack_from("<I", metadata, at)[0])


def _field(metadata: bytes, table: int, number: int) -> int:
    """Returns the place of a field of a table in a flatbuffer; 0 if the table lacks it."""
    fields = table - struct.unpack_from("<i", metadata, table)[0]
    size = struct.unpack_from("<H", metadata, fields)[0]
    entry = 4 + 2 * number
    within = struct.unpack_from("<H", metadata, fields + entry)[0] if entry < size else 0
    return table + within if within else 0
