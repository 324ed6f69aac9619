"""Coverage: the spans of a series in which the store has every bar that the feed has. Kept in the buffer's own table.

Rows may overlap. Each holds the machine's time at which its end was written: a row that ends after that time is premature,
because its last bars had not closed.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Sequence

from openbell.market.bars import MINUTE
from openbell.market.series import series_of
from openbell.stores.port import Premature, Span
from openbell.stores.sqlite_file import SqliteFile

_CLOCK_STEP = 60.0
"""Seconds by which the machine's time may be set back without making coverage premature."""


def cover(db: sqlite3.Connection, numbers: Sequence[int], span: Span) -> None:
    """Add a span to the coverage of several series, with the machine's time."""
    if span.start >= span.end:
        return
    now = time.time()
    chosen = ",".join(map(str, numbers))
    # Premature rows are not extended: as part of a longer row they would no longer be found.
    extended = {
        row[0]
        for row in db.execute(
            "UPDATE coverage SET written = CASE WHEN end < ? THEN ? ELSE written END, end = max(end, ?)"
            f" WHERE start <= ? AND end >= ? AND end <= written AND series IN ({chosen}) RETURNING series",
            (span.end, now, span.end, span.start, span.start),
        )
    }
    # An extended row may now overlap the next one, which `gaps` allows.
    for number in numbers:
        if number not in extended:
            _insert_joined(db, number, span, now)


def uncover(db: sqlite3.Connection, number: int, span: Span) -> None:
    """Remove a span from the coverage of a series."""
    touched = (number, span.end, span.start)
    rows = db.execute(
        "SELECT start, end, written FROM coverage WHERE series = ? AND start < ? AND end > ?", touched
    ).fetchall()
    db.execute("DELETE FROM coverage WHERE series = ? AND start < ? AND end > ?", touched)
    for start, end, written in rows:
        for left, right in ((start, span.start), (span.end, end)):
            if left < right:
                _insert(db, number, Span(left, right), written)


def gaps(buffer: SqliteFile, name: str, span: Span) -> list[Span]:
    """The parts of `span` that are not covered in the series of a name."""
    rows = buffer.query(
        "SELECT c.start, c.end FROM coverage c JOIN series s ON s.id = c.series"
        " WHERE s.symbol = ? AND c.start < ? AND c.end > ? ORDER BY c.start",
        *(name, span.end, span.start),
    )
    found, at = [], span.start
    for start, end in rows:
        if start > at:
            found.append(Span(at, start))
        at = max(at, end)
    if at < span.end:
        found.append(Span(at, span.end))
    return found


def joined(spans: Iterable[Span]) -> list[Span]:
    """Returns spans in order; those that touch are joined."""
    found: list[Span] = []
    for span in sorted(spans, key=lambda each: each.start):
        if found and span.start <= found[-1].end:
            found[-1] = Span(found[-1].start, max(found[-1].end, span.end))
        elif span.start < span.end:
            found.append(span)
    return found


def premature(buffer: SqliteFile) -> list[Premature]:
    """Coverage that ends after the machine's time at which it was written, or that was written in the future.

    Series of resampled bars (`SYMBOL@TIMEFRAME`) are left out: no feed delivered them.
    """
    rows = buffer.query(
        "SELECT s.symbol, c.start, c.end, c.written FROM coverage c JOIN series s ON s.id = c.series"
        " WHERE s.symbol NOT LIKE '%@%' AND (c.end > c.written OR c.written > ?) ORDER BY s.symbol, c.start",
        ahead := time.time() + _CLOCK_STEP,
    )
    return [
        # If the machine's time was wrong when this was written, it may have been wrong for the whole span.
        Premature(series_of(symbol), Span(start if written > ahead else max(start, minute(written)), end), written)
        for symbol, start, end, written in rows
    ]


def remove_premature(db: sqlite3.Connection, number: int, found: Premature) -> None:
    """Remove premature coverage, but nothing that other writes have covered since."""
    where = (number, found.span.start, found.span.end, found.written)
    db.execute("DELETE FROM coverage WHERE series = ? AND start >= ? AND end = ? AND written = ?", where)
    db.execute(
        "UPDATE coverage SET end = ? WHERE series = ? AND start < ? AND end = ? AND written = ?",
        (found.span.start, *where),
    )


def minute(epoch: float) -> int:
    """The start of the minute that contains a time."""
    return int(epoch // MINUTE * MINUTE)


def _insert_joined(db: sqlite3.Connection, number: int, span: Span, written: float) -> None:
    """Insert a span, replacing the rows that start inside it and are contained in it or not premature."""
    touched = (
        "FROM coverage WHERE series = ? AND start >= ? AND start <= ? AND (end <= ? OR end <= written)",
        (number, span.start, span.end, span.end),
    )
    rows = db.execute(f"SELECT end, written {touched[0]}", touched[1]).fetchall()
    db.execute(f"DELETE {touched[0]}", touched[1])
    end, written = max([(span.end, written), *rows])
    _insert(db, number, Span(span.start, end), written)


def _insert(db: sqlite3.Connection, number: int, span: Span, written: float) -> None:
    """Insert a row; of two rows with the same start the longer one is kept."""
    db.execute(
        "INSERT INTO coverage VALUES (?, ?, ?, ?) ON CONFLICT (series, start) DO UPDATE SET"
        " written = CASE WHEN excluded.end > end THEN excluded.written ELSE written END,"
        " end = max(end, excluded.end)",
        (number, span.start, span.end, written),
    )
