"""The SQLite buffer in front of the Parquet files: new bars, what is covered, who may write.

One file per tree, in WAL mode with full synchronisation, so that a committed bar survives kill −9 and power loss and any
number of processes may share it. Its write lock is also what serialises changes of the month files.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.errors import StoreError
from openbell.market.instruments import Instrument, parse
from openbell.market.provenance import Origin, Source
from openbell.market.timeframes import Timeframe
from openbell.stores.port import Mark, Problem, Span

log = logging.getLogger(__name__)

_SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE series (
    id INTEGER PRIMARY KEY,
    symbol TEXT NOT NULL UNIQUE,
    epoch INTEGER NOT NULL DEFAULT 0,           -- grows when anything but new bars changed
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
    PRIMARY KEY (series, start)
) STRICT, WITHOUT ROWID;
CREATE TABLE months (
    series INTEGER NOT NULL, month TEXT NOT NULL,
    origin TEXT NOT NULL, feed TEXT NOT NULL, adjustment TEXT NOT NULL,
    PRIMARY KEY (series, month)
) STRICT, WITHOUT ROWID;
CREATE TABLE leases (
    name TEXT PRIMARY KEY, token INTEGER NOT NULL, holder TEXT NOT NULL, expires REAL NOT NULL
) STRICT;
CREATE TABLE problems (at REAL NOT NULL, path TEXT NOT NULL, reason TEXT NOT NULL) STRICT;
CREATE TABLE counter (seq INTEGER NOT NULL) STRICT;
INSERT INTO counter VALUES (0);
"""
_UPSERT = """
INSERT INTO bars (series, time, seq, data) VALUES (?, ?, ?, ?)
ON CONFLICT (series, time) DO UPDATE SET seq = excluded.seq, data = excluded.data WHERE data <> excluded.data
"""


