"""The SQLite buffer in front of the long-term bars: new bars, coverage, the source of each month, leases.

One file per folder of bars, in WAL mode with full synchronisation: a committed bar survives kill −9 and power loss, and any
number of processes may share the file. Its write lock also serialises changes of the month files.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby, repeat
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.instruments import Instrument, parse
from openbell.market.provenance import Origin, Source
from openbell.market.timeframes import Timeframe
from openbell.stores.port import Problem, Span, Version
from openbell.stores.sqlite_file import SqliteFile

_SCHEMA_VERSION = 2
_SCHEMA = """
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
INSERT INTO counter VALUES (0);
"""
_UPGRADES = {
    # When older coverage was written is unknown, but not later than now.
    1: """
ALTER TABLE coverage ADD COLUMN written REAL NOT NULL DEFAULT 0;
UPDATE coverage SET written = CAST(strftime('%s', 'now') AS REAL);
""",
}
_FEW = 3
"""Series of which one query each is quicker than one query for all."""
_UPSERT = """
INSERT INTO bars (series, time, seq, data) VALUES (?, ?, ?, ?)
ON CONFLICT (series, time) DO UPDATE SET seq = excluded.seq, data = excluded.data WHERE data <> excluded.data
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
        super().__init__(path, _SCHEMA + extra_tables, _SCHEMA_VERSION, _UPGRADES)

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

    def find_series(self, instrument: Instrument) -> int | None:
        """The id of an instrument's series; None if it has no series."""
        rows = self.query("SELECT id FROM series WHERE symbol = ?", instrument.symbol)
        return rows[0][0] if rows else None

    def ensure_series(self, db: sqlite3.Connection, name: str) -> int:
        """The id of the series of a symbol or other name, created if needed."""
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

    def state(self, instrument: Instrument) -> SeriesState:
        """The state of a series.

        A new or unknown series starts with the file's random number as its epoch, so that no `Version` of another file fits.
        """
        rows = self.query(
            "SELECT epoch, version, compacted_seq, compacted_from FROM series WHERE symbol = ?", instrument.symbol
        )
        return SeriesState(*(rows[0] if rows else (self.query("PRAGMA application_id")[0][0], 0, 0, 0)))

    def version(self, instrument: Instrument) -> Version:
        """See the port."""
        state = self.state(instrument)
        return Version(state.epoch, state.version)

    def begin_change(self, db: sqlite3.Connection, series: int) -> None:
        """Make readers read everything again until `end_change`, even if this process is killed before."""
        db.execute("UPDATE series SET epoch = epoch + 1 WHERE id = ? AND epoch % 2 = 0", (series,))

    def end_change(self, db: sqlite3.Connection, series: int) -> None:
        """Make readers read everything again once: more than the buffer's new bars has changed."""
        db.execute(
            "UPDATE series SET epoch = epoch + 2 - epoch % 2, version = ? WHERE id = ?", (self.next_seq(db), series)
        )

    def end_compaction(self, db: sqlite3.Connection, series: int, first: int) -> None:
        """Record that bars from the time `first` on may have left the buffer."""
        db.execute(
            "UPDATE series SET epoch = epoch + epoch % 2, compacted_seq = version, compacted_from ="
            " CASE WHEN compacted_seq = 0 THEN ? ELSE min(compacted_from, ?) END WHERE id = ?",
            (first, first, series),
        )

    def instruments(self) -> list[Instrument]:
        """Every instrument that has bars in the buffer."""
        rows = self.query("SELECT symbol FROM series WHERE EXISTS (SELECT 1 FROM bars WHERE series = series.id)")
        return [parse(row[0]) for row in rows]

    # Bars

    @staticmethod
    def next_seq(db: sqlite3.Connection) -> int:
        """A new number for this transaction."""
        db.execute("UPDATE counter SET seq = seq + 1")
        return int(db.execute("SELECT seq FROM counter").fetchone()[0])

    @staticmethod
    def put(db: sqlite3.Connection, parts: Sequence[tuple[int, Bars]], seq: int) -> None:
        """Insert or correct bars of several series at once. Rows that would not change keep their seq."""
        if not parts:
            return
        columns = [np.concatenate(group) for group in zip(*(bars.columns() for _, bars in parts), strict=True)]
        packed = np.column_stack(columns[1:]).astype("<f8").tobytes()
        ids = chain.from_iterable(repeat(series, len(bars)) for series, bars in parts)
        times = columns[0].tolist()
        db.executemany(
            _UPSERT,
            (
                (series, t, seq, packed[i * 40 : i * 40 + 40])
                for i, (series, t) in enumerate(zip(ids, times, strict=True))
            ),
        )
        # The ids are our own integers, written into the statement: one statement is faster than five hundred.
        chosen = ",".join(str(series) for series, _ in parts)
        db.execute(f"UPDATE series SET version = ?, epoch = epoch + epoch % 2 WHERE id IN ({chosen})", (seq,))

    @staticmethod
    def delete(db: sqlite3.Connection, series: int, span: Span) -> None:
        """Remove the bars of a span."""
        db.execute("DELETE FROM bars WHERE series = ? AND time >= ? AND time < ?", (series, span.start, span.end))

    @staticmethod
    def delete_times(db: sqlite3.Connection, series: int, times: Iterable[int]) -> None:
        """Remove the bars that opened at some times."""
        db.executemany("DELETE FROM bars WHERE series = ? AND time = ?", ((series, t) for t in times))

    def get(self, instrument: Instrument, start: int, end: int, newest: int | None = None) -> Bars:
        """Buffered bars in [start, end); only the latest `newest` of them if that is given."""
        series = self.find_series(instrument)
        if series is None:
            return barlib.empty(instrument)
        rows = self.query(
            "SELECT time, data FROM bars WHERE series = ? AND time >= ? AND time < ? ORDER BY time DESC LIMIT ?",
            *(series, start, end, -1 if newest is None else newest),
        )
        if not rows:
            return barlib.empty(instrument)
        rows.reverse()
        times, blobs = zip(*rows, strict=True)
        values = np.frombuffer(b"".join(blobs), dtype="<f8").reshape(-1, 5)
        return barlib.make(instrument, Timeframe.M1, times, *(values[:, column] for column in range(5)))

    def holds(self, instrument: Instrument, start: int, end: int) -> bool:
        """Returns True if there are buffered bars in [start, end)."""
        return len(self.get(instrument, start, end, 1)) > 0

    def new_bars(self, versions: Mapping[Instrument, Version], span: Span, covered: bool) -> dict[Instrument, Bars]:
        """See the port. Two queries for any number of instruments."""
        states = self.query(
            "SELECT id, symbol, epoch, compacted_seq, EXISTS (SELECT 1 FROM coverage c"
            " WHERE c.series = series.id AND c.start <= ? AND c.end >= ?) FROM series",
            *(span.start, span.end),
        )
        known = {symbol: state for _, symbol, *state in states}
        symbols = {number: symbol for number, symbol, *_ in states}
        quick: dict[str, Instrument] = {}
        for instrument, version in versions.items():
            epoch, compacted_seq, is_covered = known.get(instrument.symbol, (0, 0, 0))
            if epoch and epoch == version.epoch and compacted_seq <= version.seq and (is_covered or not covered):
                quick[instrument.symbol] = instrument
        chosen = ",".join(str(number) for number, symbol in symbols.items() if symbol in quick)
        rows = self.query(
            f"SELECT series, time, data FROM bars WHERE series IN ({chosen}) AND time >= ? AND time < ?"
            " ORDER BY series, time",
            *(span.start, span.end),
        )
        found = {instrument: barlib.empty(instrument) for instrument in quick.values()}
        values = np.frombuffer(b"".join(row[2] for row in rows), dtype="<f8").reshape(-1, 5)
        times = np.array([row[1] for row in rows], dtype=np.int64)
        start = 0
        for number, group in groupby(rows, key=itemgetter(0)):
            end = start + sum(1 for _ in group)
            instrument = quick[symbols[number]]
            columns = (values[start:end, column] for column in range(5))
            found[instrument] = Bars(instrument, Timeframe.M1, times[start:end], *columns)
            start = end
        return found

    def oldest(self, instrument: Instrument) -> int | None:
        """The open time of the earliest buffered bar; None if there is none."""
        return self._edge("min", instrument)

    def newest(self, instrument: Instrument) -> int | None:
        """The open time of the latest buffered bar; None if there is none."""
        return self._edge("max", instrument)

    def _edge(self, which: str, instrument: Instrument) -> int | None:
        rows = self.query(
            f"SELECT {which}(time) FROM bars WHERE series = (SELECT id FROM series WHERE symbol = ?)", instrument.symbol
        )
        return None if rows[0][0] is None else int(rows[0][0])

    def earliest_since(self, instrument: Instrument, seq: int) -> int | None:
        """The open time of the earliest buffered bar with a later number than `seq`; None if there is none."""
        rows = self.query(
            "SELECT min(b.time) FROM bars b JOIN series s ON s.id = b.series WHERE s.symbol = ? AND b.seq > ?",
            *(instrument.symbol, seq),
        )
        return None if rows[0][0] is None else int(rows[0][0])

    # The source of each month, and problems

    @staticmethod
    def month_source(db: sqlite3.Connection, series: int, month: str) -> Source | None:
        """The recorded source of a month's bars; None if none is recorded."""
        row = db.execute(
            "SELECT origin, feed, adjustment FROM months WHERE series = ? AND month = ?", (series, month)
        ).fetchone()
        return Source(Origin(row[0]), row[1], row[2]) if row else None

    def months(self, instrument: Instrument) -> set[str]:
        """The months of a series that have a recorded source."""
        return set(self.month_sources(instrument))

    def month_sources(self, instrument: Instrument) -> dict[str, Source]:
        """The recorded sources of a series, by month."""
        rows = self.query(
            "SELECT m.month, m.origin, m.feed, m.adjustment FROM months m JOIN series s ON s.id = m.series"
            " WHERE s.symbol = ?",
            instrument.symbol,
        )
        return {str(month): Source(Origin(origin), *rest) for month, origin, *rest in rows}

    @staticmethod
    def series_of_source(db: sqlite3.Connection, source: Source, month: str) -> set[int]:
        """The series whose bars of a month come from a source."""
        rows = db.execute(
            "SELECT series FROM months WHERE month = ? AND origin = ? AND feed = ? AND adjustment = ?",
            (month, source.origin.value, source.feed, source.adjustment),
        )
        return {row[0] for row in rows}

    @staticmethod
    def set_month_source(db: sqlite3.Connection, series: int, month: str, source: Source) -> None:
        """Record the source of a month's bars."""
        db.execute(
            "INSERT OR REPLACE INTO months VALUES (?, ?, ?, ?, ?)",
            (series, month, source.origin.value, source.feed, source.adjustment),
        )

    @staticmethod
    def clear_month_source(db: sqlite3.Connection, series: int, month: str) -> None:
        """Remove the recorded source of a month: it has no bars any more."""
        db.execute("DELETE FROM months WHERE series = ? AND month = ?", (series, month))

    def problems(self) -> list[Problem]:
        """Every recorded problem, oldest first."""
        rows = self.query("SELECT at, path, reason FROM problems ORDER BY at")
        return [Problem(*row) for row in rows]

    def versions(self, instruments: Iterable[Instrument]) -> dict[Instrument, Version]:
        """The states of many instruments in one query."""
        wanted = list(instruments)
        if len(wanted) <= _FEW:
            return {each: self.version(each) for each in wanted}
        known = {symbol: Version(*state) for symbol, *state in self.query("SELECT symbol, epoch, version FROM series")}
        missing = Version(self.query("PRAGMA application_id")[0][0], 0)
        return {each: known.get(each.symbol, missing) for each in wanted}
