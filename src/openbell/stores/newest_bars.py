"""The latest bar of every native series, kept in the buffer's own table, so that thousands of them are read with one query.

A row is valid only at the epoch of its series at which it was written: whatever else changes the series makes it invalid.
"""

from __future__ import annotations

import sqlite3

import numpy as np

from openbell.market.bars import Bars, bucket_bounds
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.series import Series, series_of
from openbell.market.timeframes import ALL_NAMES, Timeframe, name_of
from openbell.stores.sqlite_file import SqliteFile


def record(db: sqlite3.Connection, number: int, written: Bars) -> bool:
    """Record the latest of the bars that a finished change has written, if it or the recorded one is the latest.

    To be called after `Buffer.end_change`. Returns False if the bar before the change is not known.
    """
    epoch = int(db.execute("SELECT epoch FROM series WHERE id = ?", (number,)).fetchone()[0])
    row = db.execute("SELECT epoch, time, data FROM newest WHERE series = ?", (number,)).fetchone()
    if row is None or row[0] != epoch - 2:  # a change adds 2
        return False
    time, data = max((row[1], row[2]), _packed(written), key=lambda each: each[0])
    if time == written.time[-1]:
        data = _packed(written)[1]
    _put(db, number, epoch, time, data)
    return True


def set_latest(db: sqlite3.Connection, number: int, latest: Bars) -> None:
    """Record the latest bar of a series as it is now."""
    epoch = int(db.execute("SELECT epoch FROM series WHERE id = ?", (number,)).fetchone()[0])
    _put(db, number, epoch, *_packed(latest))


def forget(db: sqlite3.Connection, number: int) -> None:
    """Remove the recorded bar of a series: bars are about to be removed."""
    db.execute("DELETE FROM newest WHERE series = ?", (number,))


def recorded(buffer: SqliteFile, timeframe: Timeframe, end: int) -> tuple[dict[Instrument, Bars], list[Series]]:
    """Returns the latest bars that had closed at `end` by instrument, and the series that must be read one by one."""
    rows = buffer.query(
        "SELECT s.symbol, n.time, n.data, s.epoch = n.epoch FROM series s LEFT JOIN newest n ON n.series = s.id"
        " WHERE s.symbol LIKE ? AND EXISTS (SELECT 1 FROM months m WHERE m.series = s.id)",
        f"% {name_of(timeframe, ALL_NAMES)}",
    )
    known = sorted((row for row in rows if row[3]), key=lambda row: row[1])
    names = [series_of(row[0]) for row in known]
    times = np.array([row[1] for row in known], dtype=np.int64)
    closed = np.zeros(len(known), dtype=bool)
    for kind in AssetClass:
        of_kind = np.array([series.instrument.asset_class is kind for series in names], dtype=bool)
        if of_kind.any():
            example = names[int(of_kind.argmax())].instrument
            closed[of_kind] = bucket_bounds(example, timeframe, times[of_kind])[1] <= end
    values = np.frombuffer(b"".join(row[2] for row in known), dtype="<f8").reshape(-1, 5)
    found = {}
    for at in np.flatnonzero(closed).tolist():
        instrument, one = names[at].instrument, slice(at, at + 1)
        found[instrument] = Bars(instrument, timeframe, times[one], *(values[one, column] for column in range(5)))
    unclosed = [names[at] for at in np.flatnonzero(~closed).tolist()]
    return found, [*unclosed, *(series_of(row[0]) for row in rows if not row[3])]


def _packed(bars: Bars) -> tuple[int, bytes]:
    values = np.array([column[-1] for column in bars.columns()[1:]], dtype="<f8")
    return int(bars.time[-1]), values.tobytes()


def _put(db: sqlite3.Connection, number: int, epoch: int, time: int, data: bytes) -> None:
    db.execute("INSERT OR REPLACE INTO newest VALUES (?, ?, ?, ?)", (number, epoch, time, data))
