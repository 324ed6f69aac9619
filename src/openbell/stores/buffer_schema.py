"""The tables of the buffer."""

from __future__ import annotations

VERSION = 1
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
CREATE TABLE stored (                           -- what long-term storage holds of a period (`stores.stored_counts`)
    series INTEGER NOT NULL, period TEXT NOT NULL,
    last INTEGER NOT NULL,                      -- when the latest counted bar opened
    counts BLOB NOT NULL,                       -- pairs of little-endian integers: number of the bucket, number of bars
    stamp TEXT NOT NULL,                        -- size and time of the file; empty in a database
    PRIMARY KEY (series, period)
) STRICT, WITHOUT ROWID;
CREATE TABLE losses (                           -- bars that were lost; those that are covered again do not count
    series INTEGER NOT NULL, period TEXT NOT NULL, origin TEXT NOT NULL, feed TEXT NOT NULL, adjustment TEXT NOT NULL,
    start INTEGER NOT NULL, end INTEGER NOT NULL, written INTEGER NOT NULL, found INTEGER NOT NULL
) STRICT;
CREATE TABLE rollup_mark (seq INTEGER NOT NULL) STRICT;
CREATE TABLE leases (
    name TEXT PRIMARY KEY, token INTEGER NOT NULL, holder TEXT NOT NULL, expires REAL NOT NULL
) STRICT;
CREATE TABLE problems (at REAL NOT NULL, path TEXT NOT NULL, reason TEXT NOT NULL) STRICT;
CREATE TABLE counter (seq INTEGER NOT NULL) STRICT;
INSERT INTO counter VALUES (0);
"""