class Buffer:
    """Typed access to the buffer's tables; every write happens inside `transaction`."""

    def __init__(self, path: Path, busy_seconds: float = 30.0) -> None:
        self.path = path
        self._busy = busy_seconds
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._guard = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        damage = self._prepare()
        if damage:
            aside = path.with_name(f"{path.name}.corrupt-{time.time_ns()}")
            self.close()
            path.replace(aside)
            for rest in ("-wal", "-shm"):
                path.with_name(path.name + rest).unlink(missing_ok=True)
            log.error("set aside %s: %s", aside, damage)
            self._prepare()
            with self.transaction() as db:
                db.execute("INSERT INTO problems VALUES (?, ?, ?)", (time.time(), str(aside), damage))

    def _prepare(self) -> str:
        """Make or check the tables; what is wrong with the file if it is no database at all."""
        try:
            version = self._version(self.db)
            if version == 0:
                with self.transaction() as db:
                    if self._version(db) == 0:
                        for statement in _SCHEMA.split(";\n"):
                            db.execute(statement)
                        db.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
                version = _SCHEMA_VERSION
        except (StoreError, sqlite3.DatabaseError) as error:
            cause = error.__cause__ if isinstance(error, StoreError) else error
            if isinstance(cause, sqlite3.DatabaseError) and not isinstance(cause, sqlite3.OperationalError):
                return str(cause)
            raise
        if version != _SCHEMA_VERSION:
            raise StoreError(f"{self.path} is of version {version}, this Openbell reads version {_SCHEMA_VERSION}")
        return ""

    @staticmethod
    def _version(db: sqlite3.Connection) -> int:
        return int(db.execute("PRAGMA user_version").fetchone()[0])

    @property
    def db(self) -> sqlite3.Connection:
        """This thread's connection."""
        try:
            return self._local.db  # type: ignore[no-any-return]
        except AttributeError:
            pass
        try:
            db = sqlite3.connect(self.path, timeout=self._busy, isolation_level=None, check_same_thread=False)
            db.execute(f"PRAGMA busy_timeout = {int(self._busy * 1000)}")
            _enter_wal(db, self._busy)
            db.execute("PRAGMA synchronous = FULL")
        except sqlite3.Error as error:
            raise StoreError(f"cannot open {self.path}: {error}") from error
        self._local.db = db
        with self._guard:
            self._opened.append(db)
        return db

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A write that happens wholly or not at all, durable when the block ends."""
        try:
            db = self.db
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    db.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise StoreError(f"{self.path}: {error}") from error

    def close(self) -> None:
        """Close every thread's connection."""
        with self._guard:
            for db in self._opened:
                db.close()
            self._opened.clear()
        self._local = threading.local()

    # Series

    def series(self, instrument: Instrument) -> int | None:
        """The number of a series, if it has one."""
        row = self.db.execute("SELECT id FROM series WHERE symbol = ?", (instrument.symbol,)).fetchone()
        return row[0] if row else None

    def claim_series(self, db: sqlite3.Connection, instrument: Instrument) -> int:
        """The number of a series, made if need be."""
        db.execute("INSERT OR IGNORE INTO series (symbol) VALUES (?)", (instrument.symbol,))
        row = db.execute("SELECT id FROM series WHERE symbol = ?", (instrument.symbol,)).fetchone()
        return int(row[0])

    def state(self, instrument: Instrument) -> tuple[int, int, int, int]:
        """Epoch, version, compacted_seq and compacted_from of a series; zeros if it is unknown."""
        row = self.db.execute(
            "SELECT epoch, version, compacted_seq, compacted_from FROM series WHERE symbol = ?", (instrument.symbol,)
        ).fetchone()
        return row or (0, 0, 0, 0)

    def buffered(self) -> list[Instrument]:
        """Every instrument that has bars in the buffer."""
        rows = self.db.execute(
            "SELECT symbol FROM series WHERE EXISTS (SELECT 1 FROM bars WHERE series = series.id)"
        ).fetchall()
        return [parse(row[0]) for row in rows]

    # Bars

    @staticmethod
    def next_seq(db: sqlite3.Connection) -> int:
        """The number of this transaction."""
        db.execute("UPDATE counter SET seq = seq + 1")
        return int(db.execute("SELECT seq FROM counter").fetchone()[0])

    @staticmethod
    def put(db: sqlite3.Connection, series: int, bars: Bars, seq: int) -> None:
        """Insert or correct bars; those that are there already stay untouched."""
        packed = np.column_stack(bars.columns()[1:]).astype("<f8").tobytes()
        rows = ((series, t, seq, packed[i * 40 : i * 40 + 40]) for i, t in enumerate(bars.time.tolist()))
        db.executemany(_UPSERT, rows)
        db.execute("UPDATE series SET version = ? WHERE id = ?", (seq, series))

    def get(self, instrument: Instrument, start: int, end: int, newest: int | None = None) -> Bars:
        """Buffered bars in [start, end), the `newest` of them if a number is given."""
        series = self.series(instrument)
        if series is None:
            return barlib.empty(instrument)
        rows = self.db.execute(
            "SELECT time, data FROM bars WHERE series = ? AND time >= ? AND time < ? ORDER BY time DESC LIMIT ?",
            (series, start, end, -1 if newest is None else newest),
        ).fetchall()
        if not rows:
            return barlib.empty(instrument)
        rows.reverse()
        times, blobs = zip(*rows, strict=True)
        values = np.frombuffer(b"".join(blobs), dtype="<f8").reshape(-1, 5)
        return barlib.make(instrument, Timeframe.M1, times, *(values[:, column] for column in range(5)))

    def earliest_since(self, instrument: Instrument, version: int) -> int | None:
        """The earliest buffered bar that was written after `version`."""
        row = self.db.execute(
            "SELECT min(b.time) FROM bars b JOIN series s ON s.id = b.series WHERE s.symbol = ? AND b.seq > ?",
            (instrument.symbol, version),
        ).fetchone()
        return row[0] if row else None

    # Coverage

    @staticmethod
    def cover(db: sqlite3.Connection, series: int, span: Span) -> None:
        """Add a span to what is covered, joined with those it touches."""
        touching = db.execute(
            "SELECT min(start), max(end) FROM coverage WHERE series = ? AND start <= ? AND end >= ?",
            (series, span.end, span.start),
        ).fetchone()
        start = span.start if touching[0] is None else min(span.start, touching[0])
        end = span.end if touching[1] is None else max(span.end, touching[1])
        db.execute("DELETE FROM coverage WHERE series = ? AND start >= ? AND end <= ?", (series, start, end))
        db.execute("INSERT INTO coverage VALUES (?, ?, ?)", (series, start, end))

    @staticmethod
    def uncover(db: sqlite3.Connection, series: int, span: Span) -> None:
        """Take a span out of what is covered."""
        rows = db.execute(
            "SELECT start, end FROM coverage WHERE series = ? AND start < ? AND end > ?", (series, span.end, span.start)
        ).fetchall()
        for start, end in rows:
            db.execute("DELETE FROM coverage WHERE series = ? AND start = ?", (series, start))
            if start < span.start:
                db.execute("INSERT INTO coverage VALUES (?, ?, ?)", (series, start, span.start))
            if end > span.end:
                db.execute("INSERT INTO coverage VALUES (?, ?, ?)", (series, span.end, end))

    def gaps(self, instrument: Instrument, span: Span) -> list[Span]:
        """What of `span` is not covered."""
        rows = self.db.execute(
            "SELECT c.start, c.end FROM coverage c JOIN series s ON s.id = c.series"
            " WHERE s.symbol = ? AND c.start < ? AND c.end > ? ORDER BY c.start",
            (instrument.symbol, span.end, span.start),
        ).fetchall()
        found, at = [], span.start
        for start, end in rows:
            if start > at:
                found.append(Span(at, start))
            at = max(at, end)
        if at < span.end:
            found.append(Span(at, span.end))
        return found

    # Provenance and problems

    @staticmethod
    def month_source(db: sqlite3.Connection, series: int, month: str) -> Source | None:
        """What the month's bars are marked with."""
        row = db.execute(
            "SELECT origin, feed, adjustment FROM months WHERE series = ? AND month = ?", (series, month)
        ).fetchone()
        return Source(Origin(row[0]), row[1], row[2]) if row else None

    @staticmethod
    def set_month_source(db: sqlite3.Connection, series: int, month: str, source: Source) -> None:
        """Mark a month."""
        db.execute(
            "INSERT OR REPLACE INTO months VALUES (?, ?, ?, ?, ?)",
            (series, month, source.origin.value, source.feed, source.adjustment),
        )

    def problems(self) -> list[Problem]:
        """What was set aside."""
        rows = self.db.execute("SELECT at, path, reason FROM problems ORDER BY at").fetchall()
        return [Problem(*row) for row in rows]

    def mark(self, instrument: Instrument) -> Mark:
        """The state to compare with later."""
        epoch, version, _, _ = self.state(instrument)
        return Mark(epoch, version)


def _enter_wal(db: sqlite3.Connection, busy_seconds: float) -> None:
    """Switch to WAL; when several processes make the file at once the busy time-out does not apply to this step."""
    deadline = time.monotonic() + busy_seconds
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return
