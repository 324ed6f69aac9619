"""Rollups: resampled bars stored in measurements of their own, written when they are first read.

Only whole days (weeks, for weekly bars) that have ended are stored; the current one is always resampled from its minutes.
Days of currencies cross midnight UTC and are stored by weeks from Saturday on, when no currency trades.
Bars of several days, months and longer are not stored: they are made of the stored days.
Stored rollups are recorded as coverage in the buffer. A write of minutes removes the coverage of the days that it touches,
in its own transaction and before it writes to InfluxDB: a rollup is never older than its minutes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.errors import StoreError
from openbell.market.instruments import Instrument, parse
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.market.trading_days import by_currency_day
from openbell.stores import coverage, resampling
from openbell.stores.buffer import Buffer
from openbell.stores.influx.bars import ROLLED_UP, InfluxBars, measurement
from openbell.stores.periods import LAST
from openbell.stores.port import Span

_DAY, _WEEK, _MONDAY, _SATURDAY = 86400, 604800, 345600, 172800
_TRIES = 5
_CHUNK = 30 * _DAY
_STRETCH = 1.6
"""How much longer than its bars the first span that is read is."""
_ALL_DAYS = 100_000
"""More days than any series has."""
_USUAL = (Timeframe.M5, Timeframe.M15, Timeframe.H1, Timeframe.H4, Timeframe.D1)
"""Written together with the minutes of a large write."""

Read = Callable[[Series, int, int], Bars]
"""Returns the minute bars of a span, buffered ones included."""


class Rollups:
    """Rollups of every instrument. Implements `stores.port.MadeBars`."""

    def __init__(self, bars: InfluxBars, buffer: Buffer, read: Read) -> None:
        self._bars = bars
        self._buffer = buffer
        self._read = read
        self._counts: dict[tuple[Series, Timeframe], tuple[object, int]] = {}

    def newest(self, series: Series, timeframe: Timeframe, count: int, end: int) -> Bars:
        """The latest `count` bars that had closed at `end`."""
        if timeframe.of_days:
            return resampling.latest_of_days(self._days, series, timeframe, count, end)
        today = _floor(series.instrument, timeframe, end)
        found = barlib.resample(self._read(series, today, end), timeframe, end)
        first = self._start(series, timeframe)
        at, reach = today, int(count * timeframe.seconds * _STRETCH) + _WEEK
        while first is not None and at > first and len(found) < count:
            start = max(first, _floor(series.instrument, timeframe, at - reach))
            self._write_missing(series, timeframe, Span(start, at))
            found = barlib.merge(self._bars.read(series, start, at, timeframe), found)
            at, reach = start, reach * 3
        return found.tail(count)

    def _days(self, days: Series, count: int, end: int) -> Bars:
        """The latest daily bars that had closed at `end`, made of minutes."""
        return self.newest(Series(days.instrument), Timeframe.D1, count, end)

    def count(self, series: Series, timeframe: Timeframe, end: int) -> int:
        """How many bars had closed at `end`."""
        if timeframe.of_days:
            days = self.newest(series, Timeframe.D1, _ALL_DAYS, end)
            return barlib.count(series.instrument, timeframe, days.time, end)
        today = _floor(series.instrument, timeframe, end)
        fresh = len(barlib.resample(self._read(series, today, end), timeframe, end))
        first = self._start(series, timeframe)
        if first is None or first >= today:
            return fresh
        return fresh + self._count(series, timeframe, Span(first, today))

    def _count(self, series: Series, timeframe: Timeframe, span: Span) -> int:
        """How many bars whole days hold; cached until something is written."""
        state = (span, self._buffer.state(series))
        known = self._counts.get((series, timeframe))
        if known and known[0] == state:
            return known[1]
        self._write_missing(series, timeframe, span)
        found = self._bars.count(series, timeframe, span.start, span.end)
        self._counts[series, timeframe] = state, found
        return found

    def invalidate(self, db: sqlite3.Connection, parts: Sequence[Bars]) -> None:
        """Remove the coverage of the days of minutes that are about to change."""
        spans = [(part.series, Span(int(part.time[0]), int(part.time[-1]) + 1)) for part in parts if len(part)]
        last_end = db.execute(
            "SELECT max(end) FROM coverage c JOIN series s ON s.id = c.series WHERE s.symbol LIKE '%@%'"
        ).fetchone()[0]
        for series, span in spans:
            if last_end is not None and span.start < last_end:
                self.invalidate_span(db, series, span)

    def invalidate_span(self, db: sqlite3.Connection, series: Series, span: Span) -> None:
        """Remove the coverage of the days and weeks that a span touches."""
        for timeframe in ROLLED_UP:
            number = self._buffer.ensure_series(db, _name(series, timeframe))
            coverage.uncover(db, number, _units(series.instrument, timeframe, span))

    def drop(self, db: sqlite3.Connection, series: Series, span: Span) -> None:
        """Delete the rollups of the weeks that a span touches, because minutes in it are about to be deleted."""
        self.uncover(db, series, span)
        self.delete(series, span)

    def uncover(self, db: sqlite3.Connection, series: Series, span: Span) -> None:
        """Make the rollups of the weeks that a span touches be written again."""
        self.invalidate_span(db, series, _units(series.instrument, Timeframe.W1, span))

    def delete(self, series: Series, span: Span) -> None:
        """Delete the rollups of the weeks that a span touches; `uncover` must have been committed."""
        self._bars.delete(series, _units(series.instrument, Timeframe.W1, span), ROLLED_UP)

    def write_usual(self, minutes: Bars) -> None:
        """Write the usual rollups of minutes; their days must have no other minutes."""
        self._bars.write(*(barlib.resample(minutes, timeframe, LAST) for timeframe in _usual(minutes.instrument)))

    def confirm_usual(self, db: sqlite3.Connection, minutes: Bars) -> None:
        """Record the coverage of `write_usual`, in the transaction that confirms the minutes."""
        span = Span(int(minutes.time[0]), int(minutes.time[-1]) + 1)
        for timeframe in _usual(minutes.instrument):
            number = self._buffer.ensure_series(db, _name(minutes.series, timeframe))
            coverage.cover(db, [number], _units(minutes.instrument, timeframe, span))
        self._mark(db)

    def mend(self) -> bool:
        """See `MadeBars`: have all rollups written again if some of them were lost with the database."""
        if not self.are_lost():
            return False
        with self._buffer.transaction() as db:
            made = "SELECT id FROM series WHERE symbol LIKE '%@%'"
            db.execute(f"DELETE FROM coverage WHERE series IN ({made})")
            for row in db.execute("SELECT id FROM series WHERE symbol NOT LIKE '%@%'").fetchall():
                self._buffer.end_change(db, int(row[0]))
            self._mark(db)
        return True

    def are_lost(self) -> bool:
        """Returns True if the database is an older one than that into which rollups were written, or lacks some."""
        covered = self._buffer.query(
            "SELECT DISTINCT s.symbol FROM coverage c JOIN series s ON s.id = c.series WHERE s.symbol LIKE '%@%'"
        )
        if not covered:
            return False
        marked = self._buffer.query("SELECT seq FROM rollup_mark")
        if marked and (self._bars.mark() or 0) < marked[0][0]:
            return True
        there = self._bars.measurements()
        wanted = {
            measurement(Series(parse(symbol)), Timeframe[name])
            for (made,) in covered
            for symbol, name in [made.split("@")]
        }
        return not wanted <= there

    def _mark(self, db: sqlite3.Connection) -> None:
        """Write a number both to the database and to the buffer: a restored database has a lower one."""
        seq = self._buffer.next_seq(db)
        self._bars.set_mark(seq)
        db.execute("DELETE FROM rollup_mark")
        db.execute("INSERT INTO rollup_mark VALUES (?)", (seq,))

    def _start(self, series: Series, timeframe: Timeframe) -> int | None:
        """The start of the first day or week with minutes, in InfluxDB or the buffer; None if there are none."""
        waiting = self._buffer.oldest(series)
        known = [at for at in (self._bars.first(series), waiting) if at is not None]
        return _floor(series.instrument, timeframe, min(known)) if known else None

    def _write_missing(self, series: Series, timeframe: Timeframe, span: Span) -> None:
        """Write the rollups that are missing in a span of whole days."""
        gaps = coverage.gaps(self._buffer, _name(series, timeframe), span)
        if not gaps:
            return
        unit = _unit(series.instrument, timeframe)
        # After the latest minute there is nothing to resample: one write covers the rest, however long it is.
        newest = max(self._bars.last(series) or 0, self._buffer.newest(series) or 0)
        last = _floor(series.instrument, timeframe, newest) + unit
        for gap in gaps:
            for start in range(gap.start, min(gap.end, last), _CHUNK // unit * unit):
                self._write(series, timeframe, Span(start, min(gap.end, last, start + _CHUNK // unit * unit)))
            if last < gap.end:
                self._write(series, timeframe, Span(max(last, gap.start), gap.end))

    def _write(self, series: Series, timeframe: Timeframe, span: Span) -> None:
        for _ in range(_TRIES):
            before = self._buffer.state(series)
            self._bars.write(barlib.resample(self._read(series, span.start, span.end), timeframe, LAST))
            with self._buffer.transaction() as db:
                after = self._buffer.state(series)
                if (after.epoch, after.version) == (before.epoch, before.version):
                    coverage.cover(db, [self._buffer.ensure_series(db, _name(series, timeframe))], span)
                    self._mark(db)
                    return
        raise StoreError(f"{series}: its minutes change faster than they can be resampled; try again")


def _name(series: Series, timeframe: Timeframe) -> str:
    """The name of the series that records the coverage of a rollup."""
    return f"{series.name}@{timeframe.name}"


def _usual(instrument: Instrument) -> tuple[Timeframe, ...]:
    """The timeframes of the rollups that are written together with minutes: those with a unit of one UTC day."""
    return tuple(timeframe for timeframe in _USUAL if _unit(instrument, timeframe) == _DAY)


def _unit(instrument: Instrument, timeframe: Timeframe) -> int:
    return _WEEK if timeframe is Timeframe.W1 or by_currency_day(instrument, timeframe) else _DAY


def _units(instrument: Instrument, timeframe: Timeframe, span: Span) -> Span:
    """A span widened to whole days or weeks."""
    last = _floor(instrument, timeframe, span.end - 1)
    return Span(_floor(instrument, timeframe, span.start), last + _unit(instrument, timeframe))


def _floor(instrument: Instrument, timeframe: Timeframe, epoch: int) -> int:
    """The start of the UTC day or, for weekly bars, of its Monday; for days of currencies, of the last Saturday."""
    anchor = _SATURDAY if by_currency_day(instrument, timeframe) else _MONDAY if timeframe is Timeframe.W1 else 0
    return epoch - (epoch - anchor) % _unit(instrument, timeframe)
