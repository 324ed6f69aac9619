"""Reads bars from Parquet files that other programs have written."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from openbell.desk.importing.cells import OFF_MINUTE, UNITS, from_epochs, from_ticks
from openbell.desk.importing.columns import FIELDS, SHOWN, columns_of, shown
from openbell.desk.importing.faults import Faults, checked
from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.errors import InvalidParameter
from openbell.market.instruments import Instrument
from openbell.market.session_table import Times
from openbell.market.timeframes import Timeframe


def from_parquet(data: bytes, instrument: Instrument, now: float) -> Bars:
    """The bars of a Parquet file's content. Raises `InvalidParameter` or `BadBars`."""
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
        if (file.schema_arrow.metadata or {}).get(b"openbell.origin") == b"simulated":
            raise InvalidParameter("holds simulated bars, which cannot be imported as real ones")
        names = columns_of(file.schema_arrow.names)
        for name, kind in zip(names, file.schema_arrow.types, strict=True):
            _check_type(name, kind)
        table = file.read().rename_columns(names)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).partition("\n")[0]
        raise InvalidParameter(f"is not a readable Parquet file: {reason}") from error
    faults = Faults("row")
    readable = np.ones(table.num_rows, dtype=bool)
    places = np.arange(1, table.num_rows + 1)

    def add_faults(kind: str, mask: npt.NDArray[np.bool_], text: str) -> None:
        nonlocal readable
        found = places[mask & readable]
        if len(found):
            faults.add(kind, found, [text] * SHOWN)
            readable &= ~mask

    for name in FIELDS:
        add_faults("missing value", table[name].is_null().to_numpy(), f"missing value in {name}")
    seconds, whole = _parquet_times(table["timestamp"])
    add_faults(OFF_MINUTE, ~whole, OFF_MINUTE)
    values = (table[name].fill_null(0).to_numpy().astype(np.float64) for name in FIELDS[1:])
    rows = barlib.make(instrument, Timeframe.M1, seconds, *values)
    return checked(rows.take(readable), places[readable], faults, now)


def _check_type(name: str, kind: Any) -> None:
    types = pa.types
    good = types.is_integer(kind) or (types.is_timestamp(kind) if name == "timestamp" else types.is_floating(kind))
    if not good:
        wanted = "a timestamp or an epoch as integer" if name == "timestamp" else "floats or integers"
        raise InvalidParameter(f"column {name} holds {shown(str(kind))}: {wanted} can be read")


def _parquet_times(column: Any) -> tuple[Times, npt.NDArray[np.bool_]]:
    if pa.types.is_timestamp(column.type):
        ticks = column.cast(pa.int64()).fill_null(0).to_numpy()
        return from_ticks(ticks, UNITS[column.type.unit])
    return from_epochs(column.fill_null(0).to_numpy().astype(np.float64))
