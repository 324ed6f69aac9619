"""Bars in InfluxDB, behind the same buffer as the Parquet files.

A small write is durable in the home's buffer at once and is copied to InfluxDB right away or, during an outage, as soon as
InfluxDB answers again: no acknowledged bar is lost. A large write goes straight to InfluxDB. Reads merge both; buffered bars
win. InfluxDB has no transactions, so data that must change together (coverage, sources, leases, versions) is kept in the
buffer's tables. One collector works for a database, whichever homes use it (`influx.leases`).
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.errors import InvalidSymbol, StoreError
from openbell.market.instruments import Instrument, parse
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series, series_of
from openbell.market.timeframes import Timeframe
from openbell.stores import coverage, newest_bars, stored_counts
from openbell.stores.audit import ReadOnlyAudit
from openbell.stores.buffer import Buffer
from openbell.stores.buffer_view import BufferView
from openbell.stores.buffered import BufferedStore, BufferVersions, Covers
from openbell.stores.influx.archive import InfluxArchive
from openbell.stores.influx.bars import TAG, InfluxBars, measurement
from openbell.stores.influx.http import InfluxHttp, shard_bytes, size_of
from openbell.stores.influx.leases import ClaimedLeases, Claims
from openbell.stores.influx.rollups import Rollups
from openbell.stores.leases import Holders
from openbell.stores.parquet import bar_files
from openbell.stores.periods import FIRST, LAST, period_span, slug_of
from openbell.stores.port import Lease, Span, Version

log = logging.getLogger(__name__)

TABLES = """
CREATE TABLE copied (series INTEGER PRIMARY KEY, seq INTEGER NOT NULL /* bars up to it are in InfluxDB */) STRICT;
CREATE TABLE written (series INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL) STRICT;
"""
_WRITTEN = """
INSERT INTO written VALUES (?, ?, ?)
ON CONFLICT (series) DO UPDATE SET first = min(first, excluded.first), last = max(last, excluded.last)
"""
_BY_SEQ = "CREATE INDEX IF NOT EXISTS bars_by_seq ON bars (seq)"
"""Finds the bars that were written last, among the hundreds of thousands of a day."""
_SERIES = {measurement(Series(parse("BTC/USD"), timeframe), timeframe): timeframe for timeframe in Timeframe}
"""The measurements of minutes and native series."""
_COPY_SERIES = 1000
"""Series that are copied in one write."""
_LONGEST_PAUSE = 30.0
"""Seconds between two attempts to copy during an outage."""
_DAY = 86400
_RECENT = 7200
"""The latest seconds, which are always read again in a shared database."""
_CHECKED_SECONDS = 300.0
"""How long the numbers of a series' bars in InfluxDB are not compared again: that takes a query for each of its sources."""


