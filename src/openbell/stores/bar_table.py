"""Bars as an Arrow table: the columns of every Parquet file that is written."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from openbell.market.bars import Bars
from openbell.stores.arrow import pa

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
