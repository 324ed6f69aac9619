"""The SQLite buffer in front of the long-term bars: new bars, coverage, the source of each month, leases.

One file per folder of bars, in WAL mode with full synchronisation: a committed bar survives kill −9 and power loss, and any
number of processes may share the file. Its write lock also serialises changes of the month files.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby, repeat
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.instruments import Instrument
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series, series_of
from openbell.market.timeframes import Timeframe
from openbell.stores.periods import calendar_of, month_of, period_span, slug_of
from openbell.stores.port import FileProblem, Span, Version
from openbell.stores.sqlite_file import SqliteFile

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


_FEW = 3
"""Series of which one query each is quicker than one query for all."""
_UPSERT = """
INSERT INTO bars (series, time, seq, data, slug) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (series, time) DO UPDATE SET seq = excluded.seq, data = excluded.data, slug = excluded.slug
WHERE data <> excluded.data OR slug <> excluded.slug
"""


class SeriesState(NamedTuple):
    """A row of the table `series`."""

    epoch: int
    version: int
    compacted_seq: int
    compacted_from: int

    @property
    def is_changing(self) -> bool:
        """True from `begin_change` to `end_change`, also if the process was killed in between."""
        return self.epoch % 2 == 1


class Buffer(SqliteFile):
    """Typed access to the buffer's tables. Methods that take `db` must be called inside `transaction`."""

    def __init__(self, path: Path, origins: frozenset[Origin] | None = None, extra_tables: str = "") -> None:
        """`origins` are those whose bars the file may hold, None for any; `extra_tables` are SQL statements."""
        self._ids: dict[str, int] = {}
        self._origins = origins
        super().__init__(path, SCHEMA + extra_tables, VERSION)

    def clear_cache(self) -> None:
        """Forget the ids of series: a rollback may remove them."""
        self._ids.clear()

    def rejection(self) -> str:
        """Names the bars of origins that must not be here; such a buffer was copied from elsewhere."""
        if self._origins is None:
            return ""
        foreign = sorted({row[0] for row in self.query("SELECT DISTINCT origin FROM months")} - set(self._origins))
        return f"holds {', '.join(foreign)} bars, which must not be stored here" if foreign else ""

    # Series

    def find_series(self, series: Series) -> int | None:
        """The id of a series; None if it has none."""
        rows = self.query("SELECT id FROM series WHERE symbol = ?", series.name)
        return rows[0][0] if rows else None

    def ensure_series(self, db: sqlite3.Connection, name: str) -> int:
        """The id of the series of a name, created if needed."""
        if (known := self._ids.get(name)) is not None:
            return known
        row = db.execute("SELECT id FROM series WHERE symbol = ?", (name,)).fetchone()
        if row is None:
            # Not cached: this transaction may still be rolled back.
            made = db.execute(
                "INSERT INTO series (symbol, epoch) SELECT ?, application_id FROM pragma_application_id RETURNING id",
                (name,),
            )
            return int(made.fetchone()[0])
        self._ids[name] = int(row[0])
        return int(row[0])

    def state(self, series: Series) -> SeriesState:
        """The state of a series.

        A new or unknown series starts with the file's random number as its epoch, so that no `Version` of another file fits.
        """
        rows = self.query(
            "SELECT epoch, version, compacted_seq, compacted_from FROM series WHERE symbol = ?", series.name
        )
        return SeriesState(*(rows[0] if rows else (self.query("PRAGMA application_id")[0][0], 0, 0, 0)))

    def version(self, series: Series) -> Version:
        """See the port."""
        state = self.state(series)
        return Version(state.epoch, state.version)

    @staticmethod
    def begin_change(db: sqlite3.Connection, number: int) -> int:
        """Make readers read everything again until `end_change`, even if this process is killed before.

        Returns the new epoch. It is another one if an earlier change was announced and not ended: bars that this process
        does not know may have been stored.
        """
        query = "UPDATE series SET epoch = epoch + 1 + epoch % 2 WHERE id = ? RETURNING epoch"
        return int(db.execute(query, (number,)).fetchall()[0][0])

    def end_change(self, db: sqlite3.Connection, number: int) -> None:
        """Make readers read everything again once: more than the buffer's new bars has changed."""
        db.execute(
            "UPDATE series SET epoch = epoch + 2 - epoch % 2, version = ? WHERE id = ?", (self.next_seq(db), number)
        )

    def reread(self, db: sqlite3.Connection, number: int) -> None:
        """Make readers read everything again once. A change that another process has announced is not ended."""
        db.execute("UPDATE series SET epoch = epoch + 2, version = ? WHERE id = ?", (self.next_seq(db), number))

    def touch(self, db: sqlite3.Connection, number: int) -> None:
        """Make the version of a series another one although no bar has changed."""
        db.execute("UPDATE series SET version = ? WHERE id = ?", (self.next_seq(db), number))

    def end_compaction(self, db: sqlite3.Connection, number: int, first: int) -> None:
        """Record that bars from the time `first` on may have left the buffer."""
        db.execute(
            "UPDATE series SET epoch = epoch + epoch % 2, compacted_seq = version, compacted_from ="
            " CASE WHEN compacted_seq = 0 THEN ? ELSE min(compacted_from, ?) END WHERE id = ?",
            (first, first, number),
        )

    def buffered(self) -> list[Series]:
        """Every series that has bars in the buffer."""
        rows = self.query("SELECT symbol FROM series WHERE EXISTS (SELECT 1 FROM bars WHERE series = series.id)")
        return [series_of(row[0]) for row in rows]

    # Bars

    @staticmethod
    def next_seq(db: sqlite3.Connection) -> int:
        """A new number for this transaction."""
        db.execute("UPDATE counter SET seq = seq + 1")
        return int(db.execute("SELECT seq FROM counter").fetchone()[0])

    @staticmethod
    def put(db: sqlite3.Connection, parts: Sequence[tuple[int, Bars, str]], seq: int) -> None:
        """Insert or correct bars of several series and periods at once. Rows that would not change keep their seq."""
        if not parts:
            return
        columns = [np.concatenate(group) for group in zip(*(bars.columns() for _, bars, _ in parts), strict=True)]
        packed = np.column_stack(columns[1:]).astype("<f8").tobytes()
        owners = chain.from_iterable(repeat((number, slug_of(period)), len(bars)) for number, bars, period in parts)
        times = columns[0].tolist()
        db.executemany(
            _UPSERT,
            (
                (number, t, seq, packed[i * 40 : i * 40 + 40], slug)
                for i, ((number, slug), t) in enumerate(zip(owners, times, strict=True))
            ),
        )
        # The ids are our own integers, written into the statement: one statement is faster than five hundred.
        chosen = ",".join(str(number) for number, _, _ in parts)
        db.execute(f"UPDATE series SET version = ?, epoch = epoch + epoch % 2 WHERE id IN ({chosen})", (seq,))

    @staticmethod
    def delete(db: sqlite3.Connection, number: int, span: Span, slug: str | None = None) -> None:
        """Remove the bars of a span; only those of periods with a slug if that is given."""
        db.execute(
            "DELETE FROM bars WHERE series = ? AND time >= ? AND time < ? AND slug = coalesce(?, slug)",
            (number, span.start, span.end, slug),
        )

    @staticmethod
    def delete_times(db: sqlite3.Connection, number: int, times: Iterable[int]) -> None:
        """Remove the bars that opened at some times."""
        db.executemany("DELETE FROM bars WHERE series = ? AND time = ?", ((number, t) for t in times))

    def get(self, series: Series, start: int, end: int, newest: int | None = None, *, slug: str | None = None) -> Bars:
        """Buffered bars in [start, end); only the latest `newest`, and only those of periods with a slug, if given."""
        number = self.find_series(series)
        if number is None:
            return barlib.empty_of(series)
        rows = self.query(
            "SELECT time, data FROM bars WHERE series = ? AND time >= ? AND time < ? AND slug = coalesce(?, slug)"
            " ORDER BY time DESC LIMIT ?",
            *(number, start, end, slug, -1 if newest is None else newest),
        )
        if not rows:
            return barlib.empty_of(series)
        rows.reverse()
        times, blobs = zip(*rows, strict=True)
        values = np.frombuffer(b"".join(blobs), dtype="<f8").reshape(-1, 5)
        return barlib.make(series.instrument, series.timeframe, times, *(values[:, column] for column in range(5)))

    def holds(self, series: Series, start: int, end: int, slug: str | None = None) -> bool:
        """Returns True if there are buffered bars in [start, end), of periods with a slug if that is given."""
        return len(self.get(series, start, end, 1, slug=slug)) > 0

    def holds_all_of(self, series: Series, period: str) -> bool:
        """Returns True if bars of a period are in the buffer, so that the archive need not have any."""
        return self.holds(series, *period_span(period), slug_of(period))

    def waiting(self, series: Series, before: int) -> list[str]:
        """The periods of the buffered bars that opened before a time, sorted."""
        rows = self.query(
            "SELECT DISTINCT time / 86400, slug FROM bars WHERE series = (SELECT id FROM series WHERE symbol = ?)"
            " AND time < ?",
            *(series.name, before),
        )
        calendar = {day: calendar_of(series.timeframe, day * 86400) for day, _ in rows}
        return sorted({f"{calendar[day]}{slug and '.'}{slug}" for day, slug in rows})

    def new_bars(self, versions: Mapping[Series, Version], span: Span, covered: bool) -> dict[Series, Bars]:
        """See the port. Two queries for any number of series."""
        states = self.query(
            "SELECT id, symbol, epoch, compacted_seq, EXISTS (SELECT 1 FROM coverage c"
            " WHERE c.series = series.id AND c.start <= ? AND c.end >= ?) AND NOT EXISTS (SELECT 1 FROM months m"
            " WHERE m.series = series.id AND m.origin = ? AND m.month >= ?) FROM series"
            " WHERE symbol IN (SELECT value FROM json_each(?))",
            *(span.start, span.end, Origin.IMPORTED.value, month_of(span.start)),
            json.dumps([series.name for series in versions]),
        )
        known = {symbol: state for _, symbol, *state in states}
        symbols = {number: symbol for number, symbol, *_ in states}
        quick: dict[str, Series] = {}
        for series, version in versions.items():
            epoch, compacted_seq, is_covered = known.get(series.name, (0, 0, 0))
            if epoch and epoch == version.epoch and compacted_seq <= version.seq and (is_covered or not covered):
                quick[series.name] = series
        chosen = ",".join(str(number) for number, symbol in symbols.items() if symbol in quick)
        rows = self.query(
            f"SELECT series, time, data FROM bars WHERE series IN ({chosen}) AND time >= ? AND time < ?"
            " ORDER BY series, time",
            *(span.start, span.end),
        )
        found = {series: barlib.empty_of(series) for series in quick.values()}
        values = np.frombuffer(b"".join(row[2] for row in rows), dtype="<f8").reshape(-1, 5)
        times = np.array([row[1] for row in rows], dtype=np.int64)
        start = 0
        for number, group in groupby(rows, key=itemgetter(0)):
            end = start + sum(1 for _ in group)
            series = quick[symbols[number]]
            columns = (values[start:end, column] for column in range(5))
            found[series] = Bars(series.instrument, Timeframe.M1, times[start:end], *columns)
            start = end
        return found

    def oldest(self, series: Series) -> int | None:
        """The open time of the earliest buffered bar; None if there is none."""
        return self._edge("min", series)

    def newest(self, series: Series) -> int | None:
        """The open time of the latest buffered bar; None if there is none."""
        return self._edge("max", series)

    def _edge(self, which: str, series: Series) -> int | None:
        rows = self.query(
            f"SELECT {which}(time) FROM bars WHERE series = (SELECT id FROM series WHERE symbol = ?)", series.name
        )
        return None if rows[0][0] is None else int(rows[0][0])

    def earliest_since(self, series: Series, seq: int) -> int | None:
        """The open time of the earliest buffered bar with a later number than `seq`; None if there is none."""
        rows = self.query(
            "SELECT min(b.time) FROM bars b JOIN series s ON s.id = b.series WHERE s.symbol = ? AND b.seq > ?",
            *(series.name, seq),
        )
        return None if rows[0][0] is None else int(rows[0][0])

    # The source of each period, and problems

    @staticmethod
    def period_source(db: sqlite3.Connection, number: int, period: str) -> Source | None:
        """The recorded source of a period's bars; None if none is recorded."""
        row = db.execute(
            "SELECT origin, feed, adjustment FROM months WHERE series = ? AND month = ?", (number, period)
        ).fetchone()
        return Source(Origin(row[0]), row[1], row[2]) if row else None

    def periods(self, series: Series) -> set[str]:
        """The periods of a series that have a recorded source."""
        return set(self.period_sources(series))

    def period_sources(self, series: Series) -> dict[str, Source]:
        """The recorded sources of a series, by period."""
        rows = self.query(
            "SELECT m.month, m.origin, m.feed, m.adjustment FROM months m JOIN series s ON s.id = m.series"
            " WHERE s.symbol = ?",
            series.name,
        )
        return {str(period): Source(Origin(origin), *rest) for period, origin, *rest in rows}

    def timeframes(self, instrument: Instrument) -> list[Timeframe]:
        """See the port."""
        rows = self.query(
            "SELECT s.symbol FROM series s WHERE s.symbol > ? AND s.symbol < ?"
            " AND EXISTS (SELECT 1 FROM months m WHERE m.series = s.id)",
            *(f"{instrument.symbol} ", f"{instrument.symbol}!"),
        )
        return sorted((series_of(row[0]).timeframe for row in rows), key=lambda each: each.seconds)

    @staticmethod
    def series_of_source(db: sqlite3.Connection, source: Source, month: str) -> set[int]:
        """The series whose minutes of a month all come from a source."""
        rows = db.execute(
            "SELECT series FROM months WHERE month = ? AND origin = ? AND feed = ? AND adjustment = ?"
            " EXCEPT SELECT series FROM months WHERE month > ? AND month < ?",
            (month, source.origin.value, source.feed, source.adjustment, f"{month}.", f"{month}/"),
        )
        return {row[0] for row in rows}

    @staticmethod
    def set_period_source(db: sqlite3.Connection, number: int, period: str, source: Source) -> None:
        """Record the source of a period's bars."""
        db.execute(
            "INSERT OR REPLACE INTO months VALUES (?, ?, ?, ?, ?)",
            (number, period, source.origin.value, source.feed, source.adjustment),
        )

    @staticmethod
    def clear_period_source(db: sqlite3.Connection, number: int, period: str) -> None:
        """Remove the recorded source of a period: it has no bars any more."""
        db.execute("DELETE FROM months WHERE series = ? AND month = ?", (number, period))

    def problems(self) -> list[FileProblem]:
        """Every recorded problem, oldest first."""
        rows = self.query("SELECT at, path, reason FROM problems ORDER BY at")
        return [FileProblem(*row) for row in rows]

    def versions(self, series: Iterable[Series]) -> dict[Series, Version]:
        """The states of many series in one query."""
        wanted = list(series)
        if len(wanted) <= _FEW:
            return {each: self.version(each) for each in wanted}
        known = {symbol: Version(*state) for symbol, *state in self.query("SELECT symbol, epoch, version FROM series")}
        missing = Version(self.query("PRAGMA application_id")[0][0], 0)
        return {each: known.get(each.name, missing) for each in wanted}
