"""Larger bars in measurements of their own, made of minutes when they are first asked for.

Only whole days (weeks, for weekly bars) that have ended are kept; the present one is always made of its minutes. What is
kept is written down as coverage in the buffer, and a write takes the days that it touches out of it again, in its own
transaction and before InfluxDB hears of it: a larger bar is never older than its minutes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.errors import StoreError
from openbell.market.instruments import Instrument
from openbell.market.timeframes import Timeframe
from openbell.stores.buffer import Buffer
from openbell.stores.buffered import LAST
from openbell.stores.influx_bars import InfluxBars
from openbell.stores.port import Span

_DAY, _WEEK, _MONDAY = 86400, 604800, 345600
_TRIES = 5
_CHUNK = 30 * _DAY
_ROOM = 1.6
_USUAL = (Timeframe.M5, Timeframe.M15, Timeframe.H1, Timeframe.H4, Timeframe.D1)
"""Made at once when a file is imported."""
KEPT = tuple(timeframe for timeframe in Timeframe if timeframe is not Timeframe.M1)

Read = Callable[[Instrument, int, int], Bars]
"""The minute bars of a span, those in the buffer included."""


class Rollups:
    """Larger bars of every instrument."""

    def __init__(self, bars: InfluxBars, buffer: Buffer, read: Read) -> None:
        self._bars = bars
        self._buffer = buffer
        self._read = read
        self._counts: dict[tuple[Instrument, Timeframe], tuple[object, int]] = {}

    def newest(self, instrument: Instrument, timeframe: Timeframe, count: int, end: int) -> Bars:
        """The newest `count` bars that had closed at `end`."""
        today = _floor(timeframe, end)
        found = barlib.resample(self._read(instrument, today, end), timeframe, end)
        first = self._start(instrument, timeframe)
        at, reach = today, int(count * timeframe.seconds * _ROOM) + _WEEK
        while first is not None and at > first and len(found) < count:
            start = max(first, _floor(timeframe, at - reach))
            self._keep(instrument, timeframe, Span(start, at))
            found = barlib.merge(self._bars.read(instrument, start, at, timeframe), found)
            at, reach = start, reach * 3
        return found.tail(count)

    def count(self, instrument: Instrument, timeframe: Timeframe, end: int) -> int:
        """How many bars had closed at `end`."""
        today = _floor(timeframe, end)
        fresh = len(barlib.resample(self._read(instrument, today, end), timeframe, end))
        first = self._start(instrument, timeframe)
        if first is None or first >= today:
            return fresh
        return fresh + self._count(instrument, timeframe, Span(first, today))

    def _count(self, instrument: Instrument, timeframe: Timeframe, span: Span) -> int:
        """How many bars whole days hold; remembered as long as nothing is written."""
        state = (span, self._buffer.state(instrument))
        known = self._counts.get((instrument, timeframe))
        if known and known[0] == state:
            return known[1]
        self._keep(instrument, timeframe, span)
        found = self._bars.count(instrument, timeframe, span.start, span.end)
        self._counts[instrument, timeframe] = state, found
        return found

    def spoil(self, db: sqlite3.Connection, parts: Sequence[Bars]) -> None:
        """Minutes are about to change: what was made of their days is no longer kept."""
        spans = [(part.instrument, Span(int(part.time[0]), int(part.time[-1]) + 1)) for part in parts if len(part)]
        kept = db.execute(
            "SELECT max(end) FROM coverage c JOIN series s ON s.id = c.series WHERE s.symbol LIKE '%@%'"
        ).fetchone()[0]
        for instrument, span in spans:
            if kept is not None and span.start < kept:
                self.spoil_span(db, instrument, span)

    def spoil_span(self, db: sqlite3.Connection, instrument: Instrument, span: Span) -> None:
        """The same for every minute of a span."""
        for timeframe in KEPT:
            series = self._buffer.claim(db, _name(instrument, timeframe))
            self._buffer.uncover(db, series, _units(timeframe, span))

    def drop(self, db: sqlite3.Connection, instrument: Instrument, span: Span) -> None:
        """Minutes are about to be removed: the larger bars of their weeks go too, and are made again when asked for."""
        weeks = _units(Timeframe.W1, span)
        self.spoil_span(db, instrument, weeks)
        self._bars.delete(instrument, weeks, KEPT)

    def make_of(self, minutes: Bars) -> None:
        """Write the usual larger bars of minutes beside which there are no others in their days."""
        self._bars.write(*(barlib.resample(minutes, timeframe, LAST) for timeframe in _USUAL))

    def keep(self, db: sqlite3.Connection, minutes: Bars) -> None:
        """Note that `make_of` was done, in the transaction that confirms the minutes."""
        span = Span(int(minutes.time[0]), int(minutes.time[-1]) + 1)
        for timeframe in _USUAL:
            series = self._buffer.claim(db, _name(minutes.instrument, timeframe))
            self._buffer.cover(db, [series], _units(timeframe, span))

    def _start(self, instrument: Instrument, timeframe: Timeframe) -> int | None:
        """The day from which on there are minutes, in InfluxDB or still in the buffer."""
        waiting = self._buffer.oldest(instrument)
        known = [at for at in (self._bars.first(instrument), waiting) if at is not None]
        return _floor(timeframe, min(known)) if known else None

    def _keep(self, instrument: Instrument, timeframe: Timeframe, span: Span) -> None:
        """Make what is not kept of a span of whole days."""
        gaps = self._buffer.gaps(_name(instrument, timeframe), span)
        if not gaps:
            return
        unit = _unit(timeframe)
        # After the newest minute there is nothing to be made, however long ago that was.
        newest = max(self._bars.last(instrument) or 0, self._buffer.newest(instrument) or 0)
        made = _floor(timeframe, newest) + unit
        for gap in gaps:
            for start in range(gap.start, min(gap.end, made), _CHUNK // unit * unit):
                self._make(instrument, timeframe, Span(start, min(gap.end, made, start + _CHUNK // unit * unit)))
            if made < gap.end:
                self._make(instrument, timeframe, Span(max(made, gap.start), gap.end))

    def _make(self, instrument: Instrument, timeframe: Timeframe, span: Span) -> None:
        for _ in range(_TRIES):
            before = self._buffer.state(instrument)
            made = barlib.resample(self._read(instrument, span.start, span.end), timeframe, LAST)
            self._bars.write(made)
            with self._buffer.transaction() as db:
                if self._buffer.state(instrument)[:2] == before[:2]:
                    self._buffer.cover(db, [self._buffer.claim(db, _name(instrument, timeframe))], span)
                    return
        raise StoreError(f"{instrument}: minutes change faster than larger bars can be made of them")


def _name(instrument: Instrument, timeframe: Timeframe) -> str:
    """The series under which the buffer knows what is kept."""
    return f"{instrument.symbol}@{timeframe.name}"


def _unit(timeframe: Timeframe) -> int:
    return _WEEK if timeframe is Timeframe.W1 else _DAY


def _units(timeframe: Timeframe, span: Span) -> Span:
    """A span widened to whole days or weeks."""
    return Span(_floor(timeframe, span.start), _floor(timeframe, span.end - 1) + _unit(timeframe))


def _floor(timeframe: Timeframe, epoch: int) -> int:
    """The start of the UTC day or, for weeks, of the Monday."""
    anchor = _MONDAY if timeframe is Timeframe.W1 else 0
    return epoch - (epoch - anchor) % _unit(timeframe)
