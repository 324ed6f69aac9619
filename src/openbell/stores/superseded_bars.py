"""Bars that were replaced by bars of another source but are still in their file, kept in the buffer's own table.

Two files cannot change at the same instant. So the transaction that adds the file of the new bars also records which bars of
other files no longer count, and readers leave them out; they are removed from their files afterwards.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from openbell.market.bars import Bars, merge
from openbell.market.series import Series, series_of
from openbell.stores.periods import FIRST, LAST
from openbell.stores.port import Span
from openbell.stores.sqlite_file import SqliteFile


def add(db: sqlite3.Connection, number: int, period: str, span: Span) -> None:
    """Record that the bars of a span no longer count in the file of a period."""
    db.execute("INSERT INTO removals VALUES (?, ?, ?, ?)", (number, period, span.start, span.end))


def clear(db: sqlite3.Connection, number: int, period: str) -> None:
    """Remove the records of a period: its file has no such bars any more."""
    db.execute("DELETE FROM removals WHERE series = ? AND period = ?", (number, period))


def recorded(buffer: SqliteFile, series: Series) -> dict[str, list[Span]]:
    """The spans of a series whose bars do not count, by period."""
    rows = buffer.query(
        "SELECT r.period, r.start, r.end FROM removals r JOIN series s ON s.id = r.series WHERE s.symbol = ?",
        series.name,
    )
    found: dict[str, list[Span]] = {}
    for period, start, end in rows:
        found.setdefault(period, []).append(Span(start, end))
    return found


def pending(buffer: SqliteFile) -> list[tuple[Series, str]]:
    """The series and periods whose files hold bars that do not count."""
    rows = buffer.query("SELECT DISTINCT s.symbol, r.period FROM removals r JOIN series s ON s.id = r.series")
    return [(series_of(symbol), period) for symbol, period in rows]


def without(bars: Bars, spans: Iterable[Span]) -> Bars:
    """Bars without those that open in one of the spans."""
    for span in spans:
        bars = merge(bars.between(FIRST, span.start), bars.between(span.end, LAST))
    return bars
