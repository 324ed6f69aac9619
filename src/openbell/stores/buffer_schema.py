"""The tables of the buffer, and the statements that upgrade the file of an earlier version."""

from __future__ import annotations

VERSION = 5
SCHEMA = """
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
    slug TEXT NOT NULL DEFAULT '',              -- of the bar's period (`stores.periods.slug_of`)
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
    PRIMARY KEY (month, series)                 -- a month or another period of `stores.periods`
) STRICT, WITHOUT ROWID;
CREATE INDEX months_of_series ON months (series);
CREATE TABLE newest (                           -- the latest bar of a native series, valid at this epoch of the series
    series INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, time INTEGER NOT NULL, data BLOB NOT NULL
) STRICT;
CREATE TABLE removals (                         -- bars that are still in the file of a period but no longer count
    series INTEGER NOT NULL, period TEXT NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL
) STRICT;
CREATE TABLE leases (
    name TEXT PRIMARY KEY, token INTEGER NOT NULL, holder TEXT NOT NULL, expires REAL NOT NULL
) STRICT;
CREATE TABLE problems (at REAL NOT NULL, path TEXT NOT NULL, reason TEXT NOT NULL) STRICT;
CREATE TABLE counter (seq INTEGER NOT NULL) STRICT;
INSERT INTO counter VALUES (0);
"""
UPGRADES = {
    # When older coverage was written is unknown, but not later than now.
    1: """
ALTER TABLE coverage ADD COLUMN written REAL NOT NULL DEFAULT 0;
UPDATE coverage SET written = CAST(strftime('%s', 'now') AS REAL);
""",
    2: """
CREATE INDEX months_of_series ON months (series);
CREATE TABLE newest (
    series INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, time INTEGER NOT NULL, data BLOB NOT NULL
) STRICT;
""",
    3: """
CREATE TABLE removals (
    series INTEGER NOT NULL, period TEXT NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL
) STRICT;
""",
    4: """
ALTER TABLE bars ADD COLUMN slug TEXT NOT NULL DEFAULT '';
""",
}