class SharedVersions(BufferVersions):
    """The states of the series of a database that other programs write to: the buffer does not know of their bars."""

    def changed_since(self, series: Series, version: Version) -> int | None:
        """See the port."""
        changed, recent = super().changed_since(series, version), int(time.time()) - _RECENT
        return recent if changed is None else min(changed, recent)

    def of_store(self) -> Hashable:
        """See the port. Bars that other systems write into the database show within 5 s."""
        return super().of_store(), int(time.monotonic() // 5)

    def changed(self, versions: Mapping[Series, Version]) -> set[Series]:
        """See the port."""
        return set(versions)

    def new_bars(
        self,
        versions: Mapping[Series, Version],  # noqa: ARG002
        span: Span,  # noqa: ARG002
        *,
        covered: bool = True,  # noqa: ARG002
    ) -> dict[Series, Bars]:
        """See the port. Empty: bars of other programs are not in the buffer."""
        return {}


class InfluxStore(BufferedStore[InfluxArchive]):
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
        """`folder` holds the buffer, unless `buffer` is given.

        `shared`: programs other than this home write to the database, so the latest bars are always read again.
        """
        buffer = buffer or Buffer(folder / "buffer.sqlite", origins, TABLES)
        self._bars = InfluxBars(http, self._earliest)
        self._rollups = Rollups(self._bars, buffer, self.read)
        archive = InfluxArchive(self._bars, buffer, self._rollups, Path(f"InfluxDB database {http.database}"))
        super().__init__(buffer, archive, origins, self._rollups)
        self._http = http
        self._shared = shared
        if shared:  # other programs write to it: it has no collector of ours
            self.versions = SharedVersions(self._buffer)
        else:
            claims = Claims(http, Holders(self._buffer.path.parent))
            self.leases = ClaimedLeases(self._home_leases, claims)
        self._copying = threading.Lock()
        self._copied = (0, 0)
        """A buffer file, by its random number, and the seq up to which this process knows its bars to be in InfluxDB."""
        self._pause = 0.0
        self._not_before = 0.0

    # Writing

    def _write_small(
        self, parts: Sequence[Bars], source: Source, covers: Covers, lease: Lease | None, replace: bool
    ) -> None:
        super()._write_small(parts, source, covers, lease, replace)
        self.copy()

    def _before_put(self, db: sqlite3.Connection, parts: Sequence[tuple[int, Bars]]) -> None:
        db.executemany(_WRITTEN, [(number, int(bars.time[0]), int(bars.time[-1])) for number, bars in parts])
        self._rollups.invalidate(db, [bars for _, bars in parts if bars.timeframe is Timeframe.M1])

    def _written(self, series: Series) -> tuple[int, int] | None:
        """The first and the last bar that this home has written; None if there is none."""
        rows = self._buffer.query(
            "SELECT w.first, w.last FROM written w JOIN series s ON s.id = w.series WHERE s.symbol = ?",
            series.name,
        )
        return (int(rows[0][0]), int(rows[0][1])) if rows else None

    def _earliest(self, series: Series) -> int | None:
        written = self._written(series)
        return written[0] if written else None

    def _others_write(self, series: Series) -> bool:
        """Returns True if there are minutes that this home did not write: changes of those are not announced."""
        if not self._shared:
            return False
        written = self._written(series)
        if written is None:
            return self._bars.first(series) is not None
        return (self._bars.first(series) or 0) < written[0] or self._bars.any_after(series, written[1])

    def _write_periods(
        self, pieces: Sequence[tuple[str, Bars]], source: Source, _covers: Covers, lease: Lease | None, replace: bool
    ) -> None:
        for period, bars in pieces:
            self._write_period(period, bars, source, lease, replace)

    def _write_period(self, period: str, bars: Bars, source: Source, lease: Lease | None, replace: bool) -> None:
        """Announce the change, write, confirm: readers read everything again until it is confirmed."""
        if bars.timeframe is not Timeframe.M1:
            self._write_native(period, bars, source, lease, replace)
            return
        series = bars.series
        number, period = self._announce(period, bars, source, lease, replace)
        alone = not self._bars.count(series, Timeframe.M1, *_day_span(bars)) and not self._buffer.holds(
            series, *_day_span(bars)
        )
        self._bars.write_of_sources([(bars, slug_of(period))])
        if alone:
            self._rollups.write_usual(bars)
        with self._buffer.transaction() as db:
            self._home_leases.check(lease)
            first, last = int(bars.time[0]), int(bars.time[-1]) + 1
            if self._buffer.holds(series, first, last):
                self._buffer.delete_times(db, number, bars.time.tolist())
            self._archive.note_stored(db, number, period, bars)
            if alone and not self._buffer.holds(series, *_day_span(bars)):
                self._rollups.confirm_usual(db, bars)
            self._buffer.end_change(db, number)

    def _write_native(self, period: str, bars: Bars, source: Source, lease: Lease | None, replace: bool) -> None:
        number, _ = self._announce(period, bars, source, lease, replace)
        self._bars.write_of_sources([(bars, slug_of(period))])
        with self._buffer.transaction() as db:
            self._home_leases.check(lease)
            self._archive.note_stored(db, number, period, bars)
            self._buffer.end_change(db, number)
            if not newest_bars.record(db, number, bars):
                newest_bars.set_latest(db, number, barlib.merge(self._bars.tail(bars.series, 1, LAST), bars))

    def _announce(self, period: str, bars: Bars, source: Source, lease: Lease | None, replace: bool) -> tuple[int, str]:
        """Make readers read again until `end_change`, record the source, and delete the bars that are replaced.

        What is deleted is no longer covered before it is deleted: if this process is killed, it is known to be missing.
        Returns the id of the series and the period to which the bars go.
        """
        series = bars.series
        with self._buffer.transaction() as db:
            self._home_leases.check(lease)
            number = self._buffer.ensure_series(db, series.name)
            period = self.sources.period_for(number, period, bars, source, replace=replace)
            if not replace:
                self.sources.refuse_conflicts(number, period, bars, source)
            to_replace = self.sources.to_replace(number, period, bars, source) if replace else {}
            self._buffer.begin_change(db, number)
            self._before_put(db, [(number, bars)])
            if period not in to_replace:
                if self._buffer.period_source(db, number, period) is None:
                    stored_counts.restart(db, number, period)
                self._buffer.set_period_source(db, number, period, source)
            for other, span in to_replace.items():
                stored_counts.restart(db, number, other)
                newest_bars.forget(db, number)
                coverage.uncover(db, number, span)
                if series.timeframe is Timeframe.M1:
                    self._rollups.uncover(db, series, span)
        for other, span in to_replace.items():
            if series.timeframe is Timeframe.M1:
                self._rollups.delete(series, span)
            self._bars.delete_of_source(series, span, slug_of(other))
            with self._buffer.transaction() as db:
                self._archive.count_again(db, number, series, other)
                self._drop_buffered(db, number, series, span, slug_of(other))
                if not len(self.sources.times_of(series, other)):
                    self._buffer.clear_period_source(db, number, other)
                if other == period:
                    if stored_counts.get(db, number, period) is None:
                        stored_counts.restart(db, number, period)
                    self._buffer.set_period_source(db, number, period, source)
        return number, period

    def set_aside(self, instrument: Instrument, source: Source, reason: str) -> bool:
        """See the port. The bars are written to Parquet files beside the buffer before they are deleted."""
        for series in (Series(instrument), *(Series(instrument, each) for each in self.timeframes(instrument))):
            periods = [each for each, owner in self._buffer.period_sources(series).items() if owner == source]
            for period in periods:
                span = Span(*period_span(period))
                aside = self._written_aside(series, period, source)
                with self._buffer.transaction() as db:
                    number = self._buffer.ensure_series(db, series.name)
                    self._buffer.add_problem(db, aside, reason)
                    stored_counts.restart(db, number, period)
                    self._buffer.begin_change(db, number)
                    newest_bars.forget(db, number)
                    for part in self.sources.fetched(series, span, besides=period):
                        coverage.uncover(db, number, part)
                    self._drop_buffered(db, number, series, span, slug_of(period))
                self._bars.delete_of_source(series, span, slug_of(period))
                with self._buffer.transaction() as db:
                    stored_counts.forget(db, number, period)
                    self._buffer.clear_period_source(db, number, period)
                    self._buffer.end_change(db, number)
        return True

    def _written_aside(self, series: Series, period: str, source: Source) -> Path:
        """Write the bars of one period to a Parquet file. Returns its path."""
        buffered = self._buffer.get(series, *period_span(period), slug=slug_of(period))
        bars = barlib.merge(self._archive.read_period(series, period, *period_span(period)), buffered)
        file = bar_files.bar_file(self._buffer.path.parent / "aside", series, period)
        bar_files.write(file, bars, source)
        aside = file.path.with_name(f"{file.path.name}.aside-{time.time_ns()}")
        file.path.replace(aside)
        log.warning("set aside %s", aside)
        return aside

    def _drop_buffered(self, db: sqlite3.Connection, number: int, series: Series, span: Span, slug: str) -> None:
        """Remove buffered minutes of one source, and what was made of them."""
        if series.timeframe is Timeframe.M1:
            self._buffer.delete(db, number, span, slug)
            self._rollups.drop(db, series, span)

    # From the buffer to InfluxDB

    def copy(self) -> bool:
        """Copy buffered bars that InfluxDB lacks. Returns False if it is unreachable; a later write tries again."""
        if time.monotonic() < self._not_before or not self._copying.acquire(blocking=False):
            return False
        try:
            self._copy()
        except StoreError as error:
            self._pause = min(_LONGEST_PAUSE, max(1.0, self._pause * 2))
            self._not_before = time.monotonic() + self._pause
            log.warning("%s; new bars are kept in %s until it answers", error, self._buffer.path)
            return False
        else:
            self._pause = 0.0
            return True
        finally:
            self._copying.release()

    def _copy(self) -> None:
        file, written = self._buffer.query("SELECT application_id, seq FROM pragma_application_id, counter")[0]
        if self._copied[0] != file or self._copied[1] > written:  # the first copy, or another file is at its path
            self._copied = (file, 0)
            with self._buffer.transaction() as db:
                db.execute(_BY_SEQ)
        uncopied = self._buffer.query(
            "SELECT s.symbol, b.slug, min(b.time), max(b.time), b.series, max(b.seq) FROM bars b INDEXED BY bars_by_seq"
            " JOIN series s ON s.id = b.series LEFT JOIN copied c ON c.series = b.series"
            " WHERE b.seq > ? AND b.seq > coalesce(c.seq, 0) GROUP BY b.series, b.slug",
            self._copied[1],
        )
        for at in range(0, len(uncopied), _COPY_SERIES):
            some = uncopied[at : at + _COPY_SERIES]
            self._bars.write_of_sources(
                (self._buffer.get(series_of(symbol), first, last + 1, slug=slug), slug)
                for symbol, slug, first, last, *_ in some
            )
            with self._buffer.transaction() as db:
                db.executemany(
                    "INSERT INTO copied VALUES (?, ?) ON CONFLICT (series) DO UPDATE SET seq = max(seq, excluded.seq)",
                    [(number, seq) for *_, number, seq in some],
                )
        self._copied = (file, written)

    def compact(self, before: int) -> int:
        """See the port. Moves nothing while InfluxDB is unreachable."""
        moved = 0
        try:
            for series in self._buffer.buffered():
                moved += self._move(series, before)
        except StoreError as error:
            log.warning("%s; bars are kept in %s", error, self._buffer.path)
        return moved

    def _move(self, series: Series, before: int) -> int:
        """Move bars: copy them once more under the write lock, then delete them from the buffer."""
        with self._buffer.transaction() as db:
            number = self._buffer.ensure_series(db, series.name)
            waiting = self._buffer.get(series, FIRST, before)
            if not len(waiting):
                return 0
            periods = self._buffer.waiting(series, before)
            moved = {period: self._buffered(series, period, before) for period in periods}
            self._bars.write_of_sources((bars, slug_of(period)) for period, bars in moved.items())
            for period, bars in moved.items():
                self._archive.note_stored(db, number, period, bars)
            self._buffer.delete(db, number, Span(FIRST, before))
            self._buffer.end_compaction(db, number, int(waiting.time[0]))
        return len(waiting)

    def _buffered(self, series: Series, period: str, before: int) -> Bars:
        """The buffered bars of a period that opened before a time."""
        start, end = period_span(period)
        return self._buffer.get(series, start, min(end, before), slug=slug_of(period))

    # Reading

    def resampled(self, series: Series, timeframe: Timeframe, count: int, end: int, skip: int = 0) -> Bars:
        """See the port."""
        if timeframe is series.timeframe or series.timeframe is not Timeframe.M1 or self._others_write(series):
            return super().resampled(series, timeframe, count, end, skip)
        found = self._rollups.newest(series, timeframe, count + skip, end)
        return found.take(slice(0, max(0, len(found) - skip))).tail(count).copy()

    def count(self, series: Series, timeframe: Timeframe, end: int) -> int:
        """See the port."""
        if timeframe is not Timeframe.M1:
            if series.timeframe is not Timeframe.M1 or self._others_write(series):
                return barlib.count(series.instrument, timeframe, self.read(series, FIRST, end).time, end)
            return self._rollups.count(series, timeframe, end)
        waiting = self._buffer.get(series, FIRST, end)
        split = min(end, int(waiting.time[0])) if len(waiting) else end
        return self._bars.count(series, Timeframe.M1, FIRST, split) + len(self.read(series, split, end))

    # State

    def stored(self) -> list[Series]:
        """See the port."""
        found = set(self._buffer.buffered())
        for each in self._http.series(f'SHOW TAG VALUES WITH KEY = "{TAG}"'):
            for _, symbol in each["values"] if each["name"] in _SERIES else ():
                with suppress(InvalidSymbol):  # written by another program
                    instrument = parse(str(symbol))
                    if instrument.symbol == symbol:
                        found.add(Series(instrument, _SERIES[each["name"]]))
        return sorted(found)

    def where(self) -> str:
        """See the port."""
        there = "" if self._http.exists() else " (not there yet)"
        if not there and shard_bytes(self._http) is None:
            there = " (its size is not counted: only admins of InfluxDB may read it)"
        return f"InfluxDB {self._http.version()} at {self._http.url}, database {self._http.database}{there}"

    def waiting(self) -> int:
        """How many bars the buffer holds that InfluxDB lacks."""
        rows = self._buffer.query(
            "SELECT count(*) FROM bars b LEFT JOIN copied c ON c.series = b.series WHERE b.seq > coalesce(c.seq, 0)"
        )
        return int(rows[0][0])

    def size(self) -> int:
        """See the port: the bytes of this database's shards in InfluxDB, if they are known, and of the buffer's file."""
        return (shard_bytes(self._http) or 0) + size_of(self._buffer.path)

    def close(self) -> None:
        """See the port."""
        super().close()
        self._http.close()


def _day_span(bars: Bars) -> tuple[int, int]:
    """The whole UTC days that bars touch."""
    return int(bars.time[0]) // _DAY * _DAY, (int(bars.time[-1]) // _DAY + 1) * _DAY


class InfluxView(InfluxStore):
    """Bars in InfluxDB and in the home's buffer. Resampled bars are computed from minutes and not stored."""

    audit: ReadOnlyAudit

    def __init__(
        self, http: InfluxHttp, folder: Path, origins: frozenset[Origin] | None = None, *, shared: bool = False
    ) -> None:
        buffer = BufferView(folder / "buffer.sqlite", origins, TABLES)
        super().__init__(http, folder, origins, shared=shared, buffer=buffer)
        self.audit = ReadOnlyAudit(buffer, self.sources, self._archive, self._rollups, kept_seconds=_CHECKED_SECONDS)

    def gaps(self, series: Series, span: Span) -> list[Span]:
        """See the port. Bars that the database has lost are gaps."""
        parts = (
            self.sources.fetched(series, each, besides=period) for period, each in self.audit.unmended(series, span)
        )
        return coverage.joined([*super().gaps(series, span), *(part for some in parts for part in some)])

    def _others_write(self, series: Series) -> bool:  # noqa: ARG002
        return True
