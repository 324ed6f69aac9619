"""Bars in InfluxDB, behind the same buffer as the Parquet files.

A small write is durable in the home's buffer at once and copied to InfluxDB right away or, when that is not there, as soon
as it is again: an outage loses nothing that was acknowledged. A large one goes straight to InfluxDB. Reads merge both; the
buffer wins. InfluxDB knows no transactions, so what must change together (coverage, provenance, leases, who has changed
what) stands in the buffer's tables.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.errors import InvalidSymbol, StoreError
from openbell.market.instruments import Instrument, parse
from openbell.market.provenance import Origin, Source
from openbell.market.timeframes import Timeframe
from openbell.stores import larger
from openbell.stores.buffer import Buffer
from openbell.stores.buffered import FIRST, BufferedStore, conflict
from openbell.stores.influx_bars import TAG, InfluxBars
from openbell.stores.influx_http import InfluxHttp
from openbell.stores.months import month_of, month_span
from openbell.stores.port import Lease, Mark, Span
from openbell.stores.rollups import Rollups

log = logging.getLogger(__name__)

TABLES = """
CREATE TABLE copied (series INTEGER PRIMARY KEY, seq INTEGER NOT NULL /* bars up to it are in InfluxDB */) STRICT;
CREATE TABLE written (series INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL) STRICT;
"""
_WRITTEN = """
INSERT INTO written VALUES (?, ?, ?)
ON CONFLICT (series) DO UPDATE SET first = min(first, excluded.first), last = max(last, excluded.last)
"""
_AT_ONCE = 1000
_LONGEST_PAUSE = 30.0
_DAY = 86400
_RECENT = 7200
"""Seconds that are always read again where others write too."""


class InfluxStore(BufferedStore):
    """Implements `stores.port.BarStore` on one database."""

    name = "influxdb"

    def __init__(
        self,
        http: InfluxHttp,
        folder: Path,
        origins: frozenset[Origin] | None = None,
        *,
        shared: bool = False,
        buffer: Buffer | None = None,
    ) -> None:
        """`folder` holds the buffer, unless another is given.

        `shared`: others write into the database, so newest bars are always read again.
        """
        self._http = http
        self._origins = origins
        self._shared = shared
        self._buffer = buffer or Buffer(folder / "buffer.sqlite", origins, TABLES)
        self._bars = InfluxBars(http, self._earliest)
        self._rollups = Rollups(self._bars, self._buffer, self.read)
        self._copying = threading.Lock()
        self._pause = 0.0
        self._not_before = 0.0

    def _owner(self, db: sqlite3.Connection, series: int, instrument: Instrument, month: str) -> Source | None:  # noqa: ARG002
        return self._buffer.month_source(db, series, month)

    # Writing

    def _write_small(
        self, parts: Sequence[Bars], source: Source, covers: Span | None, lease: Lease | None, replace: bool
    ) -> None:
        super()._write_small(parts, source, covers, lease, replace)
        self.copy()

    def _touch(self, db: sqlite3.Connection, parts: Sequence[tuple[int, Bars]]) -> None:
        db.executemany(_WRITTEN, [(series, int(bars.time[0]), int(bars.time[-1])) for series, bars in parts])
        self._rollups.spoil(db, [bars for _, bars in parts])

    def _written(self, instrument: Instrument) -> tuple[int, int] | None:
        """The first and the last minute that were written through this home."""
        rows = self._buffer.query(
            "SELECT w.first, w.last FROM written w JOIN series s ON s.id = w.series WHERE s.symbol = ?",
            instrument.symbol,
        )
        return (int(rows[0][0]), int(rows[0][1])) if rows else None

    def _earliest(self, instrument: Instrument) -> int | None:
        written = self._written(instrument)
        return written[0] if written else None

    def _others_write(self, instrument: Instrument) -> bool:
        """Whether there are minutes that did not come through this home: of those nobody tells when they change."""
        if not self._shared:
            return False
        written = self._written(instrument)
        if written is None:
            return self._bars.first(instrument) is not None
        return (self._bars.first(instrument) or 0) < written[0] or self._bars.any_after(instrument, written[1])

    def _write_month(self, month: str, bars: Bars, source: Source, lease: Lease | None, replace: bool) -> None:
        """Announced before and confirmed after, so that readers read again whatever happens in between."""
        instrument, span = bars.instrument, Span(*month_span(month))
        series, foreign = self._announce(month, bars, source, lease, replace)
        if foreign:
            self._bars.delete(instrument, span)
        alone = not self._bars.count(instrument, Timeframe.M1, *_day_span(bars)) and not len(
            self._buffer.get(instrument, *_day_span(bars), 1)
        )
        self._bars.write(bars)
        if alone:
            self._rollups.make_of(bars)
        with self._buffer.transaction() as db:
            self._check_lease(lease)
            first, last = int(bars.time[0]), int(bars.time[-1]) + 1
            if len(self._buffer.get(instrument, first, last, 1)):
                times = bars.time.tolist()
                db.executemany("DELETE FROM bars WHERE series = ? AND time = ?", ((series, t) for t in times))
            if alone and not len(self._buffer.get(instrument, *_day_span(bars), 1)):
                self._rollups.keep(db, bars)
            self._changed(db, series)

    def _announce(self, month: str, bars: Bars, source: Source, lease: Lease | None, replace: bool) -> tuple[int, bool]:
        """Claim a month and make readers read again; the series' number, and whether another source has to go."""
        span = Span(*month_span(month))
        with self._buffer.transaction() as db:
            self._check_lease(lease)
            series = self._buffer.claim_series(db, bars.instrument)
            owner = self._buffer.month_source(db, series, month)
            foreign = owner not in {None, source}
            if foreign and not replace:
                raise conflict(bars.instrument, month, owner, source)
            db.execute("UPDATE series SET epoch = epoch + 1 WHERE id = ? AND epoch % 2 = 0", (series,))
            self._touch(db, [(series, bars)])
            if foreign:
                self._buffer.uncover(db, series, span)
                self._rollups.spoil_span(db, bars.instrument, span)
                db.execute(
                    "DELETE FROM bars WHERE series = ? AND time >= ? AND time < ?", (series, span.start, span.end)
                )
            self._buffer.set_month_source(db, series, month, source)
        return series, foreign

    # From the buffer to InfluxDB

    def copy(self) -> bool:
        """Copy what the buffer has and InfluxDB lacks; False if InfluxDB is away. Tries again later by itself."""
        if time.monotonic() < self._not_before or not self._copying.acquire(blocking=False):
            return False
        try:
            self._copy()
        except StoreError as error:
            self._pause = min(_LONGEST_PAUSE, max(1.0, self._pause * 2))
            self._not_before = time.monotonic() + self._pause
            log.warning("%s; new bars wait in %s", error, self._buffer.path)
            return False
        else:
            self._pause = 0.0
            return True
        finally:
            self._copying.release()

    def _copy(self) -> None:
        waiting = self._buffer.query(
            "SELECT s.symbol, b.series, min(b.time), max(b.time), max(b.seq) FROM bars b JOIN series s ON s.id = b.series"
            " LEFT JOIN copied c ON c.series = b.series WHERE b.seq > coalesce(c.seq, 0) GROUP BY b.series"
        )
        for at in range(0, len(waiting), _AT_ONCE):
            some = waiting[at : at + _AT_ONCE]
            self._bars.write(*(self._buffer.get(parse(symbol), first, last + 1) for symbol, _, first, last, _ in some))
            with self._buffer.transaction() as db:
                db.executemany(
                    "INSERT INTO copied VALUES (?, ?) ON CONFLICT (series) DO UPDATE SET seq = max(seq, excluded.seq)",
                    [(series, seq) for _, series, _, _, seq in some],
                )

    def compact(self, before: int) -> int:
        """See the port. Nothing moves while InfluxDB is away."""
        moved = 0
        try:
            for instrument in self._buffer.buffered():
                moved += self._move(instrument, before)
        except StoreError as error:
            log.warning("%s; bars stay in %s", error, self._buffer.path)
        return moved

    def _move(self, instrument: Instrument, before: int) -> int:
        """Copied once more under the write lock, so that what is dropped here is what stands there."""
        with self._buffer.transaction() as db:
            series = self._buffer.claim_series(db, instrument)
            waiting = self._buffer.get(instrument, FIRST, before)
            if not len(waiting):
                return 0
            self._bars.write(waiting)
            db.execute("DELETE FROM bars WHERE series = ? AND time < ?", (series, before))
            first = int(waiting.time[0])
            db.execute(
                "UPDATE series SET epoch = epoch + epoch % 2, compacted_seq = version, compacted_from ="
                " CASE WHEN compacted_seq = 0 THEN ? ELSE min(compacted_from, ?) END WHERE id = ?",
                (first, first, series),
            )
        return len(waiting)

    def _drop(self, db: sqlite3.Connection, series: int, instrument: Instrument, span: Span) -> None:
        self._rollups.drop(db, instrument, span)
        self._bars.delete(instrument, span)
        for month in self._buffer.months(instrument):
            start, end = month_span(month)
            if end <= span.start or start >= span.end or len(self._buffer.get(instrument, start, end, 1)):
                continue
            if not self._bars.count(instrument, Timeframe.M1, start, end):
                db.execute("DELETE FROM months WHERE series = ? AND month = ?", (series, month))

    # Reading

    def read(self, instrument: Instrument, start: int, end: int) -> Bars:
        """See the port."""
        return self._consistent(instrument, start, end, None)

    def tail(self, instrument: Instrument, count: int, end: int) -> Bars:
        """See the port."""
        return self._consistent(instrument, FIRST, end, count).tail(count)

    def _consistent(self, instrument: Instrument, start: int, end: int, newest: int | None) -> Bars:
        """Buffer first, InfluxDB second; again if bars were moved from one to the other in between."""
        while True:
            before = self._buffer.state(instrument)
            buffered = self._buffer.get(instrument, start, end, newest)
            whole = newest is None
            stored = self._bars.read(instrument, start, end) if whole else self._bars.tail(instrument, newest or 0, end)
            after = self._buffer.state(instrument)
            if (before[0], before[2]) == (after[0], after[2]):
                return barlib.merge(stored, buffered)

    def larger(self, instrument: Instrument, timeframe: Timeframe, count: int, end: int, skip: int = 0) -> Bars:
        """See the port."""
        if timeframe is Timeframe.M1 or self._others_write(instrument):
            return larger.newest(self.tail, instrument, timeframe, count, end, skip)
        found = self._rollups.newest(instrument, timeframe, count + skip, end)
        return found.take(slice(0, max(0, len(found) - skip))).tail(count).copy()

    def count(self, instrument: Instrument, timeframe: Timeframe, end: int) -> int:
        """See the port."""
        if timeframe is not Timeframe.M1:
            if self._others_write(instrument):
                return barlib.count(instrument, timeframe, self.read(instrument, FIRST, end).time, end)
            return self._rollups.count(instrument, timeframe, end)
        waiting = self._buffer.get(instrument, FIRST, end)
        split = min(end, int(waiting.time[0])) if len(waiting) else end
        return self._bars.count(instrument, Timeframe.M1, FIRST, split) + len(self.read(instrument, split, end))

    # State

    def changed_since(self, instrument: Instrument, mark: Mark) -> int | None:
        """See the port."""
        changed = super().changed_since(instrument, mark)
        if not self._shared:
            return changed
        recent = int(time.time()) - _RECENT
        return recent if changed is None else min(changed, recent)

    def changes(self) -> Hashable:
        """See the port. Bars that other systems write into the database show within 5 s."""
        return super().changes(), int(time.monotonic() // 5) if self._shared else 0

    def changed(self, marks: Mapping[Instrument, Mark]) -> set[Instrument]:
        """See the port."""
        return set(marks) if self._shared else super().changed(marks)

    def news(self, marks: Mapping[Instrument, Mark], span: Span, *, covered: bool = True) -> dict[Instrument, Bars]:
        """See the port: what others write is nowhere but in the database."""
        return {} if self._shared else super().news(marks, span, covered=covered)

    def source(self, instrument: Instrument, epoch: int) -> Source | None:
        """What the bars of the month of `epoch` are marked with."""
        series = self._buffer.series(instrument)
        return None if series is None else self._buffer.month_source(self._buffer.db, series, month_of(epoch))

    def instruments(self) -> list[Instrument]:
        """See the port."""
        found = set(self._buffer.buffered())
        for _, symbol in self._http.rows(f'SHOW TAG VALUES FROM "candles" WITH KEY = "{TAG}"'):
            try:
                instrument = parse(str(symbol))
            except InvalidSymbol:
                continue  # somebody else's
            if instrument.symbol == symbol:
                found.add(instrument)
        return sorted(found)

    def where(self) -> str:
        """See the port."""
        there = "" if self._http.exists() else " (not there yet)"
        return f"InfluxDB {self._http.version()} at {self._http.url}, database {self._http.database}{there}"

    def waiting(self) -> int:
        """How many bars the buffer holds that InfluxDB lacks."""
        rows = self._buffer.query(
            "SELECT count(*) FROM bars b LEFT JOIN copied c ON c.series = b.series WHERE b.seq > coalesce(c.seq, 0)"
        )
        return int(rows[0][0])

    def size(self) -> int:
        """See the port: InfluxDB's shards of this database, and the buffer's file."""
        shards = [each for each in self._http.series("SHOW STATS FOR 'shard'") if self._ours(each)]
        sizes = (dict(zip(each["columns"], each["values"][0], strict=True)).get("diskBytes") for each in shards)
        return sum(int(size or 0) for size in sizes) + _size_of(self._buffer.path)

    def _ours(self, series: dict[str, Any]) -> bool:
        return bool((series.get("tags") or {}).get("database") == self._http.database)

    def close(self) -> None:
        """See the port."""
        super().close()
        self._http.close()


def _size_of(path: Path) -> int:
    """The bytes of a file; none if there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _day_span(bars: Bars) -> tuple[int, int]:
    """The whole UTC days that bars touch."""
    return int(bars.time[0]) // _DAY * _DAY, (int(bars.time[-1]) // _DAY + 1) * _DAY
