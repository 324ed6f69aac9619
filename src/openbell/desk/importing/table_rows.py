"""Reads rows from Parquet, Feather and JSON files.

JSON is a list of rows, one row on each line (JSON lines), or an object that holds such a list. A row is an object with named
values, or a list of values in the order of its format. An object of lists holds columns. Prices that are written as texts,
as exchanges do, are numbers.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from openbell.desk.importing.arrow_tables import ADJUSTMENT, feather_table, parquet_table
from openbell.desk.importing.layout import PRICES, SHOWN, Layout, Sample, quoted
from openbell.desk.importing.rows import Faults, Rows
from openbell.desk.importing.stamps import read_stamps
from openbell.market.errors import InvalidParameter
from openbell.market.provenance import Adjustment, parse_adjustment

MOST_JSON, MOST_JSON_ROWS = 2**28, 5_000_000
"""Bytes and rows of a JSON text: its values take several times as much memory."""
_SAMPLE_ROWS = 40
BARE = "#"
"""The names of columns of rows without names begin so."""
_FORMS = (
    'JSON that can be read: [{"timestamp": "2025-09-19T13:30:00Z", "open": 10, "high": 12, "low": 9, "close": 11, '
    '"volume": 100}, …], one such object on each line, or [[timestamp, open, high, low, close, volume], …]'
)
_LETTERS = {"t": "timestamp", "o": "open", "h": "high", "l": "low", "c": "close", "v": "volume", "s": "symbol"}
"""The short names of market data services."""
_INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_DEEPEST = 4


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


def json_table(data: bytes) -> Any:
    """Returns the Arrow table of a JSON text. Raises `InvalidParameter`."""
    if len(data) > MOST_JSON or data.count(b"[") + data.count(b"{") > MOST_JSON_ROWS:
        raise InvalidParameter(
            f"is JSON with more than {MOST_JSON // 2**20} MB or {MOST_JSON_ROWS:,} rows: split it into several files, or "
            "save it as CSV"
        )
    try:
        content = json.loads(data)
    except RecursionError:
        raise InvalidParameter(f"is JSON that is nested too deeply; {_FORMS}") from None
    except ValueError as error:
        content = _lines(data, error)
    try:
        return _table(content)
    except (pa.ArrowException, OverflowError, TypeError, UnicodeEncodeError) as error:
        raise InvalidParameter(f"is JSON, but no table: {str(error).partition(chr(10))[0]}; {_FORMS}") from error


def _lines(data: bytes, whole: ValueError) -> list[Any]:
    """Returns the values of JSON lines. Raises `InvalidParameter` if a line is not JSON.

    If the first line is not JSON, the message describes `whole`, the error of the whole text.
    """
    found = []
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").splitlines(), 1):
        if not line.strip():
            continue
        try:
            found.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            if not found:
                raise InvalidParameter(f"is not readable JSON: {whole}; {_FORMS}") from None
            raise InvalidParameter(f"line {number} is not readable JSON: {error}") from None
    return found


def _table(content: Any) -> Any:
    lists = list(_row_lists(content, _DEEPEST))
    if not lists:
        raise InvalidParameter(f"is JSON, but no list of rows; {_FORMS}")
    rows = lists[0][1] if len(lists) == 1 else _of_symbols(lists)
    if isinstance(rows, dict):
        names, columns = list(rows), list(rows.values())
    elif isinstance(rows[0], dict):
        names = list(dict.fromkeys(name for row in rows for name in row))
        columns = [[row.get(name) for row in rows] for name in names]
    elif all(len(row) == len(rows[0]) for row in rows):
        names, columns = [f"{BARE}{at}" for at in range(len(rows[0]))], [list(each) for each in zip(*rows, strict=True)]
    else:
        raise InvalidParameter(f"is JSON, but its rows are not of equal length; {_FORMS}")
    if {"o", "h", "l", "c"} <= set(names):
        names = [_LETTERS.get(name, name) for name in names]
    return pa.table([_array(name, column) for name, column in zip(names, columns, strict=True)], names)


def _of_symbols(lists: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    """Returns the rows of an object that has a list for each symbol. Raises `InvalidParameter` if the lists differ."""
    rows = [row for _, some in lists if isinstance(some, list) for row in some if isinstance(row, dict)]
    if len(rows) != sum(len(some) for _, some in lists) or len({frozenset(row) for row in rows}) > 1:
        raise InvalidParameter(f"is JSON that holds several lists: keep the list of rows; {_FORMS}")
    if {"symbol", "ticker"} & set(rows[0]):
        return rows
    return [{**row, "symbol": symbol} for symbol, some in lists for row in some]


def _row_lists(content: Any, depth: int, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yields lists of rows with their keys: the value itself, or in the values of objects; and objects of columns."""
    if isinstance(content, list) and content and isinstance(content[0], dict | list) and content[0]:
        if all(type(row) is type(content[0]) for row in content):
            yield key, content
    elif isinstance(content, dict) and depth:
        columns = {name: column for name, column in content.items() if isinstance(column, list)}
        if len(columns) >= 5 and len({len(column) for column in columns.values()}) == 1 and _are_values(columns):
            yield key, columns
            return
        for name, value in content.items():
            yield from _row_lists(value, depth - 1, name)


def _are_values(columns: dict[str, list[Any]]) -> bool:
    return all(column and not isinstance(column[0], dict | list) for column in columns.values())


def _array(name: str, values: list[Any]) -> Any:
    """Returns a column; texts that are all numbers as numbers."""
    texts = [each for each in values if each is not None]
    if texts and all(isinstance(each, str) for each in texts):
        for pattern, convert in ((_INTEGER, int), (_NUMBER, float)):
            if all(pattern.fullmatch(each) for each in texts):
                return pa.array([None if each is None else convert(each) for each in values])
    if any(isinstance(each, float) for each in texts):
        numbers = [each for each in texts if not isinstance(each, int | float) or isinstance(each, bool)]
        if numbers:
            raise InvalidParameter(f"is JSON, but {quoted(name)} holds numbers and {quoted(str(numbers[0]))}; {_FORMS}")
        return pa.array([None if each is None else float(each) for each in values])
    return pa.array(values)
