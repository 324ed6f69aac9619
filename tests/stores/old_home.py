"""A home as the version before native series left it: minutes in monthly files and in a buffer of schema 2.

    python -m tests.stores.old_home FOLDER STATEMENT

opens the folder of bars and kills itself before the SQL statement of that number; prints `opened` if there are fewer.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest import mock

from openbell.market.bars import merge
from openbell.stores.parquet import ParquetStore
from openbell.stores.port import Span
from tests.stores.lean import without_pandas
from tests.stores.samples import DAY, FILE, LIVE, MANY, MINUTE, OCTOBER, SEPTEMBER, minutes_of, run

SCHEMA_2 = """
CREATE TABLE series (
    id INTEGER PRIMARY KEY,
    symbol TEXT NOT NULL UNIQUE,
    epoch INTEGER NOT NULL DEFAULT 0,           -- grows when anything but new bars changed; odd: a file is changing
    version INTEGER NOT NULL DEFAULT 0,         -- seq of the last write
    compacted_seq INTEGER NOT NULL DEFAULT 0,   -- bars up to this seq may have left the buffer,
    compacted_from INTEGER NOT NULL DEFAULT 0   -- none of them earlier than this time
) STRICT;
CREATE TABLE bars (
    series INTEGER NOT NULL, time INTEGER NOT NULL, seq INTEGER NOT NULL,
    data BLOB NOT NULL,                         -- open, high, low, close, volume as little-endian doubles
    PRIMARY KEY (series, time)
) STRICT, WITHOUT ROWID;
CREATE TABLE coverage (
    series INTEGER NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL,
    written REAL NOT NULL DEFAULT 0,            -- the machine's time at which the end was written
    PRIMARY KEY (series, start)
) STRICT, WITHOUT ROWID;
CREATE TABLE months (
    series INTEGER NOT NULL, month TEXT NOT NULL,
    origin TEXT NOT NULL, feed TEXT NOT NULL, adjustment TEXT NOT NULL,
    PRIMARY KEY (month, series)
) STRICT, WITHOUT ROWID;
CREATE TABLE leases (
    name TEXT PRIMARY KEY, token INTEGER NOT NULL, holder TEXT NOT NULL, expires REAL NOT NULL
) STRICT;
CREATE TABLE problems (at REAL NOT NULL, path TEXT NOT NULL, reason TEXT NOT NULL) STRICT;
CREATE TABLE counter (seq INTEGER NOT NULL) STRICT;
"""
TABLES = ("series", "bars", "coverage", "months", "leases", "problems", "counter")
BTC, AAPL = minutes_of("BTC/USD"), minutes_of("AAPL")
STORED = {
    BTC: merge(run(BTC, OCTOBER - DAY, MANY), run(BTC, OCTOBER - DAY + 2490 * MINUTE, 200, 2)),
    AAPL: run(AAPL, SEPTEMBER + 14 * 3600, 300, 3),
}
COVERED = Span(SEPTEMBER, OCTOBER + 20 * DAY)


def make_old_bars(folder: Path) -> None:
    """Write a folder of bars: a month in a file and in the buffer, one in the buffer only, a lease that has expired."""
    with closing(ParquetStore(folder)) as store:
        store.write([run(BTC, OCTOBER - DAY, MANY)], LIVE, covers=COVERED)
        store.write([run(BTC, OCTOBER - DAY + 2490 * MINUTE, 200, 2)], LIVE, covers=COVERED)
        store.write([STORED[AAPL]], FILE, covers=COVERED)
        store.acquire("collector", "process 1 of another machine", 0)
    new, old = folder / "buffer.sqlite", folder / "old.sqlite"
    with closing(sqlite3.connect(old)) as db:
        db.executescript(SCHEMA_2)
        db.execute("ATTACH ? AS new", (str(new),))
        for table in TABLES:
            columns = ", ".join(row[1] for row in db.execute(f"PRAGMA main.table_info({table})"))
            db.execute(f"INSERT INTO main.{table} SELECT {columns} FROM new.{table}")
        number = db.execute("PRAGMA new.application_id").fetchone()[0]
        db.execute(f"PRAGMA main.application_id = {number}")
        db.execute("PRAGMA main.user_version = 2")
        db.commit()
        db.execute("DETACH new")
        db.execute("PRAGMA journal_mode = WAL")
    for left in folder.glob("buffer.sqlite*"):
        left.unlink()
    old.rename(new)


def open_and_die(folder: Path, number: int) -> None:
    """Open the folder and kill this process before a statement."""
    left = [number]

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1
            return super().execute(sql, *values)

    connect = sqlite3.connect
    with mock.patch.object(sqlite3, "connect", lambda *a, **k: connect(*a, **{"factory": Connection, **k})):
        ParquetStore(folder)
    print("opened", flush=True)


if __name__ == "__main__":
    without_pandas()
    open_and_die(Path(sys.argv[1]), int(sys.argv[2]))
