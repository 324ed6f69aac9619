"""Finds out how a text file is written: encoding, delimiter and decimal point."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass

from openbell.market.errors import InvalidParameter

_SAMPLE_BYTES = 16384
_SAMPLE_ROWS = 40
_COLUMNS = 5
"""A file of bars has at least so many columns: a time and four prices."""
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+", re.ASCII)
_DECIMAL_POINT = re.compile(r"[+-]?\d*\.\d+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Text:
    """The text of a file in UTF-8 without a byte order mark, and how it is written."""

    data: bytes
    delimiter: str
    decimal: str
    rows: list[list[str]]
    """The first rows that are not blank, the header included."""
    first_line: int
    """The number of the first line that is not blank."""
    notes: tuple[str, ...] = ()


def sniff(data: bytes) -> Text:
    """Returns the text of a file. Raises `InvalidParameter` if it is no text."""
    data, notes = _as_utf8(data)
    head = data[:_SAMPLE_BYTES]
    if len(data) > len(head) and (end := max(head.rfind(b"\n"), head.rfind(b"\r"))) > 0:
        head = head[:end]
    first = head.lstrip().partition(b"\n")[0].partition(b"\r")[0]
    delimiter = next((each for each in "\t;,|" if first.count(each.encode()) >= _COLUMNS - 1), ",")
    rows: list[list[str]] = []
    line = 1
    try:
        for at, cells in rows_of(head, delimiter):
            line = at if not rows else line
            rows.append(cells)
            if len(rows) >= _SAMPLE_ROWS:
                break
    except InvalidParameter:
        if not rows:
            raise
    return Text(data, delimiter, _decimal(rows, delimiter, data), rows, line, notes)


def rows_of(data: bytes, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yields the rows that are not blank, each with the number of its first line."""
    text = io.TextIOWrapper(io.BytesIO(data), "utf-8", errors="replace", newline="")
    reader = csv.reader(text, delimiter=delimiter)
    begins = 1
    try:
        for cells in reader:
            if len(cells) > 1 or any(cell.strip() for cell in cells):
                yield begins, cells
            begins = reader.line_num + 1
    except csv.Error as error:
        raise InvalidParameter(f"line {begins} cannot be read: {error}") from error


def _as_utf8(data: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Returns the text in UTF-8 and a note if the encoding had to be guessed."""
    for mark, encoding in ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16")):
        if data.startswith(mark):
            try:
                return data.decode(encoding).encode(), ()
            except UnicodeDecodeError:
                raise InvalidParameter("begins like UTF-16 text but is none: save it as CSV in UTF-8") from None
    data = data.removeprefix(codecs.BOM_UTF8)
    if b"\0" in data[:4096]:
        raise InvalidParameter("is neither text nor Parquet: save it as CSV in UTF-8")
    if data.isascii():
        return data, ()
    try:
        data.decode()
    except UnicodeDecodeError:
        try:
            return data.decode("cp1252").encode(), ("not UTF-8: read as Windows text (cp1252)",)
        except UnicodeDecodeError:
            raise InvalidParameter("is neither UTF-8 nor Windows text: save it as CSV in UTF-8") from None
    return data, ()


def _decimal(rows: list[list[str]], delimiter: str, data: bytes) -> str:
    """Returns the decimal sign: a comma if numbers have one and none has a point."""
    if delimiter == "," or b"," not in data:
        return "."
    cells = [cell.strip() for row in rows[1:] for cell in row]
    if any(map(_DECIMAL_POINT.fullmatch, cells)):
        return "."
    if any(map(_DECIMAL_COMMA.fullmatch, cells)):
        return ","
    # The first rows hold whole numbers only: later ones decide.
    return "," if re.search(rb"\d,\d", data) and not re.search(rb"[;\t|]\d+\.\d+[;\t|\r\n]", data) else "."
