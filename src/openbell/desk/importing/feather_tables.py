"""Reads Feather files. A small compressed one can hold any amount: the sizes of its buffers are added up before decoding."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from openbell.desk.importing.content import check_decoded_size
from openbell.desk.importing.parquet_tables import check_counts
from openbell.market.errors import InvalidParameter

_MAGIC = b"ARROW1\x00\x00"
_HEADER, _BUFFERS, _COMPRESSION, _DATA_OF_DICTIONARY = 2, 2, 3, 1
"""Places of fields in the tables of Arrow's Message.fbs: of Message, RecordBatch (two) and DictionaryBatch."""


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
