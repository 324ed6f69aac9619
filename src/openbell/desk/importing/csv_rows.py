"""Reads bars from CSV: clean files at once with Arrow, others line by line to report their faults."""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from openbell.desk.importing.cells import ISO, UNITS, BadCell, from_epochs, from_ticks, number_of, time_of
from openbell.desk.importing.columns import FIELDS, columns_of
from openbell.desk.importing.faults import Faults, checked
from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.errors import BadBars, InvalidParameter
from openbell.market.instruments import Instrument
from openbell.market.session_table import Times
from openbell.market.timeframes import Timeframe

_LARGE = 4_000_000
"""Bytes above which several threads read a file faster than one."""


def from_csv(data: bytes, instrument: Instrument, now: float) -> Bars:
    """The bars of CSV text. Raises `InvalidParameter` or `BadBars`."""
    if b"\0" in data[:4096]:
        raise InvalidParameter("is neither UTF-8 text nor Parquet: save it as CSV in UTF-8")
    try:
        lines = _lines(data)
        columns = columns_of(next(lines, (1, [""]))[1])
        first = next(lines, (0, [""]))[1]
        if rows := _read_at_once(data, columns, first, instrument):
            try:
                return checked(rows, np.arange(len(rows)), Faults("row"), now)
            except BadBars:
                pass  # read again below, to report the lines
        faults = Faults("line")
        return checked(*_read_lines(data, columns, faults, instrument), faults, now)
    except UnicodeDecodeError:
        raise InvalidParameter("is not UTF-8 text: save it as CSV in UTF-8") from None


def _lines(data: bytes) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank, each with the number of its first line."""
    reader = csv.reader(io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", newline=""))
    begins = 1
    try:
        for cells in reader:
            if len(cells) > 1 or any(cell.strip() for cell in cells):
                yield begins, cells
            begins = reader.line_num + 1
    except csv.Error as error:
        raise InvalidParameter(f"line {begins} cannot be read: {error}") from error


def _read_at_once(data: bytes, columns: list[str], first: list[str], instrument: Instrument) -> Bars | None:
    """The bars as Arrow reads them, if all times have the format of the first; None if Arrow cannot read the file."""
    from pyarrow import csv as arrow

    types = dict.fromkeys(FIELDS, pa.float64())
    text = dict(zip(columns, first, strict=False)).get("timestamp", "")
    if match := ISO.fullmatch(text):
        types["timestamp"] = pa.timestamp("us", "UTC" if match["zone"] else None)
    # A process that exits soon after this could abort while Arrow's threads are starting. So Arrow's thread for signals is
    # disabled (Python handles them), and a small file is read without threads.
    pa.enable_signal_handlers(False)
    try:
        table = arrow.read_csv(
            pa.BufferReader(data),
            arrow.ReadOptions(column_names=columns, skip_rows=1, use_threads=len(data) > _LARGE),
            convert_options=arrow.ConvertOptions(column_types=types, null_values=[]),
        )
    except pa.ArrowException:
        return None
    time, *values = (table[name].to_numpy() for name in FIELDS)
    if match:
        seconds, whole = from_ticks(time.astype("datetime64[us]").astype(np.int64), UNITS["us"])
    else:
        if not np.isfinite(time).all():
            return None
        seconds, whole = from_epochs(time)
    return barlib.make(instrument, Timeframe.M1, seconds, *values) if whole.all() else None


def _read_lines(data: bytes, columns: list[str], faults: Faults, instrument: Instrument) -> tuple[Bars, Times]:
    """The readable rows and their line numbers; unreadable rows are added to `faults`."""
    order = [columns.index(name) for name in FIELDS]
    places, values = array("q"), array("d")
    lines = _lines(data)
    next(lines)
    for place, cells in lines:
        try:
            values.extend(_row(cells, order))
        except BadCell as fault:
            kind, text = fault.args
            faults.add(kind, [place], [text])
        else:
            places.append(place)
    rows = np.array(values).reshape(-1, len(FIELDS))
    return barlib.make(instrument, Timeframe.M1, *rows.T), np.array(places, dtype=np.int64)


def _row(cells: list[str], order: list[int]) -> list[float]:
    if len(cells) != len(order):
        raise BadCell("wrong number of values", f"{len(cells)} values instead of {len(order)}")
    time, *numbers = texts = [cells[at].strip() for at in order]
    if "" in texts:
        raise BadCell("missing value", f"missing value in {FIELDS[texts.index('')]}")
    return [time_of(time), *map(number_of, numbers, FIELDS[1:])]
