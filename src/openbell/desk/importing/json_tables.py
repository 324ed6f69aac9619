"""Reads JSON as a table: a list of rows, one row on each line (JSON lines), or an object that holds such a list.

A row is an object with named values, or a list of values in the order of its format. An object of lists holds columns.
Prices that are written as texts, as exchanges do, are numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from openbell.desk.importing.layout import quoted
from openbell.market.errors import InvalidParameter

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


def json_table(data: bytes) -> Any:
    """Returns the Arrow table of a JSON text. Raises `InvalidParameter`."""
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
    if {"t", "o", "h", "l", "c"} <= set(names):
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
