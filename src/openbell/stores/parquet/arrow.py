"""Arrow and Parquet, and bars as an Arrow table with the columns of every Parquet file that is written.

Arrow is loaded without its remote file systems: nothing here uses them, and they take 4 MB. Values are taken from Arrow's
buffers: Arrow's own conversions import pandas where it is installed, which takes 0.3 s.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from openbell.market.bars import Bars
from openbell.market.session_table import Times

_modules: dict[str, Any] = sys.modules
for _remote in ("_azurefs", "_gcsfs", "_hdfs", "_s3fs"):
    # Python refuses to import a module that is None here; Arrow then goes without that file system.
    _modules.setdefault(f"pyarrow.{_remote}", None)


import pyarrow.parquet as pq  # noqa: E402

# Arrow's own allocator keeps what it once had; a server that reads a few columns a minute should give it back.
pa.set_memory_pool(pa.system_memory_pool())

__all__ = ["FIELDS", "NAMES", "pa", "pq", "prices_of", "table_of", "times_of"]

T = TypeVar("T", np.int64, np.float64)

NAMES = ("timestamp", "open", "high", "low", "close", "volume")
FIELDS = [pa.field("timestamp", pa.timestamp("ms", tz="UTC"), nullable=False)] + [
    pa.field(name, pa.float64(), nullable=False) for name in NAMES[1:]
]


def table_of(bars: Bars, metadata: Mapping[bytes, bytes]) -> pa.Table:
    """Returns the bars as a table with `metadata` in its schema."""
    schema = pa.schema(FIELDS, metadata=metadata)
    # Not `pa.array`: it imports `numpy.ma`, which takes 20 ms.
    columns = [
        pa.Array.from_buffers(field.type, len(bars), [None, pa.py_buffer(np.ascontiguousarray(column))])
        for field, column in zip(schema, (bars.time * 1000, *bars.columns()[1:]), strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def times_of(column: pa.ChunkedArray) -> Times:
    """Returns a column of timestamps as epoch seconds. Raises `ValueError` if a value is missing."""
    return _values(column, np.int64) // 1000


def prices_of(column: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    """Returns a column of prices or volumes. Raises `ValueError` if a value is missing."""
    return _values(column, np.float64)


def _values(column: pa.ChunkedArray, kind: type[T]) -> npt.NDArray[T]:
    if column.null_count:
        raise ValueError("a value is missing")
    size = np.dtype(kind).itemsize
    parts: list[npt.NDArray[T]] = [
        np.frombuffer(chunk.buffers()[1], kind, len(chunk), chunk.offset * size) for chunk in column.chunks
    ]
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, kind), *parts])
