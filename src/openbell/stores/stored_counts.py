"""How many bars long-term storage holds of each period, by day, as they were written; kept in the buffer's own table.

A quiet symbol has fewer bars than minutes, so the calendar does not tell how many bars there must be. The numbers are
written in the transaction in which a file is replaced or bars leave the buffer. If fewer are found later, bars were lost.
Bars of one hour and more are counted by 30 days, those of a day and more by 364.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np

from openbell.market.errors import StoreError
from openbell.market.series import Series
from openbell.market.session_table import Times
from openbell.market.timeframes import Timeframe
from openbell.stores.buffer import Buffer
from openbell.stores.periods import period_span
from openbell.stores.port import Counted, Span, Tally
from openbell.stores.sqlite_file import SqliteFile

_DAY = 86400


def bucket_seconds(timeframe: Timeframe) -> int:
    """The length of the buckets in which bars of a timeframe are counted."""
    if not timeframe.intraday:
        return 364 * _DAY
    return _DAY if timeframe.seconds < Timeframe.H1.seconds else 30 * _DAY


def tally_of(timeframe: Timeframe, times: Times) -> dict[int, int]:
    """Count bars by their open times."""
    numbers, counts = np.unique(times // bucket_seconds(timeframe), return_counts=True)
    return dict(zip(numbers.tolist(), counts.tolist(), strict=True))


def stamp_of(path: Path) -> str:
    """Size and modification time of a file; empty if there is none. Raises `StoreError` if it cannot be read."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error}") from error
    return f"{found.st_size} {found.st_mtime_ns}"


def put(db: sqlite3.Connection, number: int, period: str, counted: Counted) -> None:
    """Record the bars of a period; no bars remove the record."""
    if not counted.tally:
        forget(db, number, period)
        return
    pairs = np.array(sorted(counted.tally.items()), dtype="<i4")
    row = (number, period, counted.last, pairs.tobytes(), counted.stamp)
    db.execute("INSERT OR REPLACE INTO stored VALUES (?, ?, ?, ?, ?)", row)


def restart(db: sqlite3.Connection, number: int, period: str) -> None:
    """Record that no bar of a period is known to be stored: its first ones are about to be written, or all removed.

    Without a record, a period that has a source and no bars would count as lost.
    """
    db.execute("INSERT OR REPLACE INTO stored VALUES (?, ?, 0, x'', '')", (number, period))


def forget(db: sqlite3.Connection, number: int, period: str) -> None:
    """Remove the record of a period: its bars have been removed."""
    db.execute("DELETE FROM stored WHERE series = ? AND period = ?", (number, period))


def get(db: sqlite3.Connection, number: int, period: str) -> Counted | None:
    """The record of one period; None if there is none."""
    row = db.execute(
        "SELECT last, counts, stamp FROM stored WHERE series = ? AND period = ?", (number, period)
    ).fetchone()
    return _counted(*row) if row else None


def recorded(buffer: SqliteFile, series: Series) -> dict[str, Counted]:
    """The records of a series, by period."""
    rows = buffer.query(
        "SELECT t.period, t.last, t.counts, t.stamp FROM stored t JOIN series s ON s.id = t.series WHERE s.symbol = ?",
        series.name,
    )
    return {period: _counted(*row) for period, *row in rows}


def periods(buffer: Buffer, series: Series) -> set[str]:
    """The periods of which an archive may hold bars: those with a source, and those with a record."""
    return buffer.periods(series) | set(recorded(buffer, series))


def lost_spans(timeframe: Timeframe, period: str, expected: Tally, found: Tally) -> list[Span]:
    """The buckets of a period with fewer bars than expected; those that touch are joined."""
    length = bucket_seconds(timeframe)
    first, last = period_span(period)
    spans: list[Span] = []
    for bucket in sorted(each for each, count in expected.items() if found.get(each, 0) < count):
        start, end = max(first, bucket * length), min(last, (bucket + 1) * length)
        if spans and spans[-1].end == start:
            start = spans.pop().start
        spans.append(Span(start, end))
    return spans


def _counted(last: int, counts: bytes, stamp: str) -> Counted:
    pairs = np.frombuffer(counts, dtype="<i4").reshape(-1, 2).tolist()
    return Counted(last, dict(pairs), stamp)
