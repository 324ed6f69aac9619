"""Reads rows from Parquet, Feather and JSON files."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
import pyarrow as pa

from openbell.desk.importing.faults import Faults
from openbell.desk.importing.feather_tables import feather_table
from openbell.desk.importing.json_tables import json_table
from openbell.desk.importing.layout import PRICES, SHOWN, Layout, Sample, quoted
from openbell.desk.importing.parquet_tables import ADJUSTMENT, parquet_table
from openbell.desk.importing.rows import Rows
from openbell.desk.importing.stamps import read_stamps
from openbell.market.errors import InvalidParameter
from openbell.market.provenance import Adjustment, parse_adjustment

_SAMPLE_ROWS = 40


def table_of(data: bytes, name: str) -> Any:
    """Returns the Arrow table of a file that is not text; None if it is text. Raises `InvalidParameter`."""
    suffix = name.lower().rpartition(".")[2]
    if data[:4] == b"PAR1" or suffix in {"parquet", "pq"}:
        return parquet_table(data)
    if data[:6] == b"ARROW1" or suffix == "feather":
        return feather_table(data)
    if data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in {b"[", b"{"}:
        return json_table(data)
    return None


def adjustment_of(table: Any) -> Adjustment | None:
    """Returns what the prices of a table are adjusted for by its metadata; None if it does not name one that is known."""
    return parse_adjustment((table.schema.metadata or {}).get(ADJUSTMENT, b"").decode(errors="replace"))


def sample_of(table: Any, name: str) -> Sample:
    """Returns the names of the columns and the first rows as texts."""
    head = table.slice(0, _SAMPLE_ROWS)
    rows = [list(row) for row in zip(*map(_texts, head.columns), strict=True)]
    headers = [_header(column) for column in table.column_names]
    if any(isinstance(header, tuple) for header in headers):  # pandas writes two levels of columns so
        pairs = [header if isinstance(header, tuple) else (header, "") for header in headers]
        return Sample(name, [[field for field, _ in pairs], [ticker for _, ticker in pairs], *rows])
    return Sample(name, [[str(header) for header in headers], *rows])


def _texts(column: Any) -> list[str]:
    """Returns the cells as texts; blanks for types that have none."""
    try:
        texts: list[str] = column.cast(pa.string()).fill_null("").to_pylist()
    except (pa.ArrowException, UnicodeDecodeError):
        return [""] * len(column)
    return texts


def _as_text(column: Any) -> Any:
    """Returns a column as texts. Raises `InvalidParameter` for types that have none, such as lists."""
    if pa.types.is_dictionary(column.type):
        raise InvalidParameter("a column of times or symbols holds texts that are too long")
    try:
        return column.cast(pa.string())
    except (pa.ArrowException, UnicodeDecodeError):
        raise InvalidParameter(f"a column of times or symbols holds {column.type}, which is no text") from None


def read_table(table: Any, layout: Layout, date_format: str | None, faults: Faults) -> Rows:
    """Returns the rows of a table; rows with a missing value are added to `faults`."""
    places = np.arange(1, table.num_rows + 1)
    columns = [table.column(at) for at in layout.time]
    time = _as_text(columns[0]) if pa.types.is_dictionary(columns[0].type) else columns[0]
    if len(columns) > 1:
        from pyarrow import compute as pc

        time = pc.binary_join_element_wise(*map(_as_text, columns), " ")
    stamps = read_stamps(time, date_format)
    lacking = ~stamps.times.readable
    _add_unreadable(time, lacking, places, faults)
    values = []
    for block in layout.blocks:
        names = [*PRICES, *(["volume"] if block.volume is not None else []), "adjusted close"]
        found = [table.column(at) for at in block.columns()]
        for name, column in zip(names, found, strict=False):
            _check_type(name, column.type)
        nulls = [np.asarray(column.is_null(nan_is_null=False)) for column in found]
        empty = np.logical_and.reduce([_is_missing(column) for column in found[:4]])
        for name, null in zip(names, nulls, strict=False):
            if (bad := null & ~empty & ~lacking).any():
                text = f"missing value in {name}"
                faults.add("missing value", places[bad], [text] * SHOWN)
                lacking |= bad
        values.append(tuple(np.asarray(_as_float(column)) for column in found))
    stamps.times.readable[lacking] = False
    texts = (None if at is None else _as_text(table.column(at)).fill_null("") for at in (layout.symbol, layout.period))
    symbols, periods = texts
    return Rows(places, stamps, values, symbols, periods)


def _add_unreadable(time: Any, lacking: Any, places: Any, faults: Faults) -> None:
    for place in places[lacking].tolist():
        text = time[place - 1].as_py()
        missing = text is None or text == ""
        if missing:
            faults.add("missing value", [place], ["missing value in timestamp"])
        else:
            faults.add("unreadable time", [place], [f"unreadable time {quoted(str(text))}"])


def _is_missing(column: Any) -> Any:
    return (
        np.asarray(column.is_null(nan_is_null=True))
        if pa.types.is_floating(column.type)
        else np.asarray(column.is_null())
    )


def _as_float(column: Any) -> Any:
    if pa.types.is_string(column.type) or pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    return np.asarray(column.fill_null(0) if pa.types.is_integer(column.type) else column).astype(np.float64)


def _check_type(name: str, kind: Any) -> None:
    types = pa.types
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)):
        raise InvalidParameter(f"column {name} holds {quoted(str(kind))}: floats or integers can be read")


def _header(name: str) -> Any:
    """Returns a column's name; a pair for the text of a pair, as pandas writes columns of two levels."""
    if name.startswith("('") and name.endswith("')"):
        try:
            pair = ast.literal_eval(name)
        except (ValueError, SyntaxError):
            return name
        if isinstance(pair, tuple) and len(pair) == 2:
            return str(pair[0]), str(pair[1])
    return name
