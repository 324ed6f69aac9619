"""Reads price files as people have them. A file with any bad row is refused as a whole.

Content (plain, gzip, zip) → sniffing (encoding, delimiter, decimal point) → a format, found in `formats/`, which says what
each column holds → rows → times in UTC → timeframe by spacing → bars, one series for each symbol.

Arrow reads a clean CSV file at once, which is fast. A file that Arrow cannot read, or that holds impossible bars, is read
again line by line to report which lines are wrong and why.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from openbell.desk.importing.content import FilePart, expand, parts_of
from openbell.desk.importing.csv_rows import Text, read_at_once, read_lines, sniff
from openbell.desk.importing.formats import recognise
from openbell.desk.importing.layout import SHOWN, Layout, Sample, listed, unused
from openbell.desk.importing.naming import named_by_file
from openbell.desk.importing.rows import Faults, Rows
from openbell.desk.importing.series import FileSeries, ImportOptions, assemble
from openbell.desk.importing.shared_timeframes import SharedTimeframes
from openbell.desk.importing.spacing import UnclearTimeframe
from openbell.desk.importing.table_rows import adjustment_of, read_table, sample_of, table_of
from openbell.market.errors import BadBars, InputError, InvalidParameter
from openbell.market.plural import counted
from openbell.market.provenance import Adjustment

__all__ = ["SIMULATED", "FileReader", "FileSeries", "ImportOptions", "expand", "read"]

SIMULATED = "# simulated"
"""The beginning of a text file of simulated bars that `openbell export` has written."""
_LISTED = 100
"""How many skipped rows are listed."""


class FileReader:
    """Reads the files of one command. All files are read once by `first`; those that it leaves then by `again`."""

    def __init__(self, options: ImportOptions, now: float) -> None:
        self._shared = SharedTimeframes()
        self._options = replace(options, shared=self._shared)
        self._now = now

    def first(self, path: Path) -> list[FileSeries] | None:
        """Returns the series of a file, each sorted; None if only all files together show its timeframe.

        Raises `InvalidParameter` if the file as a whole cannot be read as bars, `BadBars` if single rows are wrong.
        """
        # A pipe cannot be read again, so it is read by itself.
        options = self._options if path.is_file() else replace(self._options, shared=None)
        found: list[FileSeries] = []
        is_unclear = False
        for part in parts_of(path):
            try:
                found += _read_part(part, options, self._now)
            except UnclearTimeframe:
                if options.shared is None:
                    raise
                is_unclear = True
        self._shared.add(series.bars.series for series in found)
        return None if is_unclear else found

    def again(self, path: Path) -> list[FileSeries]:
        """Returns the series of a file after all files were read. Raises as `first` does."""
        self._shared.complete = True
        return [series for part in parts_of(path) for series in _read_part(part, self._options, self._now)]


def read(path: Path, options: ImportOptions, now: float) -> list[FileSeries]:
    """Returns the series of a file by itself. Raises as `FileReader.first` does."""
    reader = FileReader(options, now)
    found = reader.first(path)
    return reader.again(path) if found is None else found


def _read_part(part: FilePart, options: ImportOptions, now: float) -> list[FileSeries]:
    try:
        if _is_blank(part.data):
            raise InvalidParameter("the file is empty")
        if part.data[:100].lstrip().startswith(SIMULATED.encode()):
            raise InvalidParameter("holds simulated bars, which cannot be imported as real ones")
        return _read(part, options, now)
    except InputError as error:
        message = f"{part.shown}: {error.message}"
        if isinstance(error, UnclearTimeframe):
            raise UnclearTimeframe(message, error.fallback) from None
        raise (BadBars if isinstance(error, BadBars) else InvalidParameter)(
            message, **error.details
        ) from error.__cause__


def _is_blank(data: bytes) -> bool:
    """Returns True if there is nothing but blanks; looks at the beginning first, because `strip` copies the rest."""
    mark = b"\xef\xbb\xbf"
    return not data[:100].removeprefix(mark).strip() and not data.removeprefix(mark).strip()


def _read(part: FilePart, options: ImportOptions, now: float) -> list[FileSeries]:
    table = table_of(part.data, part.name)
    text = sniff(part.data) if table is None else None
    sample = sample_of(table, part.name) if text is None else Sample(part.name, text.rows, text.delimiter)
    form, layout = recognise(sample)
    if table is not None and (stated := adjustment_of(table)):
        layout = replace(layout, adjustment=stated, intraday_adjustment=None)
    notes = [*(text.notes if text else ()), *layout.notes]
    if layout.skip and (extra := unused(layout, sample.rows[0])):
        notes.append(f"columns that were not used: {listed(extra)}")
    layout = _with_adjusted(layout, options.adjusted)
    if options.by_name:
        layout = named_by_file(layout, part.name)
    found = _from_text(text, layout, options, now) if text else _from_table(table, layout, options, now)
    return [replace(each, file=part.shown, format=form.name, notes=(*notes, *each.notes)) for each in found]


def _with_adjusted(layout: Layout, wanted: bool) -> Layout:
    """Returns the layout with the columns of adjusted closes only if they are wanted."""
    if not wanted:
        return replace(layout, blocks=tuple(replace(block, adjusted=None) for block in layout.blocks))
    if layout.adjustment is not Adjustment.ALL and any(block.adjusted is None for block in layout.blocks):
        raise InvalidParameter(
            "has no column of adjusted closes (Adj Close), which --adjusted needs; if its prices are adjusted, name it with"
            " --adjustment"
        )
    return layout


def _from_text(text: Text, layout: Layout, options: ImportOptions, now: float) -> list[FileSeries]:
    if (rows := read_at_once(text, layout, options.date_format)) is not None:
        faults = Faults("row")
        try:
            found = assemble(rows, layout, options, faults, now)
        except InputError:
            if not faults.counts:
                raise
        else:
            if not faults.counts:
                return found
    # Read again, to report the lines.
    faults = Faults("line", most=_LISTED if options.skip_bad else SHOWN)
    return _assembled(read_lines(text, layout, options.date_format, faults), layout, options, faults, now)


def _from_table(table: Any, layout: Layout, options: ImportOptions, now: float) -> list[FileSeries]:
    faults = Faults("row", most=_LISTED if options.skip_bad else SHOWN)
    return _assembled(read_table(table, layout, options.date_format, faults), layout, options, faults, now)


def _assembled(rows: Rows, layout: Layout, options: ImportOptions, faults: Faults, now: float) -> list[FileSeries]:
    """Returns the series. Raises `BadBars` if there are faults: they may be why the file as a whole looks wrong."""
    try:
        found = assemble(rows, layout, options, faults, now)
    except InputError:
        if not (options.skip_bad and faults.counts):
            faults.refuse()
            raise
        found = []
    if not faults.counts:
        return found
    if not options.skip_bad:
        faults.refuse()
    return _without_bad_rows(rows, layout, options, faults, now)


def _without_bad_rows(
    rows: Rows, layout: Layout, options: ImportOptions, faults: Faults, now: float
) -> list[FileSeries]:
    """Returns the series of the rows without faults, with a note that lists the others.

    Rows that were hidden by worse ones, such as a bar that differs from one of the same time, are found in further rounds.
    Raises `BadBars` if more than half of the rows are bad: then the file is read wrongly.
    """
    total = len({*rows.places.tolist(), *faults.rows})
    while 2 * len(faults.rows) <= total:
        rows = rows.take(~np.isin(rows.places, list(faults.rows)))
        again = Faults(faults.place, most=faults.most)
        try:
            found = assemble(rows, layout, options, again, now)
        except InputError:
            if not again.counts:
                raise
        if not again.counts:
            note = "\n".join([f"{counted(len(faults.rows), 'bad row')} skipped:", *faults.listing()])
            return [replace(each, notes=(*each.notes, note)) for each in found]
        faults.join(again)
    faults.refuse(f"; --skip-bad leaves out at most half of the {total:,} rows")
    raise AssertionError
