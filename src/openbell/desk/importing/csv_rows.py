"""Reads rows from CSV: clean files at once with Arrow, others line by line to report their faults.

Before that it finds out how a file is written: encoding, delimiter and decimal point.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from openbell.desk.importing.arrow_tables import check_counts
from openbell.desk.importing.layout import PRICES, Layout, TableBlock, quoted
from openbell.desk.importing.rows import NO_VALUE, Faults, Rows
from openbell.desk.importing.stamps import Stamps, are_dates, arrow_type, read_stamps
from openbell.market.errors import InvalidParameter

_SAMPLE_BYTES = 16384
_PART_BYTES = 2**20
_SAMPLE_ROWS = 40
_COLUMNS = 5
"""A file of bars has at least so many columns: a time and four prices."""
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+", re.ASCII)
_DECIMAL_POINT = re.compile(r"[+-]?\d*\.\d+", re.ASCII)
_LARGE = 4_000_000
"""Bytes above which several threads read a file faster than one."""


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
    check_counts(max(data.count(b"\n"), data.count(b"\r")), 0)
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
                return b"".join(_recoded(data, encoding)), ()
            except UnicodeDecodeError:
                raise InvalidParameter("begins like UTF-16 text but is none: save it as CSV in UTF-8") from None
    data = data.removeprefix(codecs.BOM_UTF8)
    if b"\0" in data[:4096]:
        raise InvalidParameter("is neither text nor Parquet: save it as CSV in UTF-8")
    if data.isascii():
        return data, ()
    try:
        for _ in _recoded(data, "utf-8"):
            pass
    except UnicodeDecodeError:
        try:
            return b"".join(_recoded(data, "cp1252")), ("not UTF-8: read as Windows text (cp1252)",)
        except UnicodeDecodeError:
            raise InvalidParameter("is neither UTF-8 nor Windows text: save it as CSV in UTF-8") from None
    return data, ()


def _recoded(data: bytes, encoding: str) -> Iterator[bytes]:
    """Yields a text in UTF-8, part by part: decoded as a whole, each of its characters could take four bytes.

    Raises `UnicodeDecodeError`.
    """
    decoder = codecs.getincrementaldecoder(encoding)()
    for begin in range(0, len(data), _PART_BYTES):
        part = data[begin : begin + _PART_BYTES]
        yield decoder.decode(part, final=begin + _PART_BYTES >= len(data)).encode()


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


class BadCell(Exception):
    """A cell that cannot be read. Its arguments are the kind of fault and the message."""


def read_at_once(text: Text, layout: Layout, date_format: str | None) -> Rows | None:
    """Returns the rows as Arrow reads them; None if Arrow cannot read the file."""
    from pyarrow import csv as arrow

    names = [f"f{at}" for at in range(layout.width)]
    texts = [cells for at in layout.time if (cells := _first_texts(text, layout, at))]
    kind = arrow_type(texts[0], date_format) if len(layout.time) == 1 and texts else pa.string()
    types = {names[column]: pa.float64() for block in layout.blocks for column in block.columns()}
    types |= {names[at]: kind for at in layout.time}
    types |= {names[at]: pa.string() for at in (layout.symbol, layout.period) if at is not None}
    # A process that exits soon after this could abort while Arrow's threads are starting. So Arrow's thread for signals is
    # disabled (Python handles them), and a small file is read without threads.
    pa.enable_signal_handlers(False)
    try:
        table = arrow.read_csv(
            pa.BufferReader(text.data),
            arrow.ReadOptions(
                column_names=names,
                skip_rows=text.first_line - 1 + layout.skip,
                use_threads=len(text.data) > _LARGE,
            ),
            arrow.ParseOptions(delimiter=text.delimiter),
            arrow.ConvertOptions(
                column_types=types,
                include_columns=list(types),
                null_values=list(NO_VALUE),
                decimal_point=text.decimal,
            ),
        )
    except pa.ArrowException:
        return None
    stamps = read_stamps(_joined([table[names[at]] for at in layout.time]), date_format)
    if not stamps.times.readable.all():
        return None
    if pa.types.is_timestamp(kind) and are_dates(texts[0]) and not (stamps.times.written % 86400).any():
        stamps = Stamps(stamps.times, dates=True)
    values = [tuple(table[names[at]].to_numpy() for at in block.columns()) for block in layout.blocks]
    symbols, periods = (None if at is None else table[names[at]] for at in (layout.symbol, layout.period))
    return Rows(np.arange(table.num_rows), stamps, values, symbols, periods)


def read_lines(text: Text, layout: Layout, date_format: str | None, faults: Faults) -> Rows:
    """Returns the readable rows with their line numbers; unreadable rows are added to `faults`."""
    places, times, symbols, periods = array("q"), [], [], []
    values = [array("d") for _ in layout.blocks]
    lines = rows_of(text.data, text.delimiter)
    for _ in range(layout.skip):
        next(lines)
    for place, cells in lines:
        try:
            time, numbers = _row(cells, layout, text.decimal)
        except BadCell as fault:
            kind, reason = fault.args
            faults.add(kind, [place], [reason])
            continue
        places.append(place)
        times.append(time)
        for column, found in zip(values, numbers, strict=True):
            column.extend(found)
        symbols.append("" if layout.symbol is None else cells[layout.symbol])
        periods.append("" if layout.period is None else cells[layout.period])
    stamps = read_stamps(pa.array(times, pa.string()), date_format)
    where = np.array(places, dtype=np.int64)
    unreadable = np.flatnonzero(~stamps.times.readable)
    reasons = [f"unreadable time {quoted(times[at])}" for at in unreadable.tolist()]
    faults.add("unreadable time", where[unreadable], reasons)
    columns = [
        tuple(np.array(found).reshape(-1, len(block.columns())).T)
        for block, found in zip(layout.blocks, values, strict=True)
    ]
    return Rows(
        where,
        stamps,
        columns,
        None if layout.symbol is None else pa.array(symbols, pa.string()),
        None if layout.period is None else pa.array(periods, pa.string()),
    )


def _first_texts(text: Text, layout: Layout, at: int) -> list[str]:
    return [row[at].strip() for row in text.rows[layout.skip :] if at < len(row) and row[at].strip()]


def _joined(columns: list[Any]) -> Any:
    if len(columns) == 1:
        return columns[0]
    from pyarrow import compute as pc

    trimmed = [pc.utf8_trim_whitespace(column) for column in columns]
    return pc.binary_join_element_wise(*trimmed, " ")


def _row(cells: list[str], layout: Layout, decimal: str) -> tuple[str, list[list[float]]]:
    if len(cells) != layout.width:
        raise BadCell("wrong number of values", f"{len(cells)} values instead of {layout.width}")
    times = [cells[at].strip() for at in layout.time]
    if "" in times or "\ufffd" in times:
        raise BadCell("missing value", "missing value in timestamp")
    return " ".join(times), [_numbers(cells, block, decimal, len(layout.blocks) > 1) for block in layout.blocks]


def _numbers(cells: list[str], block: TableBlock, decimal: str, several: bool) -> list[float]:
    names = [*PRICES, *(["volume"] if block.volume is not None else []), "adjusted close"]
    names = [f"{name} of {block.symbol}" for name in names] if several else names
    texts = [cells[at].strip() for at in block.columns()]
    if all(text in NO_VALUE for text in texts[:4]):
        return [np.nan] * len(texts)
    if "" in texts:
        raise BadCell("missing value", f"missing value in {names[texts.index('')]}")
    return [number_of(text, name, decimal) for text, name in zip(texts, names, strict=False)]


def number_of(text: str, name: str, decimal: str = ".") -> float:
    """Reads a number. Raises `BadCell`, also for 1_000 and non-ASCII digits, which `float` would accept."""
    plain = text.replace(",", ".") if decimal == "," and "." not in text else text
    try:
        if text.isascii() and "_" not in text:
            return float(plain)
    except ValueError:
        pass
    raise BadCell("unreadable number", f"unreadable number in {name}: {quoted(text)}")
