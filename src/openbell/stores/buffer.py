"""The SQLite buffer in front of the Parquet files: new bars, what is covered, who may write.

One file per tree, in WAL mode with full synchronisation, so that a committed bar survives kill −9 and power loss and any
number of processes may share it. Its write lock is also what serialises changes of the month files.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby, repeat
from operator import itemgetter
from pathlib import Path

import numpy as np

from openbell.market import bars as barlib
from openbell.market.bars import MINUTE, Bars
from openbell.market.instruments import Instrument, parse
from openbell.market.provenance import Origin, Source
from openbell.market.timeframes import Timeframe
from openbell.stores.port import Mark, Premature, Problem, Span
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
_STEP = 60.0
"""Seconds by which the machine's time may be set back without putting coverage in doubt."""
_UPGRADES = {
    # When older coverage was written is not known: no later than now, so that its end cannot be later either.
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


class Buffer(SqliteFile):
    """Typed access to the buffer's tables; every write happens inside `transaction`."""

    def __init__(self, path: Path, origins: frozenset[Origin] | None = None, more: str = "") -> None:
        """`more` are tables beyond the buffer's own, as SQL statements."""
        self._numbers: dict[str, int] = {}
        self._origins = origins
        super().__init__(path, _SCHEMA + more, _SCHEMA_VERSION, _UPGRADES)

    def clear_cache(self) -> None:
        """Numbers given out in a transaction may be undone with the rest."""
        self._numbers.clear()

    def rejection(self) -> str:
        """A buffer with bars of an origin that has no place here was copied from elsewhere."""
        found = (
            {row[0] for row in self.query("SELECT DISTINCT origin FROM months")} if self._origins is not None else set()
        )
        foreign = sorted(found - set(self._origins or ()))
        return f"holds {', '.join(foreign)} bars, which have no place here" if foreign else ""

    # Series

    def series(self, instrument: Instrument) -> int | None:
        """The number of a series, if it has one."""
        rows = self.query("SELECT id FROM series WHERE symbol = ?", instrument.symbol)
        return rows[0][0] if rows else None

    def claim_series(self, db: sqlite3.Connection, instrument: Instrument) -> int:
        """The number of an instrument's series, made if need be."""
        return self.claim(db, instrument.symbol)

    def claim(self, db: sqlite3.Connection, name: str) -> int:
        """The number of the series of a name, made if need be."""
        if (known := self._numbers.get(name)) is not None:
            return known
        row = db.execute("SELECT id FROM series WHERE symbol = ?", (name,)).fetchone()
        if row is None:
            # Not remembered: this transaction may yet be undone.
            made = db.execute(
                "INSERT INTO series (symbol, epoch) SELECT ?, application_id FROM pragma_application_id RETURNING id",
                (name,),
            )
            return int(made.fetchone()[0])
        self._numbers[name] = int(row[0])
        return int(row[0])

    def state(self, instrument: Instrument) -> tuple[int, int, int, int]:
        """Epoch, version, compacted_seq and compacted_from of a series.

        The epoch of one that is unknown or new is the file's own number: no mark of another file fits this one.
        """
        rows = self.query(
            "SELECT epoch, version, compacted_seq, compacted_from FROM series WHERE symbol = ?", instrument.symbol
        )
        epoch, version, compacted_seq, compacted_from = (
            rows[0] if rows else (self.query("PRAGMA application_id")[0][0], 0, 0, 0)
        )
        return epoch, version, compacted_seq, compacted_from

    def buffered(self) -> list[Instrument]:
        """Every instrument that has bars in the buffer."""
        rows = self.query("SELECT symbol FROM series WHERE EXISTS (SELECT 1 FROM bars WHERE series = series.id)")
        return [parse(row[0]) for row in rows]

    # Bars

    @staticmethod
    def next_seq(db: sqlite3.Connection) -> int:
        """The number of this transaction."""
        db.execute("UPDATE counter SET seq = seq + 1")
        return int(db.execute("SELECT seq FROM counter").fetchone()[0])

    @staticmethod
    def put(db: sqlite3.Connection, parts: Sequence[tuple[int, Bars]], seq: int) -> None:
        """Insert or correct bars of several series at once; those that are there already stay untouched."""
        if not parts:
            return
        columns = [np.concatenate(group) for group in zip(*(bars.columns() for _, bars in parts), strict=True)]
        packed = np.column_stack(columns[1:]).astype("<f8").tobytes()
        numbers = chain.from_iterable(repeat(series, len(bars)) for series, bars in parts)
        times = columns[0].tolist()
        db.executemany(
            _UPSERT,
            (
                (series, t, seq, packed[i * 40 : i * 40 + 40])
                for i, (series, t) in enumerate(zip(numbers, times, strict=True))
            ),
        )
        # The numbers are our own integers: written out, because one statement beats five hundred.
        chosen = ",".join(str(series) for series, _ in parts)
        db.execute(f"UPDATE series SET version = ?, epoch = epoch + epoch % 2 WHERE id IN ({chosen})", (seq,))

    def get(self, instrument: Instrument, start: int, end: int, newest: int | None = None) -> Bars:
        """Buffered bars in [start, end), the `newest` of them if a number is given."""
        series = self.series(instrument)
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

    def news(self, marks: Mapping[Instrument, Mark], span: Span, covered: bool) -> dict[Instrument, Bars]:
        """See the port: two queries, however many instruments."""
        states = self.query(
            "SELECT id, symbol, epoch, compacted_seq, EXISTS (SELECT 1 FROM coverage c"
            " WHERE c.series = series.id AND c.start <= ? AND c.end >= ?) FROM series",
            *(span.start, span.end),
        )
        known = {symbol: state for _, symbol, *state in states}
        numbers = {number: symbol for number, symbol, *_ in states}
        quick: dict[str, Instrument] = {}
        for instrument, mark in marks.items():
            epoch, compacted_seq, is_covered = known.get(instrument.symbol, (0, 0, 0))
            if epoch and epoch == mark.epoch and compacted_seq <= mark.version and (is_covered or not covered):
                quick[instrument.symbol] = instrument
        chosen = ",".join(str(number) for number, symbol in numbers.items() if symbol in quick)
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
            instrument = quick[numbers[number]]
            columns = (values[start:end, column] for column in range(5))
            found[instrument] = Bars(instrument, Timeframe.M1, times[start:end], *columns)
            start = end
        return found

    def oldest(self, instrument: Instrument) -> int | None:
        """When the earliest buffered bar opened."""
        return self._edge("min", instrument)

    def newest(self, instrument: Instrument) -> int | None:
        """When the latest buffered bar opened."""
        return self._edge("max", instrument)

    def _edge(self, which: str, instrument: Instrument) -> int | None:
        rows = self.query(
            f"SELECT {which}(time) FROM bars WHERE series = (SELECT id FROM series WHERE symbol = ?)", instrument.symbol
        )
        return None if rows[0][0] is None else int(rows[0][0])

    def earliest_since(self, instrument: Instrument, version: int) -> int | None:
        """The earliest buffered bar that was written after `version`."""
        rows = self.query(
            "SELECT min(b.time) FROM bars b JOIN series s ON s.id = b.series WHERE s.symbol = ? AND b.seq > ?",
            *(instrument.symbol, version),
        )
        return None if rows[0][0] is None else int(rows[0][0])

    # Coverage

    @classmethod
    def cover(cls, db: sqlite3.Connection, series: Sequence[int], span: Span) -> None:
        """Add a span to what is covered in several series, with the machine's time."""
        if span.start >= span.end:
            return
        now = time.time()
        chosen = ",".join(map(str, series))
        # Coverage that was written too early (`premature`) is not extended: joined, it would no longer be found.
        extended = {
            row[0]
            for row in db.execute(
                "UPDATE coverage SET written = CASE WHEN end < ? THEN ? ELSE written END, end = max(end, ?)"
                f" WHERE start <= ? AND end >= ? AND end <= written AND series IN ({chosen}) RETURNING series",
                (span.end, now, span.end, span.start, span.start),
            )
        }
        # What grew may now reach into the next span: `gaps` does not mind. The rest is joined with what it touches.
        for number in series:
            if number not in extended:
                cls._join(db, number, span, now)

    @classmethod
    def _join(cls, db: sqlite3.Connection, series: int, span: Span, written: float) -> None:
        """Add a span, in the place of those that it holds and of those that it reaches into."""
        touched = (
            "FROM coverage WHERE series = ? AND start >= ? AND start <= ? AND (end <= ? OR end <= written)",
            (series, span.start, span.end, span.end),
        )
        rows = db.execute(f"SELECT end, written {touched[0]}", touched[1]).fetchall()
        db.execute(f"DELETE {touched[0]}", touched[1])
        end, written = max([(span.end, written), *rows])
        cls._put_row(db, series, Span(span.start, end), written)

    @staticmethod
    def _put_row(db: sqlite3.Connection, series: int, span: Span, written: float) -> None:
        """Spans may overlap; of two that begin at one time the longer stays."""
        db.execute(
            "INSERT INTO coverage VALUES (?, ?, ?, ?) ON CONFLICT (series, start) DO UPDATE SET"
            " written = CASE WHEN excluded.end > end THEN excluded.written ELSE written END,"
            " end = max(end, excluded.end)",
            (series, span.start, span.end, written),
        )

    @classmethod
    def uncover(cls, db: sqlite3.Connection, series: int, span: Span) -> None:
        """Take a span out of what is covered."""
        touched = (series, span.end, span.start)
        rows = db.execute(
            "SELECT start, end, written FROM coverage WHERE series = ? AND start < ? AND end > ?", touched
        ).fetchall()
        db.execute("DELETE FROM coverage WHERE series = ? AND start < ? AND end > ?", touched)
        for start, end, written in rows:
            for left, right in ((start, span.start), (span.end, end)):
                if left < right:
                    cls._put_row(db, series, Span(left, right), written)

    def premature(self) -> list[Premature]:
        """Coverage that ends after the machine's time at which it was written, or that was written after now.

        What is kept of larger bars (`SYMBOL@TIMEFRAME`) is no coverage of a feed.
        """
        rows = self.query(
            "SELECT s.symbol, c.start, c.end, c.written FROM coverage c JOIN series s ON s.id = c.series"
            " WHERE s.symbol NOT LIKE '%@%' AND (c.end > c.written OR c.written > ?) ORDER BY s.symbol, c.start",
            ahead := time.time() + _STEP,
        )
        return [
            # If the machine's time was wrong then, it may have been wrong for all of the span.
            Premature(parse(symbol), Span(start if written > ahead else max(start, minute(written)), end), written)
            for symbol, start, end, written in rows
        ]

    @staticmethod
    def cut_coverage(db: sqlite3.Connection, series: int, found: Premature) -> None:
        """Take out what was covered too early, and nothing that other writes have covered since."""
        where = (series, found.span.start, found.span.end, found.written)
        db.execute("DELETE FROM coverage WHERE series = ? AND start >= ? AND end = ? AND written = ?", where)
        db.execute(
            "UPDATE coverage SET end = ? WHERE series = ? AND start < ? AND end = ? AND written = ?",
            (found.span.start, *where),
        )

    def gaps(self, name: str, span: Span) -> list[Span]:
        """What of `span` is not covered in the series of a name."""
        rows = self.query(
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

    # Provenance and problems

    @staticmethod
    def month_source(db: sqlite3.Connection, series: int, month: str) -> Source | None:
        """What the month's bars are marked with."""
        row = db.execute(
            "SELECT origin, feed, adjustment FROM months WHERE series = ? AND month = ?", (series, month)
        ).fetchone()
        return Source(Origin(row[0]), row[1], row[2]) if row else None

    def months(self, instrument: Instrument) -> set[str]:
        """The months of a series that are marked."""
        rows = self.query(
            "SELECT m.month FROM months m JOIN series s ON s.id = m.series WHERE s.symbol = ?", instrument.symbol
        )
        return {str(row[0]) for row in rows}

    @staticmethod
    def months_of(db: sqlite3.Connection, source: Source, month: str) -> set[int]:
        """The series whose month is marked with this source."""
        rows = db.execute(
            "SELECT series FROM months WHERE month = ? AND origin = ? AND feed = ? AND adjustment = ?",
            (month, source.origin.value, source.feed, source.adjustment),
        )
        return {row[0] for row in rows}

    @staticmethod
    def set_month_source(db: sqlite3.Connection, series: int, month: str, source: Source) -> None:
        """Mark a month."""
        db.execute(
            "INSERT OR REPLACE INTO months VALUES (?, ?, ?, ?, ?)",
            (series, month, source.origin.value, source.feed, source.adjustment),
        )

    def problems(self) -> list[Problem]:
        """What was set aside."""
        rows = self.query("SELECT at, path, reason FROM problems ORDER BY at")
        return [Problem(*row) for row in rows]

    def mark(self, instrument: Instrument) -> Mark:
        """The state to compare with later."""
        epoch, version, _, _ = self.state(instrument)
        return Mark(epoch, version)

    def marks(self, instruments: Iterable[Instrument]) -> dict[Instrument, Mark]:
        """The states of many instruments in one query."""
        wanted = list(instruments)
        if len(wanted) <= _FEW:
            return {each: self.mark(each) for each in wanted}
        known = {symbol: Mark(*state) for symbol, *state in self.query("SELECT symbol, epoch, version FROM series")}
        missing = Mark(self.query("PRAGMA application_id")[0][0], 0)
        return {each: known.get(each.symbol, missing) for each in wanted}


def minute(epoch: float) -> int:
    """The start of the minute that was under way."""
    return int(epoch // MINUTE * MINUTE)
